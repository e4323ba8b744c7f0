"""What a table of Delta Lake or Iceberg says of its files and columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field

import pyarrow as pa

from pageseek.base.errors import PageseekError, UnsupportedError
from pageseek.base.records import dataclass
from pageseek.datasets.file_bounds import FileBounds
from pageseek.datasets.table_fields import TableField
from pageseek.storage.redact import cleaned
from pageseek.storage.resolve import Source

_SHAPES = "geoarrow."  # begins the names of types of shapes, which other packages register


@dataclass(frozen=True, slots=True)
class Table:
    """The files of one version of a table, and how they are read. `fields`: its columns, if files may call them otherwise.
    `spelt`: the path of each file as the table has it. `root`, `version`: of Delta Lake, the folder and the number of the version;
    `variants`: its columns that are variants, or have one in them.
    """

    sources: tuple[Source, ...]
    schema: pa.Schema
    folders: pa.Schema
    fields: tuple[TableField, ...] = ()
    # names of files -> fields inside of columns whose values the partition has: path, field id
    inside: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    what: str = ""  # the table and its version, as `explain` names them
    bounds: FileBounds | None = field(default=None, compare=False, repr=False)
    spelt: tuple[str, ...] = ()
    root: Source | None = None
    version: int | None = None
    variants: frozenset[str] = frozenset()
    unread: tuple[
        tuple[tuple[str, ...], str], ...
    ] = ()  # paths of fields that are not read: their types

    @property
    def has_moments_only(self) -> bool:
        """Whether all timestamps of its columns are moments. Some writers do not say so in the files: they mean UTC."""
        return not any(_has_local_times(one.type) for one in self.schema)


def _has_local_times(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_has_local_times(kind.field(i).type) for i in range(kind.num_fields))


@contextmanager
def foreign(
    where: str, package: str, secrets: Iterable[str], remedy: str = "", hidden: str = ""
) -> Iterator[None]:
    """Turn errors of a table's package into ours; those of the system stay. `hidden`: a text that is left out of them."""
    try:
        yield
    except (PageseekError, OSError):
        raise
    except BaseException as error:
        # a panic in Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = str(error).replace(hidden, "") if hidden else str(error)
        said = cleaned(text, secrets) or type(error).__name__
        raise UnsupportedError(
            f"{where}: {with_version(package)} cannot tell which files it has: {said}{remedy}"
        ) from None


def with_version(package: str) -> str:
    """The name of a package with its version, for errors."""
    from importlib.metadata import PackageNotFoundError, version  # late: for errors

    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type with 32-bit offsets, as readers give it by default."""
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name.startswith(_SHAPES):
        return plain_type(kind.storage_type)
    if t.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if t.is_large_binary(kind) or kind == pa.binary_view():
        return pa.binary()
    if t.is_struct(kind):
        return pa.struct([f.with_type(plain_type(f.type)) for f in kind])
    if t.is_map(kind):
        key, item = (f.with_type(plain_type(f.type)) for f in (kind.key_field, kind.item_field))
        return pa.map_(key, item)
    if t.is_list(kind) or t.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    return kind
