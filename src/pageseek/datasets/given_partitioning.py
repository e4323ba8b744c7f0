"""`partitioning=` as pyarrow's users write it: "hive", or an object of pyarrow.dataset that means folders such as `k=1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.storage.hive import NULL, Types

_NAMELESS = (
    "partitioning: these folders have values without names; here the names of folders are k=1, as Hive writes them. "
    "Read the files of one folder, or pyarrow.dataset's files: pageseek.scan(dataset)"
)


def types_of(given: Any) -> Types | None:
    """The types of the columns of folders that a caller gave; None: they are inferred.

    Raises
    ------
    TypeError
        It is no partitioning.
    UnsupportedError
        It is one of pyarrow with another meaning.
    """
    if given == "hive" if isinstance(given, str) else False:
        return None
    if isinstance(given, (pa.Schema, Mapping)):
        return given
    kind = type(given).__name__
    if type(given).__module__.startswith("pyarrow."):
        if kind == "HivePartitioning":
            # the object shows its text for null and its encoding to pickle alone
            schema, dictionaries, null, encoding = given.__reduce__()[1]
            return _hive(
                schema, null, encoding, any(one is not None for one in dictionaries.values())
            )
        if kind == "PartitioningFactory" and given.type_name == "hive":
            infer, _, null, schema, encoding = given.__reduce__()[1]
            return _hive(schema, null, encoding, infer)
        raise UnsupportedError(_NAMELESS)
    if isinstance(given, (list, tuple)) and all(isinstance(one, str) for one in given):
        raise UnsupportedError(_NAMELESS)
    raise TypeError(
        f"partitioning={given!r}: a pyarrow.Schema or a mapping of names to types; 'hive' or None infers them, "
        "and False ignores folders"
    )


def _hive(schema: pa.Schema | None, null: str, encoding: str, dictionaries: bool) -> Types | None:
    if null != NULL:
        raise UnsupportedError(f"partitioning: null_fallback={null!r}: null is {NULL!r} in the names of folders")  # fmt: skip
    if encoding != "uri":
        raise UnsupportedError(
            f"partitioning: segment_encoding={encoding!r}: codes such as %20 in names of folders are always decoded"
        )
    if dictionaries or any(pa.types.is_dictionary(field.type) for field in schema or ()):
        raise UnsupportedError(
            "partitioning: columns of folders are no dictionaries here; give the type of the values"
        )
    return schema
