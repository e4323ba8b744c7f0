"""Errors of `attach`, `detach`, `list` and `verify` tell the caller what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "number": [1, 2]}), made)
    return made


def test_more_files_than_one_are_named(path: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "b.parquet")
    before = {one: one.read_bytes() for one in tmp_path.iterdir()}
    for source, shown in (
        (str(tmp_path), repr(str(tmp_path))),
        (tmp_path, str(tmp_path)),
        (str(tmp_path / "*.parquet"), "*.parquet"),
        ([str(one) for one in before], "the source"),
    ):
        for function, options in (
            (ps.index.attach, {"in_place": True}),
            (ps.index.detach, {"in_place": True}),
            (ps.index.list, {}),
            (ps.index.verify, {}),
        ):
            call: Any = function
            with pytest.raises(ValueError, match="2 files, and this is of one: call it for each") as error:  # fmt: skip
                call(source, **options)
            assert shown in str(error.value)
    assert {one: one.read_bytes() for one in tmp_path.iterdir()} == before


@pytest.mark.parametrize("rate", ["0.01", None, 0, 1, 1.5, -0.1, float("nan"), 1e-12])
def test_rates_that_are_none(path: Path, tmp_path: Path, rate: Any) -> None:
    with pytest.raises(
        ValueError, match=r"column '.*': a false-positive rate of .*: at least 1e-09 and below 1"
    ):
        ps.index.attach(path, bloom={"number": rate}, output=tmp_path / "new.parquet")
    assert not (tmp_path / "new.parquet").exists()


@pytest.mark.parametrize(
    "wanted",
    [
        {"bloom": [("text", "number")]},
        {"bloom": [3]},
        {"bloom": {("text", "number"): 0.01}},
        {"file_bloom": {3: 0.01}},
        {"page_index": [("text", "number")]},
        {"indexes": {"lookup": [("text", "number")]}},
        {"indexes": {"bitmap": [3]}},
    ],
)
def test_what_is_no_name_of_a_column(path: Path, tmp_path: Path, wanted: dict[str, Any]) -> None:
    (what,) = wanted
    with pytest.raises(TypeError, match=f"{what}.*: names of columns; several columns as one key"):
        ps.index.attach(path, **wanted, output=tmp_path / "new.parquet")
    assert not (tmp_path / "new.parquet").exists()


@pytest.mark.parametrize("flag", ["in_place", "overwrite", "replace"])
def test_flags_are_true_or_false(path: Path, tmp_path: Path, flag: str) -> None:
    before, output = path.read_bytes(), tmp_path / "new.parquet"
    options: dict[str, Any] = {flag: "no"} if flag == "in_place" else {flag: "no", "output": output}
    functions: list[Any] = [ps.index.attach] if flag == "replace" else [ps.index.attach, ps.index.detach]  # fmt: skip
    for function in functions:
        with pytest.raises(TypeError, match=f"{flag}='no': True or False"):
            function(path, **options)
    assert path.read_bytes() == before and not output.exists()


def test_a_file_without_row_groups_has_every_list(tmp_path: Path) -> None:
    path, output = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.ParquetWriter(path, pa.schema([("text", pa.string()), ("flag", pa.bool_())])).close()
    assert pq.ParquetFile(path).metadata.num_row_groups == 0
    wanted = {"distinct": ["text", "flag"], "bitmap": ["text"], "lookup": ["text"]}
    done = ps.index.attach(path, **wanted, output=output)
    assert not done.skipped
    assert ps.index.verify(output).ok
    assert ps.read_table(output, filter="text = 'a' and flag").num_rows == 0
    assert not ps.index.attach(output, **wanted, in_place=True).added
    ps.index.detach(output, in_place=True)
    assert output.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("threads", [0, -1])
def test_at_least_one_thread(path: Path, tmp_path: Path, threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads={threads}: at least 1"):
        ps.index.attach(path, output=tmp_path / "new.parquet", threads=threads)
    with pytest.raises(ValueError, match=f"threads={threads}: at least 1"):
        ps.index.verify(path, threads=threads)
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ({"distinct": ["l"]}, "column 'l.list.element': it lies in a list"),
        ({"distinct_index": "i"}, "column 'i': DataFusion's form is of strings"),
        ({"distinct_index": "s"}, "column 's': b'a\\nb' has a newline"),
        ({"bloom": ["b"]}, "column 'b': no Bloom filter of BOOLEAN"),
    ],
)
def test_what_a_column_cannot_have_is_said_with_its_file(
    tmp_path: Path, wanted: dict[str, Any], what: str
) -> None:
    path, output = tmp_path / "x.parquet", tmp_path / "y.parquet"
    data = pa.table({"l": [[1]], "i": [1], "s": ["a\nb"], "b": [True]})
    pq.write_table(data, path)
    with pytest.raises(ps.UnsupportedError) as raised:
        ps.index.attach(path, **wanted, output=output)
    assert str(raised.value).startswith(f"{path}: {what}"), raised.value
    assert not output.exists()
    with pytest.raises(TypeError, match="distinct_index=\\['s'\\]: the name of one column"):
        ps.index.attach(path, distinct_index=["s"], output=output)  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_said_with_the_name_that_was_given(tmp_path: Path) -> None:
    path, output = tmp_path / "x.parquet", tmp_path / "none" / "y.parquet"
    pq.write_table(pa.table({"i": [1]}), path)
    with pytest.raises(FileNotFoundError) as raised:
        ps.index.attach(path, output=output)
    assert str(raised.value) == f"{output}: there is no folder {output.parent}"
