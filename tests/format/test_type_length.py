"""A large type_length in the schema: memory for bounds follows their bytes, not the declared width."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.format.columns import tested as leaf_at
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.nesting.assembly import _filler
from pageseek.format.null_arrays import null_bytes, nulls
from pageseek.format.types import K_FIXED, LeafType, Options
from pageseek.format.value_list import FIXED_LAYOUT, STRINGS, Distinct
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.value_lists import ValueLists
from support.opened import open_metadata
from support.writer import FIXED, INT64, Column, Struct, write

WIDE = 1 << 27  # the greatest width that is read
PAGES = 16


def wide(column: Column) -> bytes:
    """The column is of values as wide as the format's limit, by the schema alone."""

    def element(made: Struct) -> None:
        made[2] = type(made[1])(WIDE)

    column.edit_element = element
    return write([column])


def null_pages() -> bytes:
    """Legal: no page has a value."""
    return wide(Column("x", FIXED, [None] * PAGES, [1] * PAGES, type_length=WIDE, statistics=False))


def short_bounds() -> bytes:
    """Bounds of a byte, where the schema wants many."""
    return wide(Column("x", FIXED, [b"a"] * PAGES, [1] * PAGES, type_length=WIDE, statistics=False))


def short_statistics() -> bytes:
    """Statistics in the footer: a row group for each value."""
    columns = [
        Column("x", FIXED, [b"a"], type_length=WIDE, column_index=False) for _ in range(PAGES)
    ]
    columns[0].edit_element = lambda made: made.update({2: type(made[1])(WIDE)})
    return write(*[[column] for column in columns])


def peak(program: str, *arguments: Any) -> int:
    """Bytes that a program, which says "begin", took at its peak beyond what it had there."""
    head = """
        import sys
        from pathlib import Path
        import pageseek as ps
        def of(name):
            text = Path("/proc/self/status").read_text()
            return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1])
        def begin():
            global before
            Path("/proc/self/clear_refs").write_text("5")
            before = of("VmRSS")
    """
    tail = 'print((of("VmHWM") - before) << 10)'
    text = "\n".join([textwrap.dedent(head), textwrap.dedent(program), tail])
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.timed
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is reset as in Linux")
@pytest.mark.parametrize("made", [null_pages, short_bounds, short_statistics])
def test_bounds_take_the_memory_of_their_bytes(made: Any, tmp_path: Path) -> None:
    data = made()
    assert len(data) < 3000
    (tmp_path / "wide").write_bytes(data)
    (tmp_path / "small").write_bytes(write([Column("x", FIXED, [b"a"], type_length=1)]))
    program = """
        for name in ("small", "wide"):
            if name == "wide":
                begin()
            for value in (b"a", b"b" * 9):
                for condition in (ps.col("x") > value, ps.col("x") == value, ps.col("x").isin([value])):
                    ps.scan(Path(sys.argv[1]) / name).filter(condition).explain()
    """
    assert peak(program, tmp_path) < 64 << 20


def test_bounds_of_a_wrong_length_are_not_known() -> None:
    for data, level in ((short_bounds(), "pages"), (short_statistics(), "row_groups")):
        said = ps.scan(data).filter(ps.col("x") > b"b").explain().to_dict()
        assert said[level]["total"] == said[level]["read"] == PAGES


def test_wide_bounds_are_values_only_where_they_fit_the_limit() -> None:
    index = open_metadata(short_bounds()).column_index(0, "x")
    assert index is not None
    with pytest.raises(ps.LimitError, match=rf"{PAGES} bounds of {WIDE} bytes.*max_metadata_bytes"):
        index.lower  # noqa: B018
    file = open_metadata(short_statistics())
    with pytest.raises(ps.LimitError, match="max_metadata_bytes"):
        file.statistics("x")
    assert file.chunk_values(0, "x").lower is None


def test_bounds_of_fixed_width_are_what_they_were() -> None:
    values = [b"ab", b"cd", None, None, b"ba", b"xy"]

    def edit(index: Struct) -> None:
        index[2][2] = b"toolong"  # no maximum of the last page that is one

    column = Column("x", FIXED, values, [2, 2, 2], type_length=2, edit_column_index=edit)
    data = write([column])
    index = open_metadata(data).column_index(0, "x")
    assert index is not None
    assert index.lower.type == index.upper.type == pa.binary(2)
    assert index.lower.to_pylist() == [b"ab", None, None]
    assert index.upper.to_pylist() == [b"cd", None, None]
    index.lower.validate(full=True)
    assert index.bounds.pair(0) == (pa.scalar(b"ab", pa.binary(2)), pa.scalar(b"cd", pa.binary(2)))
    assert index.bounds.pair(1) is None
    found = open_metadata(data).chunk_values(0, "x")
    assert (found.lower.as_py(), found.upper.as_py()) == (b"ab", b"xy")
    for condition, rows in (
        (ps.col("x") >= b"cd", [b"cd", b"xy"]),
        (ps.col("x") == b"cd", [b"cd"]),
        (ps.col("x").isin([b"ab", b"xy"]), [b"ab", b"xy"]),
    ):
        assert ps.read_table(data, filter=condition)["x"].to_pylist() == rows
    said = ps.scan(data).filter(ps.col("x") > b"cd").explain().to_dict()
    assert said["pages"]["read"] == 1


