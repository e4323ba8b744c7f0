"""The object of `pageseek.open`: public names, typed records, and pages that the caller decodes."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps


@pytest.fixture
def path(tmp_path: Path) -> Path:
    n = 10_000
    table = pa.table(
        {
            "id": pa.array(range(n), pa.int64()),
            "word": [f"w{i % 7}" if i % 11 else None for i in range(n)],
            "part": [{"a": i, "b": [i]} for i in range(n)],
        }
    )
    found = tmp_path / "orders.parquet"
    pq.write_table(
        table, found, row_group_size=4000, data_page_size=512, write_batch_size=500,
        write_page_index=True, use_dictionary=["word"],
    )  # fmt: skip
    return found


def test_the_names_of_a_file_are_those_that_a_user_needs(path: Path) -> None:
    with ps.open(path) as file:
        names = {name for name in dir(file) if not name.startswith("_")}
    assert names == {
        "chunk", "chunk_values", "chunks", "close", "column_index", "created_by", "decoder",
        "footer_offset", "is_encrypted", "key_value_metadata", "leaf", "leaves", "name", "num_leaves",
        "num_row_groups", "num_rows", "offset_index", "plot", "row_groups", "schema", "size", "statistics", "to_array",
    }  # fmt: skip


def test_records_say_what_pyarrow_says(path: Path) -> None:
    theirs = pq.read_metadata(path)
    with ps.open(path) as file:
        assert (file.num_rows, file.num_row_groups, file.num_leaves) == (10_000, 3, 4)
        assert file.created_by == theirs.created_by and file.size == path.stat().st_size
        for i, group in enumerate(file.row_groups):
            other = theirs.row_group(i)
            assert (group.num_rows, group.total_byte_size) == (
                other.num_rows,
                other.total_byte_size,
            )
            assert group.first_row == 4000 * i
            for j, leaf in enumerate(file.leaves):
                column = theirs.schema.column(j)
                assert leaf.physical_type == column.physical_type
                assert leaf.max_definition_level == column.max_definition_level
                chunk, known = file.chunk(i, leaf), other.column(j)
                assert chunk.codec == known.compression.lower()
                assert set(chunk.encodings) == set(known.encodings)
                assert (chunk.compressed_size, chunk.num_values) == (
                    known.total_compressed_size,
                    known.num_values,
                )
                assert chunk.dictionary_page_offset == known.dictionary_page_offset
                assert chunk.null_count == known.statistics.null_count
                assert chunk.bloom_filter_offset is None
        assert "-9223372036854775808" not in repr(file.row_groups) + repr(file.chunks("id"))


def test_a_column_is_known_by_its_name_and_by_its_record(path: Path) -> None:
    with ps.open(path) as file:
        leaf = file.leaf("part.a")
        assert leaf.path == ("part", "a") and leaf.type == pa.int64()
        assert file.chunks(leaf) == file.chunks("part.a")
        with pytest.raises(ps.PredicateError, match="nothing"):
            file.leaf("nothing")
        for row_group in (-1, 3):
            for call in (
                file.chunk,
                file.chunk_values,
                file.column_index,
                file.offset_index,
                file.decoder,
            ):
                with pytest.raises(IndexError, match="no row group"):
                    call(row_group, "id")


@pytest.mark.parametrize("column", ["id", "word"])
def test_a_page_by_hand_is_that_of_the_table(path: Path, column: str) -> None:
    table = pq.read_table(path, columns=[column])[column].combine_chunks()
    data = path.read_bytes()
    with ps.open(path) as file:
        for group in range(file.num_row_groups):
            pages = file.offset_index(group, column)
            assert pages is not None and pages.num_pages > 1
            for page in range(pages.num_pages):
                first, stop = pages.first_row[page : page + 2].tolist()
                at, size = int(pages.offset[page]), int(pages.compressed_size[page])
                decoder = file.decoder(group, column)
                decoder.begin(ps.RowRanges([(first + 1, stop)]))
                start = file.chunk(group, column).dictionary_page_offset
                if start is not None:
                    decoder.head(data[start : pages.start])
                    decoder.take_dictionary()
                decoder.head(data[at : at + size])
                decoder.take(first)
                found = file.to_array(column, decoder.finish())
                assert found.equals(table.slice(4000 * group + first + 1, stop - first - 1))


def test_a_decoder_by_hand_is_of_a_top_level_column(path: Path) -> None:
    with ps.open(path) as file, pytest.raises(ps.UnsupportedError, match=re.escape("'part.a'")):
        file.decoder(0, "part.a")


def test_the_example_of_the_docs_runs(
    path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "docs" / "pages.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(path.parent)
    names: dict[str, object] = {}
    pq.write_table(
        pa.table({"o_orderkey": range(100_000)}), "orders.parquet",
        data_page_size=4096, write_page_index=True,
    )  # fmt: skip
    exec(text, names)
    values, first = names["values"], names["first"]
    assert isinstance(values, pa.Array)
    assert values.to_pylist() == list(range(int(first), int(first) + 10))  # type: ignore[call-overload]


@pytest.mark.parametrize("source", ["path", "bytes"])
def test_a_closed_file_says_so(source: str, path: Path) -> None:
    file = ps.open(path if source == "path" else path.read_bytes())
    known = file.schema
    file.close()
    file.close()
    assert file.schema == known and file.num_rows == 10_000
    said = f"^{re.escape(file.name)}: the file is closed$"
    with pytest.raises(ValueError, match=said):
        file.column_index(0, "id")
    with pytest.raises(ValueError, match=said):
        file.offset_index(0, "id")


def test_an_open_file_is_not_pickled(path: Path) -> None:
    with (
        ps.open(path) as file,
        pytest.raises(TypeError, match=r"orders\.parquet: an open file cannot be pickled"),
    ):
        pickle.dumps(file)
