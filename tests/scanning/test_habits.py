"""Options as pyarrow, pandas and polars have them; the options of `read_table` and `scan`."""

from __future__ import annotations

import copy
import inspect
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import habits
from pageseek.base.other_names import INSTEAD


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "a.parquet"
    table = pa.table({"a": range(10), "colour": ["red", "blue"] * 5})
    pq.write_table(table, path)
    return str(path)


def test_read_table_has_the_options_of_scan() -> None:
    """Each by its name, with the same default and type: no name is hidden behind `**options`."""
    scan = dict(inspect.signature(ps.scan).parameters)
    read = dict(inspect.signature(ps.read_table).parameters)
    assert read.pop("filters").default is None
    assert list(read) == list(scan)
    for name, one in scan.items():
        assert (read[name].default, read[name].annotation) == (one.default, one.annotation)


def test_read_table_hands_every_option_to_scan(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def scan(source: Any, **options: Any) -> ps.Scan:
        given.update(options)
        return ps.scan(source)

    known = [n for n, one in inspect.signature(ps.scan).parameters.items() if one.kind is one.KEYWORD_ONLY]  # fmt: skip
    monkeypatch.setattr("pageseek.api.scan", scan)
    said = {name: object() for name in known}
    ps.read_table(path, **said, memory_map=True)
    assert given == {**said, "memory_map": True}


def test_options_that_say_how_to_read_change_nothing(path: str) -> None:
    how: dict[str, Any] = {"memory_map": True, "pre_buffer": False, "buffer_size": 4096, "use_threads": True}  # fmt: skip
    assert ps.read_table(path, **how).equals(ps.read_table(path))
    assert ps.open(path, memory_map=True, pre_buffer=True).num_rows == 10


def test_names_of_pyarrow_for_our_options(path: str) -> None:
    assert ps.scan(path, use_threads=False)._request.threads == 1
    assert ps.scan(path, use_threads=True, threads=3)._request.threads == 3
    found = ps.read_table(path, read_dictionary=["colour"])
    assert pa.types.is_dictionary(found.schema.field("colour").type)
    scan = ps.scan(path, coerce_int96_timestamp_unit="ms")
    assert scan._request.options.int96_unit == "ms"
    assert ps.scan(path, ignore_prefixes=[".", "_"]).count_rows() == 10


def test_defaults_of_other_readers_are_taken(path: str) -> None:
    """Of pyarrow and pandas, as a program has them that spells all options out."""
    for function in (pq.read_table, pq.ParquetFile.__init__):
        for name, one in inspect.signature(function).parameters.items():
            known = set(inspect.signature(ps.scan).parameters) | {"self", "filters"}
            if one.default is not one.empty and name not in known:
                assert ps.scan(path, **{name: one.default}).count_rows() == 10, name
    assert ps.scan(path, engine="pyarrow").count_rows() == 10  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"column": ["a"]}, r"there is no option column=; did you mean columns=\?"),
        ({"Threads": 2}, r"no option Threads=; did you mean threads=\?"),
        ({"zzz": 2}, r"no option zzz=; help\(pageseek.scan\)"),
        ({"dtype_backend": "pyarrow"}, "dtype_backend='pyarrow': rows come out as Arrow; use .to_pandas"),
        ({"engine": "fastparquet"}, "engine='fastparquet': there is one engine"),
        ({"n_rows": 5}, "n_rows=5: use limit="),
        ({"thrift_string_size_limit": 5}, "use max_metadata_bytes="),
        ({"decryption_properties": 5}, "encrypted columns cannot be read"),
        ({"use_pandas_metadata": True}, "name the columns of the index"),
        ({"ignore_prefixes": ["."]}, "a leading _ or . are hidden"),
        ({"use_threads": 1}, "use_threads=1: True or False; threads= takes a number"),
        ({"use_threads": False, "threads": 4}, "threads= and use_threads= mean the same"),
        ({"read_dictionary": ["a"], "dictionary_columns": ["a"]}, "mean the same: give one"),
        ({"coerce_int96_timestamp_unit": "s"}, "int96_unit= is 'ns', 'us' or 'ms'"),
        ({"coerce_int96_timestamp_unit": "us", "int96_unit": "ms"}, "mean the same"),
        ({"columns": {"new": ds.field("a")}}, "columns: names of columns; new ones are computed"),
        ({"columns": {"a"}}, "columns: a set has no order"),
        ({"columns": "a"}, r"columns='a': a list of names as text, such as \['id', 'price'\]"),
        ({"columns": [1]}, r"columns=\[1\]: a list of names"),
        ({"columns": 7}, "columns=7: a list of names"),
        ({"partitioning": 7}, "partitioning=7: a pyarrow.Schema or a mapping"),
    ],
)  # fmt: skip
def test_an_option_without_a_meaning_says_what_has_it(path: str, option: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ps.read_table(path, **option)


def test_filters_is_filter(path: str) -> None:
    assert ps.read_table(path, filters=[("a", ">", 7)]).num_rows == 2
    with pytest.raises(TypeError, match=r"filters=.*: use filter="):
        ps.scan(path, filters=[("a", ">", 7)])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="filter= or filters=, not both"):
        ps.read_table(path, filter="a > 7", filters=[("a", ">", 7)])


def test_options_of_scans_are_none_of_open(path: str) -> None:
    with pytest.raises(TypeError, match=r"no option columns=; help\(pageseek.open\)"):
        ps.open(path, columns=["a"])  # type: ignore[call-arg]


