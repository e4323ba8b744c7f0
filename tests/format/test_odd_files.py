"""Unusual files: valid ones of other writers, and invalid ones."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import pageseek as ps
from support.opened import open_metadata
from support.oracle import agree
from support.writer import BYTE_ARRAY, I64, INT32, INT64, STRING, Column, Struct, write

N = 33_000


def read(data: bytes, **options: Any) -> list[Any] | None:
    try:
        return ps.read_table(data, **options)["x"].to_pylist()
    except ps.PageseekError:
        return None


def pyarrow_reads(data: bytes) -> list[Any] | None:
    try:
        return pq.read_table(io.BytesIO(data))["x"].to_pylist()
    except (OSError, pa.ArrowException):
        return None


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_offsets_of_chunks_that_lie_are_read_where_pyarrow_reads_them(
    encoding: str, indexed: bool
) -> None:
    """data_page_offset and dictionary_page_offset, each at every place that a writer could have meant."""
    values = list(range(10))
    how: dict[str, Any] = {"encodings": encoding, "offset_index": indexed, "column_index": indexed}
    column = Column("x", INT32, values, [4, 4, 2], **how)
    write([column])
    pages, dictionary = column.made.pages, column.made.dictionary
    places = [
        0,
        3,
        4,
        pages[0][0],
        pages[0][0] + 3,
        pages[1][0],
        pages[2][0] + pages[2][1],
        1 << 40,
        -5,
    ]
    if dictionary:
        places.append(dictionary[0])
    readable = 0
    for data_page in places:
        for dictionary_page in (*places, None):

            def edit(
                meta: Struct, data_page: int = data_page, other: int | None = dictionary_page
            ) -> None:
                meta[9], meta[11] = I64(data_page), None if other is None else I64(other)

            data = write([Column("x", INT32, values, [4, 4, 2], edit_chunk=edit, **how)])
            theirs = pyarrow_reads(data)
            assert read(data) == theirs
            assert read(data, filter=ps.col("x") == 5) == (None if theirs is None else [5])
            readable += theirs == values
    assert readable >= 10


@pytest.mark.parametrize(("version", "indexed"), [(1, True), (2, False)])
def test_more_pages_than_16_bits_can_number_each_of_one_row(version: int, indexed: bool) -> None:
    how: dict[str, Any] = {"version": version, "offset_index": indexed, "column_index": indexed}
    text = [None if i % 5 == 0 else b"%d" % i for i in range(N)]
    columns = [
        Column("x", INT32, list(range(N)), [1] * N, **how),
        Column("s", BYTE_ARRAY, text, [1] * N, logical=STRING, **how),
    ]
    data = write(columns)
    found = ps.read_table(data)
    assert found["x"].to_pylist() == list(range(N))
    assert found["s"].to_pylist() == [None if t is None else t.decode() for t in text]
    for value in (0, 32_767, 32_768, 32_999):
        (row,) = ps.read_table(data, filter=ps.col("x") == value).to_pylist()
        assert row == {"x": value, "s": None if value % 5 == 0 else str(value)}
    some = ps.read_table(
        data, filter=(ps.col("x") >= 32_760) & ps.col("s").is_null(), columns=["x"]
    )
    assert some["x"].to_pylist() == list(range(32_760, N, 5))
    if indexed:
        chunk = ps.scan(data, filter=ps.col("x") == 32_768).explain(analyze=True).to_dict()
        assert chunk["rows"]["read"] == 1


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "zstd"])
@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_pages_without_rows(encoding: str, codec: str, version: int, indexed: bool) -> None:
    values = [1, None, 3, 4, 5, None]
    how: dict[str, Any] = {
        "version": version,
        "codec": codec,
        "offset_index": indexed,
        "column_index": indexed,
    }
    columns = [
        Column("x", INT32, values, [0, 2, 0, 0, 3, 1, 0], encodings=encoding, **how),
        Column("row", INT64, list(range(6)), [3, 0, 3], **how),
    ]
    assert len(agree(write(columns), 1, 4)) == 6


def test_files_without_columns_or_rows(tmp_path: Path) -> None:
    for number, table in enumerate((pa.table({}), pa.table({"a": pa.array([], pa.string())}))):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        for options in ({}, {"string_type": "view"}, {"limit": 3}):
            assert ps.read_table(path, **options).num_rows == 0
        assert ps.read_table(path).schema == table.schema
        assert list(ps.scan(path).to_batches()) == []


def test_a_top_level_name_with_dots_comes_before_a_path() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [{"b": 1}, {"b": 2}], "a.b": [7, 8], "a.c": ["x", "y"]}), sink)
    data = sink.getvalue()
    assert ps.read_table(data, columns=["a.b"]).to_pydict() == {"a.b": [7, 8]}
    assert ps.read_table(data, columns=["a.c"], filter=ps.col("a.b") == 8).to_pydict() == {
        "a.c": ["y"]
    }
    coded = ps.read_table(data, columns=["a.c"], dictionary_columns=["a.c"])
    assert pa.types.is_dictionary(coded["a.c"].type)


def test_columns_of_one_name_keep_their_stored_types_and_cannot_be_named() -> None:
    schema = pa.schema([("a", pa.large_string()), ("a", pa.string()), ("b", pa.int32())])
    blob = base64.b64encode(schema.serialize().to_pybytes())
    columns = [
        Column("a", BYTE_ARRAY, [b"1"], logical=STRING),
        Column("a", BYTE_ARRAY, [b"2"], logical=STRING),
        Column("b", INT32, [3]),
    ]
    data = write(columns, key_values={b"ARROW:schema": blob})
    assert ps.read_table(data).equals(pq.ParquetFile(io.BytesIO(data)).read())
    assert ps.read_table(data).schema.types == schema.types
    for options in (
        {"columns": ["a"]},
        {"dictionary_columns": ["a"]},
        {"filter": ps.col("a") == "1"},
    ):
        with pytest.raises(ps.PredicateError, match="2 columns have the name 'a'"):
            ps.read_table(data, **options)
    assert ps.read_table(data, filter=ps.col("b") == 3).num_columns == 3


def test_chunks_in_another_file_are_refused_by_name() -> None:
    def elsewhere(chunk: Struct) -> None:
        chunk[1] = b"part-0.parquet"

    columns = [
        Column("x", INT32, [1]),
        Column("y", INT32, [2], statistics=False, edit_column=elsewhere),
    ]
    data = write(columns)
    assert ps.read_table(data, columns=["x"]).to_pydict() == {"x": [1]}
    for options in ({}, {"columns": ["y"]}, {"columns": ["x"], "filter": ps.col("y") == 2}):
        with pytest.raises(ps.UnsupportedError, match=r"column 'y', row group 0.*in another file"):
            ps.read_table(data, **options)
    same = write([Column("x", INT32, [1], edit_column=lambda chunk: chunk.update({1: b""}))])
    assert ps.read_table(same).to_pydict() == {"x": [1]}


# ---- encryption ----------------------------------------------------------------------------------


class Vault(pe.KmsClient):  # type: ignore[misc]
    """Keys that are no secret."""

    def __init__(self, _: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64decode(key)


def encrypted(plaintext_footer: bool) -> bytes:
    factory = pe.CryptoFactory(Vault)
    how = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"one": ["secret"]}, plaintext_footer=plaintext_footer
    )
    keys = factory.file_encryption_properties(pe.KmsConnectionConfig(), how)
    table = pa.table(
        {"open": range(100), "secret": range(100), "text": [f"t{i}" for i in range(100)]}
    )
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink, table.schema, encryption_properties=keys, write_page_index=True
    ) as w:
        w.write_table(table, row_group_size=40)
    return sink.getvalue()


def test_open_columns_of_a_partly_encrypted_file() -> None:
    data = encrypted(plaintext_footer=True)
    theirs = pq.ParquetFile(io.BytesIO(data)).read(columns=["open", "text"])
    assert ps.read_table(data, columns=["open", "text"]).equals(theirs)
    assert open_metadata(data).schema.names == ["open", "secret", "text"]
    found = ps.read_table(data, columns=["text"], filter=ps.col("open") == 50)
    assert found.to_pydict() == {"text": ["t50"]}
    for options in (
        {},
        {"columns": ["secret"]},
        {"columns": ["open"], "filter": ps.col("secret") == 2},
    ):
        with pytest.raises(
            ps.UnsupportedError, match=r"column 'secret', row group \d: .*encrypted"
        ):
            ps.read_table(data, **options)


def test_an_encrypted_footer_is_refused() -> None:
    data = encrypted(plaintext_footer=False)
    for way in (ps.open, ps.read_table, lambda d: ps.scan(d).plan()):
        with pytest.raises(ps.UnsupportedError, match="the footer is encrypted"):
            way(data)


def test_encrypted_files_of_other_writers(conformance: Path) -> None:
    files = sorted((conformance / "corpus" / "encrypted").iterdir())
    assert files
    for path in files:
        with pytest.raises(ps.UnsupportedError, match="encrypted"):
            ps.read_table(path, columns=["int32_field"])


# ---- old writers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "zstd"])
def test_v2_pages_that_old_parquet_cpp_denied_to_have_compressed(codec: str) -> None:
    def deny(_: int, header: Struct) -> None:
        header[8][7] = False

    columns = [
        Column("x", INT32, [7] * 50 + [None, 9], version=2, codec=codec, edit_header=deny),
        Column("row", INT64, list(range(52))),
    ]
    agree(write(columns, created_by=b"parquet-cpp version 1.5.1-SNAPSHOT"), 7, 9)
    data = write(columns, created_by=b"parquet-cpp-arrow version 12.0.0")
    if codec != "uncompressed":
        with pytest.raises(ps.CorruptFileError, match="bytes of values"):
            ps.read_table(data)
