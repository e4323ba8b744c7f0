"""Sizes that files declare: decompression bombs fail before any allocation, with an error that names the option to raise."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.limits import Limits
from pageseek.scanning.leaves import leaf_chunk
from support.opened import open_metadata
from support.writer import BYTE_ARRAY, I32, I64, INT64, Column, Struct, write

CODECS = ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw")
MOST = (1 << 31) - 1


def claims(field: int, value: int, page: int = 0, **how: Any) -> Column:
    """Ten numbers in a page whose header has another value in a field."""

    def edit(number: int, header: Struct) -> None:
        if number == page:
            header[field] = I32(value)

    return Column("x", INT64, list(range(10)), edit_header=edit, **how)


def rows_claimed(rows: int, column: Column) -> bytes:
    """A file whose footer declares more rows than its pages have."""

    def chunk(meta: Struct) -> None:
        meta[5] = I64(rows)

    column.edit_chunk, column.offset_index, column.column_index = chunk, False, False

    def group(_: int, made: Struct) -> None:
        made[3] = I64(rows)

    return write([column], edit_group=group, edit_footer=lambda f: f.update({3: I64(rows)}))


def one_value(rows: int) -> bytes:
    """A legal file of a few hundred bytes: a page of one run of dictionary codes."""
    run, codes = rows << 1, b"\1"
    while run:
        codes += bytes([run & 127 | (128 if run > 127 else 0)])
        run >>= 7
    codes += b"\0"

    def header(number: int, made: Struct) -> None:
        if number == 0:
            made[5][1] = I32(rows)

    column = Column(
        "x", INT64, [7, 7], encodings="dictionary", optional=False, edit_header=header,
        edit_body=lambda number, body: codes if number == 0 else body,
    )  # fmt: skip
    return rows_claimed(rows, column)


BOMBS: dict[str, bytes] = {
    **{f"page {c}": write([claims(2, MOST, codec=c)]) for c in CODECS},
    **{f"dictionary {c}": write([claims(2, MOST, -1, codec=c, encodings="dictionary")]) for c in CODECS},
    **{f"V2 page {c}": write([claims(2, MOST, codec=c, version=2)]) for c in CODECS},
    "stored": write([claims(3, MOST)]),
    "row group": rows_claimed(1 << 40, Column("x", INT64, list(range(10)))),
    "row group of strings": rows_claimed(1 << 40, Column("x", BYTE_ARRAY, [b"a"] * 9)),
    "row group of nulls": rows_claimed(1 << 40, Column("x", INT64, [1, None] * 9)),
    "one value": one_value(MOST),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
def test_bombs_fail_before_they_allocate(tmp_path: Path) -> None:
    for name, data in BOMBS.items():
        assert len(data) < 1000
        (tmp_path / name).write_bytes(data)
    program = """
        import resource, sys
        from pathlib import Path
        import pageseek as ps
        ps.read_table(Path(sys.argv[2]))  # threads and pools that a first read makes
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
        for path in sorted(Path(sys.argv[1]).iterdir()):
            for options in ({}, {"filter": ps.col("x") == 3}, {"filter": ps.col("x").is_null()}):
                try:
                    ps.read_table(path, **options)
                except ps.PageseekError as error:
                    assert "no memory" not in str(error), error
                else:
                    assert options, path
    """
    good = tmp_path.parent / "good.parquet"
    pq.write_table(pa.table({"x": [1]}), good)
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path), str(good)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
def test_where_memory_ends_the_error_has_the_place_and_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    texts = [f"{i:0100}" for i in range(400_000)]
    pq.write_table(
        pa.table({"x": texts, "y": range(400_000)}), path, compression="none", use_dictionary=False
    )
    program = """
        import resource, sys
        from pathlib import Path
        import pageseek as ps
        ps.read_table(sys.argv[1], columns=["y"])  # threads and pools that a first read makes
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        for spare in (2, 8, 24):  # of 80 MB for the bytes that are read, and for the rows
            resource.setrlimit(resource.RLIMIT_AS, (used + (spare << 20), resource.RLIM_INFINITY))
            try:
                ps.read_table(sys.argv[1], threads=1)
            except ps.LimitError as error:
                print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 3, done.stdout
    for line in said:
        assert line.startswith(f"{path}: "), line
        assert "no memory for" in line, line
        assert "read fewer columns or rows at a time" in line, line


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("page", [0, -1])
def test_a_page_beyond_the_limit_says_where_it_is_and_what_to_raise(codec: str, page: int) -> None:
    encodings = "dictionary" if page else "plain"
    data = write([claims(2, MOST, page, codec=codec, encodings=encodings)])
    which = "dictionary page" if page else "page 0"
    place = rf"<memory>: column 'x', row group 0, {which} at byte \d+: "
    with pytest.raises(
        ps.LimitError, match=rf"{place}.*{MOST} .*{1 << 30}.*max_page_bytes"
    ) as error:
        ps.read_table(data)
    assert "max_page_bytes" in str(pickle.loads(pickle.dumps(error.value)))
    with pytest.raises(ps.CorruptFileError):  # it is not there, or what is there cannot hold it
        ps.read_table(data, max_page_bytes=MOST)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_pages_of_real_bombs_are_not_decompressed(codec: str) -> None:
    sink = io.BytesIO()
    table = pa.table({"x": pa.array([b"\0" * (8 << 20)] * 2)})
    name = codec.removesuffix("_raw")
    pq.write_table(table, sink, compression=name, use_dictionary=False, write_statistics=False)
    data = sink.getvalue()
    with pytest.raises(ps.LimitError, match=r"max_page_bytes"):
        ps.read_table(data, max_page_bytes=1 << 20)
    assert ps.read_table(data, max_page_bytes=1 << 25).equals(table)
    assert ps.read_table(data).equals(table)