def test_the_remedies_are_options(path: str) -> None:
    """A remedy names an option of ours, or something else; it never names what is not there."""
    import re

    known = {*inspect.signature(ps.scan).parameters, "types_mapper"}
    for name, refused in habits._REFUSED.items():
        for option in re.findall(r"(\w+)=", refused.instead):
            assert option in known or option == "k", (name, option)


# ---- partitioning=


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for k in (1, 2):
        (tmp_path / f"lake/k={k}").mkdir(parents=True)
        pq.write_table(pa.table({"a": range(5)}), tmp_path / f"lake/k={k}/a.parquet")
    return str(tmp_path / "lake")


def test_partitioning_in_the_forms_of_pyarrow(lake: str) -> None:
    int8 = pa.schema([("k", pa.int8())])
    for given, kind in (
        ("hive", pa.int32()),
        (None, pa.int32()),
        (ds.partitioning(flavor="hive"), pa.int32()),
        (ds.partitioning(int8, flavor="hive"), pa.int8()),
        (ds.HivePartitioning(int8), pa.int8()),
        ({"k": pa.int8()}, pa.int8()),
    ):
        found = ps.read_table(lake, partitioning=given, filter="k = 2")
        assert (found.num_rows, found.schema.field("k").type) == (5, kind)


def test_partitioning_with_another_meaning_is_refused(lake: str) -> None:
    text = pa.schema([("k", pa.string())])
    for given, words in (
        (ds.partitioning(text), "values without names"),
        (ds.partitioning(field_names=["k"]), "values without names"),
        (ds.FilenamePartitioning(text), "values without names"),
        (["k"], "values without names"),
        (ds.HivePartitioning(text, null_fallback="none"), "null_fallback='none'"),
        (ds.HivePartitioning(text, segment_encoding="none"), "segment_encoding='none'"),
        (ds.HivePartitioning.discover(infer_dictionary=True), "no dictionaries here"),
        (ds.HivePartitioning(pa.schema([("k", pa.dictionary(pa.int8(), pa.string()))])), "no dictionaries"),
    ):  # fmt: skip
        with pytest.raises(ps.UnsupportedError, match=words):
            ps.scan(lake, partitioning=given)
    with pytest.raises(TypeError, match="partitioning='hiv'"):
        ps.scan(lake, partitioning="hiv")


@pytest.mark.parametrize("owner", INSTEAD)
def test_names_of_other_libraries_are_answered(path: str, owner: str) -> None:
    """Each is missing, and its error names something that there is."""
    file = ps.open(path)
    at: Any = {
        "Column": ps.col("a"),
        "Scan": ps.scan(path),
        "ParquetFile": file,
        "RowGroup": file.row_groups[0],
        "DatasetScanner": ps.dataset(path).scanner(),
        "pageseek": ps,
        "pageseek.aio": ps.aio,
        "pageseek.polars": ps.polars,
    }[owner]
    for name, instead in INSTEAD[owner].items():
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': ") as raised:
            getattr(at, name)
        assert instead in str(raised.value)
        found = re.match(r"write (pageseek\.)?(?:open\(path\)\.)?(\w+)", instead)
        if found:
            there = ps if found[1] else file if "open" in instead else at
            assert hasattr(there, found[2]) or found[2] == "open", instead


def test_a_name_that_is_spelled_wrongly_is_guessed(path: str) -> None:
    for at, name, meant in ((ps, "read_tabel", "read_table"), (ps.aio, "read_tabel", "read_table"), (ps.scan(path), "to_panda", "to_pandas"), (ps.col("a"), "is_nul", "is_null")):  # fmt: skip
        with pytest.raises(AttributeError, match=f"did you mean {meant}"):
            getattr(at, name)
    with pytest.raises(AttributeError, match=r"has no attribute .zzzz.$"):
        _ = ps.scan(path).zzzz  # type: ignore[attr-defined]
    assert not hasattr(ps.col("a"), "__array__")
    assert copy.deepcopy(ps.scan(path)).count_rows() == 10


@pytest.mark.parametrize("more", ["a > 3", ps.col("a") > 3])
def test_two_conditions_are_joined_or_given_one_after_the_other(path: str, more: Any) -> None:
    with pytest.raises(TypeError, match=r"write a & b, or 'a and b', or .filter\(a\).filter\(b\)"):
        ps.scan(path).filter("a < 5", more)


def test_batches_have_at_most_so_many_rows(path: str) -> None:
    scan = ps.scan(path)
    for batches in (scan.to_batches(batch_size=4), scan.to_reader(4), ps.scan(path, batch_size=4)):
        assert [batch.num_rows for batch in batches] == [4, 4, 2]
    for wrong, error in ((0, ValueError), ("4", TypeError)):
        with pytest.raises(error, match="batch_size="):
            scan.to_batches(wrong)  # type: ignore[arg-type]


def test_columns_and_filters_of_other_libraries(path: str) -> None:
    scan: Any = ps.scan(path)
    with pytest.raises(TypeError, match=r"scan\['a'\]: write select\('a'\)"):
        scan["a"]
    with pytest.raises(TypeError, match="a list of names as text"):
        scan.select(ps.col("a"))
    pl = pytest.importorskip("polars")
    with pytest.raises(ps.PredicateError, match=r"one for pageseek.polars.scan"):
        scan.filter(pl.col("a") == 3)
