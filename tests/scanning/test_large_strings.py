"""Strings beyond 32-bit offsets: the rows of a row group become several arrays, and nothing else changes."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import decode as core
from pageseek.scanning.leaves import leaf_chunk, page_batch

MIB = 1 << 20
ROWS = 2100  # of a string of 1 MiB: more than offsets of 32 bits can tell
ROOM = (2**31 - 1) // MIB


class Halting:
    """A decoder whose output is full after some rows, as if its offsets had run out."""

    rows = 7

    def __init__(self, *args: Any, **how: Any) -> None:
        self._decoder = core.LeafDecoder(*args, **how)

    def begin(self, selection: Any, hint: int = 0) -> None:
        self._decoder.begin(selection, self.rows)

    def read_page(self, data: Any, first: int, rows: int, ranges: Any, hint: int = 0) -> Any:
        self.begin(ranges)
        self._decoder.head(data, 0, rows)
        state = self._decoder.take(first)
        return self._decoder.finish() if state == core.TAKE_DONE else state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)


def halting_if_flat(*args: Any, **how: Any) -> Any:
    return (core.LeafDecoder if how.get("nesting_levels") else Halting)(*args, **how)


@pytest.fixture
def halting(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = SimpleNamespace(**{**vars(core), "LeafDecoder": halting_if_flat})
    monkeypatch.setattr(leaf_chunk, "core", proxy)
    monkeypatch.setattr(
        page_batch, "decode_pages", lambda *_: iter(())
    )  # it takes the core's own alone


def table(n: int = 300) -> pa.Table:
    texts = [None if i % 7 == 3 else f"text {i % 11}" * (i % 4) for i in range(n)]
    return pa.table({"s": texts, "t": texts[::-1], "n": range(n)})


def as_file(made: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    layout = {"row_group_size": 200, "data_page_size": 300, "write_page_index": True}
    pq.write_table(made, sink, **(layout | how))
    return sink.getvalue()


COL = ps.col
Row = dict[str, Any]
CONDITIONS: list[tuple[Any, Callable[[Row], bool]]] = [
    (None, lambda row: True),
    (COL("s") == "text 5text 5", lambda row: row["s"] == "text 5text 5"),
    (COL("s").is_null(), lambda row: row["s"] is None),
    (COL("s").is_not_null(), lambda row: row["s"] is not None),
    (
        (COL("s") > "text 2") & (COL("t") < "text 9"),
        lambda row: (row["s"] or "") > "text 2" and row["t"] is not None and row["t"] < "text 9",
    ),
    ((COL("s") == "") | (COL("t") == "text 1"), lambda row: row["s"] == "" or row["t"] == "text 1"),
    ((COL("n") > 20) & (COL("s") != ""), lambda row: row["n"] > 20 and bool(row["s"])),
    (COL("n") == 150, lambda row: row["n"] == 150),
]
WAYS: list[dict[str, Any]] = [
    {},
    {"string_type": "large"},
    {"string_type": "view"},
    {"dictionary_columns": ["s", "t"]},
]


@pytest.mark.usefixtures("halting")
def test_several_arrays_beside_a_struct_that_may_be_null_in_another_file(tmp_path: Path) -> None:
    """A struct column of one array, next to a string column of several, has the dataset's type in each batch."""
    texts = pa.array([f"text {i}" for i in range(30)])
    types = [
        pa.struct([pa.field("a", pa.int64(), nullable), ("l", pa.list_(pa.int8()))])
        for nullable in (False, True)
    ]
    for i, kind in enumerate(types):
        structs = pa.array([{"a": j or (None if i else 0), "l": [j]} for j in range(30)], kind)
        pq.write_table(pa.table({"s": structs, "t": texts}), tmp_path / f"{i}.parquet")
    scan = ps.scan(str(tmp_path))
    wanted = pa.concat_tables(
        [pq.read_table(tmp_path / f"{i}.parquet").cast(scan.schema) for i in range(2)]
    )
    assert scan.schema.field("s").type == types[1]
    for found in (
        scan.to_table(),
        pa.Table.from_batches(scan.to_batches(), scan.schema),
        pa.Table.from_batches(scan.plan().execute(), scan.schema),
        pa.table(scan),
    ):
        found.validate(full=True)
        assert found["t"].num_chunks > 4
        assert found.equals(wanted)
        assert all(batch.schema.equals(scan.schema) for batch in found.to_batches())


