"""Changed bytes of real files: every entry point gives an answer or an error of pageseek."""

from __future__ import annotations

import base64
import importlib
import io
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.status import PageMismatch
from pageseek.base.errors import CoreError
from support.opened import open_metadata
from support.tiers import examples
from support.writer import FIXED, I32, I64, INT32, INT64, Column, decimal, timestamp, write

CORE = (
    "status",
    "memory",
    "codecs",
    "convert",
    "pages",
    "decode",
    "metadata",
    "rows",
    "search",
    "gather",
)
N = 120
MUTATIONS = examples(200)  # of each file


def table() -> pa.Table:
    """Columns of every physical type, some with more in the stored Arrow schema than Parquet says."""
    return pa.table(
        {
            "id": np.arange(N),
            "f": np.arange(N) / 7,
            "s": [f"n{i % 9}" for i in range(N)],
            "fixed": pa.array([bytes([i]) * 4 for i in range(N)], pa.binary(4)),
            "dec": pa.array([Decimal(i) for i in range(N)], pa.decimal128(9, 2)),
            "ts": pa.array(np.arange(N), pa.timestamp("us", "Europe/Berlin")),
            "took": pa.array(np.arange(N), pa.duration("us")),
            "b": [i % 3 == 0 for i in range(N)],
            "word": pa.array(["x" if i % 2 else "y" for i in range(N)]).dictionary_encode(),
        }
    )


def sample(**options: Any) -> bytes:
    """The table as pyarrow writes it, in pages and row groups of few rows."""
    sink = io.BytesIO()
    layout = {"write_page_index": True, "data_page_size": 120, "row_group_size": 50}
    pq.write_table(table(), sink, **layout, **options)
    return sink.getvalue()


SAMPLES = {
    "plain": {"compression": "none", "use_dictionary": False},
    "snappy v2": {"compression": "snappy", "data_page_version": "2.0"},
    "decimals as integers": {"compression": "zstd", "store_decimal_as_integer": True},
    "int96": {"compression": "gzip", "use_deprecated_int96_timestamps": True},
}
CONDITION = ((ps.col("id") > 20) & (ps.col("dec") > 3)) | (ps.col("s") == "n3")


def mutated(dice: random.Random, data: bytes) -> bytes:
    """One to three bytes changed, most of them in the footer."""
    out = bytearray(data)
    footer = len(out) - 8 - int.from_bytes(out[-8:-4], "little")
    for _ in range(dice.choice((1, 1, 2, 3))):
        at = dice.randrange(footer if dice.random() < 0.7 else 4, len(out) - 8)
        old = out[at]
        out[at] = dice.choice(
            (dice.randrange(256), old ^ 1 << dice.randrange(8), 0, 255, (old + 1) & 255)
        )
    return bytes(out)


def inspect(data: bytes) -> None:
    """All that an opened file tells, each part on its own."""
    with open_metadata(data) as file:
        ways: list[Callable[[], object]] = [lambda: file.schema, lambda: file.created_by]
        for leaf in file.leaves:
            ways.append(lambda leaf=leaf: file.statistics(leaf))  # type: ignore[misc]
            for group in range(file.num_row_groups):
                ways.append(lambda g=group, leaf=leaf: file.column_index(g, leaf))  # type: ignore[misc]
        for way in ways:
            try:
                way()
            except ps.PageseekError:
                pass