# ---- lists of different values --------------------------------------------------------------------


def body(n: int, layout: int, width: int, values: bytes) -> bytes:
    """A list of one row group, whose values are known one and all."""
    head = np.array([1, n], "<u4").tobytes() + bytes([layout, 0, 0, 0])
    return head + np.array([width], "<u4").tobytes() + b"\1" + values


def test_values_of_no_bytes_are_not_as_many_as_a_head_says() -> None:
    with pytest.raises(InvalidIndexError, match="do not fill it"):
        Distinct.of(memoryview(body((1 << 32) - 1, FIXED_LAYOUT, 0, b"")), 1)
    assert Distinct.of(memoryview(body(0, FIXED_LAYOUT, 0, b"")), 1).n == 0


@pytest.mark.timed
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is reset as in Linux")
def test_a_list_of_short_values_takes_the_memory_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(body(PAGES, STRINGS, 0, bytes(4 * (PAGES + 1))))
    program = """
        import pyarrow as pa
        from pageseek.format.value_list import Distinct
        from pageseek.format.embedded import InvalidIndexError
        from pageseek.prune.value_lists import ValueLists
        from pageseek.format.types import LeafType
        wide = pa.binary(1 << 27)
        form = LeafType((7, 1 << 27, 16, 1 << 27, 0, 0, 0), wide, wide)
        data = Path(sys.argv[1]).read_bytes()
        begin()
        for ask in (
            lambda: ValueLists.of_file(data, 1, form),
            lambda: Distinct.of(memoryview(data), 1).array(form),
        ):
            try:
                ask()
            except InvalidIndexError as error:
                assert "not all of its values" in str(error)
            else:
                raise AssertionError("values of no bytes")
    """
    assert peak(program, tmp_path / "list") < 64 << 20


def test_a_list_of_short_values_leaves_those_beside_it_alone() -> None:
    kind = pa.binary(2)
    form = LeafType((FIXED, 2, K_FIXED, 2, 0, 0, 0), kind, kind)
    good = body(3, FIXED_LAYOUT, 2, b"aabbcc")
    bad = body(2, STRINGS, 0, np.array([0, 0, 2], "<u4").tobytes() + b"xx")
    data = good + bad + good
    sizes = [len(good), len(bad), len(good)]
    places = np.array([[sum(sizes[:i]), sizes[i], 1] for i in range(3)], np.int64)
    lists = ValueLists(data, places, form)
    assert lists.sound.tolist() == [True, False, True]
    assert lists.exact == b"\1\0\1"
    schema = write([Column("x", FIXED, [b"bb"], type_length=2)])
    file, options = open_metadata(schema), Options()
    for value, wanted in ((b"bb", b"\1\1\1"), (b"zz", b"\0\1\0")):
        test = bind(ps.col("x") == value, lambda path: leaf_at(file, path, options))
        assert isinstance(test, BoundLeaf)
        assert lists.evaluate(test).may == wanted


# ---- nulls ----------------------------------------------------------------------------------------


def test_nulls_of_a_width_that_a_file_claims_are_bounded(tmp_path: Path) -> None:
    """A column that other files of the dataset have, as wide as one of them says."""
    n = 100
    column = Column("x", FIXED, [None] * n, type_length=WIDE)
    column.edit_element = lambda made: made.update({2: type(made[1])(WIDE)})
    (tmp_path / "a.parquet").write_bytes(write([Column("i", INT64, list(range(n))), column]))
    (tmp_path / "b.parquet").write_bytes(write([Column("i", INT64, list(range(n)))]))
    both = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    with pytest.raises(
        ps.LimitError, match=r"b\.parquet: column 'x': 100 nulls of type fixed_size"
    ):
        ps.read_table(both, ["x"])
    assert ps.read_table(both, ["i"], filter=ps.col("x").is_null()).num_rows == 2 * n


def test_elements_of_null_lists_count_by_their_width() -> None:
    assert _filler(pa.list_(pa.binary(WIDE), 16)) * 8 == 16 * WIDE
    assert _filler(pa.list_(pa.uuid(), 3)) == 6
    assert null_bytes(pa.list_(pa.struct([("a", pa.binary(9)), ("b", pa.uuid())]), 3)) == 48
    with pytest.raises(ps.LimitError, match="here: "):
        nulls(1 << 40, pa.int64(), "here")
    assert nulls(3, pa.binary(5), "here").null_count == 3