@pytest.mark.usefixtures("halting")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dictionary", [True, False])
def test_rows_of_several_arrays_are_those_of_one(dictionary: bool, way: dict[str, Any]) -> None:
    whole = table()
    data = as_file(whole, use_dictionary=dictionary, write_page_index=dictionary)
    full = ps.read_table(data, **way)
    coded = dictionary and "dictionary_columns" in way  # then codes are kept, which have room
    assert full["s"].num_chunks == 2 if coded else full["s"].num_chunks > 20
    full.validate(full=True)
    everything = whole.to_pylist()
    assert full.to_pylist() == everything
    for condition, holds in CONDITIONS:
        scan = ps.scan(data, filter=condition, batch_size=50, **way)
        found = scan.to_table()
        found.validate(full=True)
        assert found.to_pylist() == [row for row in everything if holds(row)]
        batches = list(scan.to_batches())
        assert pa.Table.from_batches(batches, scan.schema).to_pylist() == found.to_pylist()
        assert scan.limit(9).to_table().to_pylist() == found.to_pylist()[:9]
        assert scan.count_rows() == len(found)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One string of 1 MiB in a dictionary, and many codes of it."""
    path = tmp_path_factory.mktemp("large") / "repeated.parquet"
    codes = pa.array([None if i == 5 else 0 for i in range(ROWS)], pa.int32())
    strings = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * MIB]))
    made = pa.table({"n": range(ROWS), "s": strings})
    pq.write_table(
        made, path, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 24
    )
    assert path.stat().st_size < 20_000
    return path


def test_one_row_group_gives_more_than_32_bit_offsets_can_tell(repeated: Path) -> None:
    found = ps.read_table(repeated)
    found.validate()
    assert [len(chunk) for chunk in found["s"].chunks] == [ROOM + 1, ROWS - ROOM - 1]
    assert found["s"].null_count == 1
    assert found["s"][0] == found["s"][-1]
    assert len(found["s"][-1].as_py()) == MIB


def test_codes_of_large_strings_are_not_expanded(repeated: Path) -> None:
    found = ps.read_table(repeated, dictionary_columns=["s"])
    (chunk,) = found["s"].chunks
    assert len(chunk.dictionary) == 1
    assert found["s"].null_count == 1
    assert found.nbytes < 2 * MIB
    for limit, options in (
        (ROWS, {"string_type": "view"}),
        (3, {"filter": ps.col("n") > 7, "limit": 3}),
    ):
        found = ps.read_table(repeated, columns=["s"], dictionary_columns=["s"], **options)
        assert (len(found), found.nbytes < 2 * MIB) == (limit, True)


PROGRAM = """
    import resource, sys
    import pyarrow as pa
    import pageseek as ps

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30,) * 2)
    path, rows = sys.argv[1], int(sys.argv[2])
    condition, ways = eval(sys.argv[3]), eval(sys.argv[4])
    for way in ways:
        n = 0
        if way.pop("batches", False):
            for batch in ps.scan(path, filter=condition, **way).to_batches():
                n += batch.num_rows
                sizes = batch.column(1).null_count
        else:
            found = ps.read_table(path, filter=condition, **way)
            found.validate()
            n = len(found)
            del found
        assert n == rows, (way, n)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("None", ROWS),
        ("ps.col('s').is_not_null()", ROWS - 1),
        ("ps.col('s') == 'x' * (1 << 20)", ROWS - 1),
        ("(ps.col('s') > 'w') & (ps.col('n') != 8)", ROWS - 2),
        ("ps.col('n') != 8", ROWS - 1),
    ],
)
def test_more_than_2_gib_of_strings_in_8_gib(repeated: Path, condition: str, rows: int) -> None:
    ways = [{}, {"batches": True}, {"string_type": "large"}, {"string_type": "view"}]
    ways += [{"dictionary_columns": ["s"]}, {"string_type": "view", "batches": True}]
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(repeated)]
    done = subprocess.run(
        [*command, str(rows), condition, repr(ways)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_more_than_2_gib_of_plain_strings(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    text = "y" * (MIB - 7)
    schema = pa.schema({"s": pa.large_string(), "n": pa.int64()})
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, store_schema=False
    ) as writer:
        batch = pa.table({"s": pa.array([text] * ROWS, pa.large_string()), "n": range(ROWS)})
        writer.write_table(batch, row_group_size=ROWS)
        del batch
    found = ps.read_table(path)
    assert found["s"].num_chunks == 2
    assert found["s"][-1].as_py() == text
    del found
    found = ps.read_table(path, filter=ps.col("s") == text, columns=["n"])
    assert found["n"].to_pylist() == list(range(ROWS))