WAYS: dict[str, Callable[[bytes], object]] = {
    "inspect": inspect,
    "read": ps.read_table,
    "read wide": lambda data: ps.read_table(data, string_type="large", int96_unit="us"),
    "filter": lambda data: ps.read_table(data, filter=CONDITION),
    "explain": lambda data: str(ps.scan(data, filter=CONDITION).explain()),
    "analyze": lambda data: str(ps.scan(data, filter=CONDITION).explain(analyze=True)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_changed_bytes_raise_no_foreign_error(name: str) -> None:
    data, dice = sample(**SAMPLES[name]), random.Random(f"hostile {name}")
    foreign: dict[str, str] = {}
    for number in range(MUTATIONS):
        changed = mutated(dice, data)
        for way, go in WAYS.items():
            try:
                go(changed)
            except ps.PageseekError:
                pass
            except Exception as error:
                foreign.setdefault(f"{type(error).__name__} of {way}", f"{number}: {error}")
    assert foreign == {}


def fixed(type_length: int | None, **more: Any) -> bytes:
    """A file of column x of fixed length, which the schema gives otherwise, and of column row."""
    element = None if type_length is None else I32(type_length)
    x = Column("x", FIXED, [b"ab"], edit_element=lambda made: made.update({2: element}), **more)
    return write([x, Column("row", INT32, [7])])


@pytest.mark.parametrize(
    ("type_length", "more", "kind"),
    [
        (None, {}, ps.CorruptFileError),
        (-1, {}, ps.CorruptFileError),
        (-(1 << 31), {}, ps.CorruptFileError),
        (0, decimal(9, 2), ps.CorruptFileError),
        (None, decimal(9, 2), ps.CorruptFileError),
        ((1 << 27) + 1, {}, ps.LimitError),
        ((1 << 31) - 1, {}, ps.LimitError),
    ],
)
def test_lengths_that_values_cannot_have_name_their_column(
    type_length: int | None, more: dict[str, Any], kind: type[ps.PageseekError]
) -> None:
    data = fixed(type_length, **more)
    file = open_metadata(data)
    for way in (
        lambda: file.schema,
        lambda: file.statistics("x"),
        lambda: ps.read_table(data),
        lambda: ps.read_table(data, filter=ps.col("x").is_null()),
    ):
        with pytest.raises(kind, match=r"column 'x': .*type_length"):
            way()
    assert ps.read_table(data, columns=["row"]).to_pydict() == {"row": [7]}


def test_physical_types_that_are_none_name_their_column() -> None:
    x = Column("x", INT32, [1], edit_element=lambda made: made.update({1: I32(9)}))
    data = write([x, Column("row", INT32, [7])])
    with pytest.raises(ps.CorruptFileError, match="column 'x': there is no physical type 9"):
        open_metadata(data).statistics("x")
    assert ps.read_table(data, columns=["row"]).to_pydict() == {"row": [7]}


def stored_schema(schema: pa.Schema, old: bytes, new: bytes) -> dict[bytes, bytes]:
    """The key that holds an Arrow schema, with bytes of it changed."""
    raw = schema.serialize().to_pybytes()
    assert old in raw
    return {b"ARROW:schema": base64.b64encode(raw.replace(old, new))}


@pytest.mark.parametrize(
    ("old", "new"), [(b"took", b"t\xffok"), (b"Europe/Berlin", b"\xffurope/Berlin")]
)
def test_stored_schemas_whose_text_is_none_are_ignored(old: bytes, new: bytes) -> None:
    schema = pa.schema({"took": pa.duration("us"), "ts": pa.timestamp("us", "Europe/Berlin")})
    data = write(
        [Column("took", INT64, [1]), Column("ts", INT64, [1], logical=timestamp("us", True))],
        key_values=stored_schema(schema, old, new),
    )
    assert open_metadata(data).schema.types == [pa.int64(), pa.timestamp("us", "UTC")]
    assert ps.read_table(data, filter=ps.col("took") == 1).num_rows == 1


def test_a_version_of_thousands_of_digits_is_none() -> None:
    created_by = b"parquet-mr version " + b"1" * 5000 + b".0.0"
    data = write([Column("x", INT32, [1])], created_by=created_by)
    assert ps.read_table(data).to_pydict() == {"x": [1]}


@pytest.mark.parametrize("rows", [1 << 62, (1 << 63) - 1])
def test_row_counts_whose_sum_overflows(rows: int) -> None:
    groups = [[Column("x", INT32, [1])] for _ in range(4)]
    data = write(*groups, edit_group=lambda _, group: group.update({3: I64(rows)}))
    for way in WAYS.values():
        try:
            way(data)
        except ps.PageseekError:
            pass
    for condition in (None, ps.col("x") > 0, ps.col("x") > 1):
        try:
            ps.scan(data, filter=condition).count_rows()
        except ps.PageseekError:
            pass
    with pytest.raises(ps.PageseekError):
        ps.read_table(data)


def test_errors_of_the_core_are_one_class_of_pageseek() -> None:
    core = [importlib.import_module(f"pageseek._core.{name}") for name in CORE]
    assert {module.CoreError for module in core} == {CoreError}
    assert issubclass(CoreError, ps.PageseekError)
    for error in (CoreError(2, None, "odd"), PageMismatch(2, 5, "odd")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (again.status, again.offset, again.message) == (2, error.offset, "odd")
    with pytest.raises(ps.PageseekError):
        ps.RowRanges([(5, 2)])
    for form in (
        (1, 0, 99, 0, 0, 0, 0),
        (1 << 40, 0, 3, 0, 0, 0, 0),
        (7, -1 << 63, 16, 0, 0, 0, 0),
    ):
        with pytest.raises(ps.PageseekError):
            ps.LeafDecoder(form, 0, 0)


@pytest.mark.parametrize("name", CORE)
def test_modules_of_the_core_can_be_imported_first(name: str) -> None:
    subprocess.run([sys.executable, "-c", f"import pageseek._core.{name}"], check=True)