@pytest.mark.parametrize("string_type", ["string", "large", "view"])
def test_output_beyond_the_limit_says_what_to_raise(string_type: str) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": ["a string"] * 10_000, "n": range(10_000)}), sink)
    data = sink.getvalue()
    for column in ("x", "n"):
        place = rf"column '{column}', row group 0.*beyond the limit of 10000; .*max_output_bytes"
        with pytest.raises(ps.LimitError, match=place):
            ps.read_table(data, [column], string_type=string_type, max_output_bytes=10_000)
    assert len(ps.read_table(data, filter=ps.col("n") < 10, columns=["x"])) == 10


def test_a_page_of_one_value_is_as_large_as_the_limit_lets_it() -> None:
    data = one_value(1_000_000)
    assert len(data) < 600
    assert ps.read_table(data)["x"].unique().to_pylist() == [7]
    with pytest.raises(ps.LimitError, match=r"page 0 at byte \d+: .*max_output_bytes"):
        ps.read_table(data, max_output_bytes=7_999_999)
    with pytest.raises(ps.LimitError, match="max_output_bytes"):
        ps.read_table(one_value(MOST))


def test_metadata_beyond_the_limit_says_what_to_raise(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({f"c{i}": range(50) for i in range(50)}), path, write_page_index=True)
    with pytest.raises(
        ps.LimitError, match=r"a.parquet: the footer has \d+ bytes.*max_metadata_bytes"
    ):
        open_metadata(path, max_metadata_bytes=1000)
    bare = tmp_path / "bare.parquet"
    schema = pa.schema({f"c{i}": pa.int64() for i in range(50)})
    pq.write_table(schema.empty_table(), bare, store_schema=False)
    size = int.from_bytes(bare.read_bytes()[-8:-4], "little")
    with pytest.raises(ps.LimitError, match=r"bare.parquet: footer.*more than.*max_metadata_bytes"):
        open_metadata(bare, max_metadata_bytes=size)
    for limit in (1000, 1 << 30, 1000):  # the cache does not get in the way
        if limit == 1000:
            with pytest.raises(ps.LimitError):
                ps.read_table(path, max_metadata_bytes=limit)
        else:
            assert len(ps.read_table(path, max_metadata_bytes=limit)) == 50


def test_limits_travel_with_a_plan() -> None:
    plan = ps.scan(one_value(100_000), max_output_bytes=1000).plan()
    for part in (plan, pickle.loads(pickle.dumps(plan))):
        with pytest.raises(ps.LimitError, match="max_output_bytes"):
            list(part.execute())


@pytest.mark.parametrize("name", Limits.__dataclass_fields__)
@pytest.mark.parametrize("value", [0, -1])
def test_limits_that_are_none(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        ps.scan(BOMBS["stored"], **{name: value})


def mixed(n: int) -> pa.Table:
    rng = np.random.default_rng(2)
    nulls = rng.random(n) < 0.2
    return pa.table(
        {
            "i": pa.array(rng.integers(0, 50, n), mask=nulls),
            "full": rng.integers(0, 1 << 40, n),
            "b": pa.array(rng.random(n) < 0.5, mask=nulls),
            "s": pa.array([f"{v}" * (v % 4) for v in rng.integers(0, 99, n)], mask=nulls),
            "dec": pa.array(rng.integers(0, 99, n)).cast(pa.decimal128(20, 0)),
            "fixed": pa.array([bytes([v]) * 3 for v in rng.integers(0, 9, n)], pa.binary(3)),
        }
    )


@pytest.mark.parametrize("likely", [1, 700])
@pytest.mark.parametrize("dictionary", [True, False])
def test_output_grows_with_the_pages(
    likely: int, dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mixed(6000)
    sink = io.BytesIO()
    pq.write_table(
        table, sink, use_dictionary=dictionary, data_page_size=900, write_page_index=True
    )
    data = sink.getvalue()
    monkeypatch.setattr(leaf_chunk, "likely_rows", lambda *_: likely)
    for string_type in ("string", "large"):
        found = ps.read_table(data, string_type=string_type)
        found.validate(full=True)
        assert found.cast(table.schema).equals(table)
    for condition in (
        ps.col("i") < 25,
        ps.col("b").isin([True]),
        ps.col("s").is_null(),
        ps.col("i") == 7,
    ):
        found = ps.read_table(data, filter=condition)
        monkeypatch.undo()
        assert found.equals(ps.read_table(data, filter=condition))
        monkeypatch.setattr(leaf_chunk, "likely_rows", lambda *_: likely)


def test_pages_that_claim_more_values_than_they_can_hold() -> None:
    """A page is refused if its bytes cannot hold the declared PLAIN values."""
    data = rows_claimed(MOST, claims(1, 0, page=5))
    with pytest.raises(ps.CorruptFileError, match="the chunk ends at row 10"):
        ps.read_table(data)

    def header(_: int, made: Struct) -> None:
        made[5][1] = I32(MOST)

    for physical, value in ((INT64, 1), (BYTE_ARRAY, b"a")):
        how: dict[str, Any] = {"optional": False, "edit_header": header, "logical": None}
        column = Column("x", physical, [value] * 10, **how)
        with pytest.raises(ps.CorruptFileError, match="page ends before value"):
            ps.read_table(rows_claimed(MOST, column))
