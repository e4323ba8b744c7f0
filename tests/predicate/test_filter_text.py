"""Filters are shown as SQL, and errors point at the place in the filter and say what to write instead."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pageseek as ps
from pageseek.base.report import MECHANISMS
from pageseek.base.suggest import nearest, nearest_path
from pageseek.cli.main import main
from pageseek.format.chunks import CHUNK, Chunk
from pageseek.format.types import ABSENT
from pageseek.predicate.filters import to_expression
from pageseek.predicate.sql import parse
from support.opened import open_metadata
from support.tiers import examples

C = ps.col


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (C("day") == dt.date(2024, 1, 31), "day = date '2024-01-31'"),
        (C("t") < dt.datetime(2024, 1, 31, 12, 30), "t < timestamp '2024-01-31 12:30:00'"),
        (C("t") < np.datetime64("2024-01-31T12:30"), "t < timestamp '2024-01-31 12:30:00'"),
        (C("t") == pa.scalar(1, pa.timestamp("ns", "UTC")), "t = timestamp '1970-01-01 00:00:00.000000001+00:00'"),
        (C("at") > dt.time(1, 2, 3, 500), "at > time '01:02:03.000500'"),
        (C("a").isin(["it's", b"\x01", None, True]), "a in ('it''s', X'01', null, true)"),
        (C("price") > Decimal("1.50"), "price > decimal '1.50'"),
        (C("price") > 0.5, "price > 0.5"),
        (C("price") > 0.1, "price > 0.1e0"),
        (C("odd name") == 1, '"odd name" = 1'),
        (C("and") == 1, '"and" = 1'),
        (C("a", "b") == 1, '"a"."b" = 1'),
        (C("a.b") == 1, "a.b = 1"),
        (C("a").starts_with("x"), "starts_with(a, 'x')"),
        (C("tags").any().between(1, 5), "any(tags) between 1 and 5"),
        (~C("a").is_null(), "a is not null"),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_is_shown_as_sql(condition: Any, text: str) -> None:
    assert repr(condition) == text
    assert repr(parse(text)) == text


def plain(e: Any) -> Any:
    """A condition as data that can be compared; numbers by value and kind."""
    if isinstance(e, ps.Expression):
        parts = [plain(getattr(e, n)) for n in e.__slots__ if n not in ("packed", "place")]
        return type(e).__name__, parts
    if hasattr(e, "path"):
        return type(e).__name__, e.path
    if isinstance(e, tuple):
        return [plain(one) for one in e]
    if isinstance(e, float):
        text = repr(e)
        if e - e != 0 or "e" in text or Decimal(text) != Decimal(e):
            return "double", text
        e = Decimal(text)  # which is the same number
    if isinstance(e, Decimal):
        return "decimal", e.normalize().as_tuple() if e.is_finite() else str(e)
    if isinstance(e, pa.Scalar):
        return "ns", str(e.type), e.value
    if isinstance(e, dt.datetime):
        return "datetime", e.utcoffset(), e.replace(tzinfo=None)
    return type(e).__name__, e


names = st.text(min_size=1, max_size=6).filter(lambda name: "\0" not in name)
columns = st.one_of(
    st.sampled_from(["a", "b.c", "and", "date", "x", "any"]).map(C),
    st.lists(names, min_size=1, max_size=3).map(lambda parts: C(*parts)),
)
minutes = st.integers(-1439, 1439).map(lambda n: dt.timezone(dt.timedelta(minutes=n)))
values = st.one_of(
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.decimals(allow_nan=False).filter(lambda n: abs(n.as_tuple().exponent) < 100 if n.is_finite() else True),  # type: ignore[operator]
    st.text(max_size=8),
    st.binary(max_size=8),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=minutes),
    st.times(),
    st.none(),
)  # fmt: skip
leaves = st.one_of(
    st.tuples(columns, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values).map(lambda t: t[0]._compare(t[1], t[2])),
    st.tuples(columns, st.lists(values, min_size=1, max_size=5)).map(lambda t: t[0].isin(t[1])),
    st.tuples(columns, values, values).map(lambda t: t[0].any().between(t[1], t[2])),
    st.tuples(columns, values).map(lambda t: t[0].any() == t[1]),
    st.tuples(columns, columns).map(lambda t: t[0]._compare("<", t[1])),
    st.tuples(columns, st.text(max_size=5)).map(lambda t: t[0].starts_with(t[1])),
    st.tuples(columns, st.text(max_size=5), st.sampled_from(["\\", "!", "'", ""])).map(lambda t: t[0].like(t[1], t[2])),
    columns.map(lambda c: c.is_null()),
    columns.map(lambda c: c.is_not_null()),
    columns.map(lambda c: c.is_nan()),
)  # fmt: skip
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda t: t[0] & t[1]),
        st.tuples(inner, inner).map(lambda t: t[0] | t[1]),
        inner.map(lambda e: ~e),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(400), deadline=None)
@given(conditions)
def test_what_is_shown_is_read_back(condition: ps.Expression) -> None:
    made = to_expression(condition)
    text = repr(made)
    if "..." in text:  # values of more than 60 characters are cut short
        return
    assert plain(to_expression(parse(text))) == plain(made), text


def test_explain_shows_sql(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"day": [dt.date(2024, 1, 31)]}), path)
    report = ps.scan(path, filter=C("day") == dt.date(2024, 1, 31)).explain()
    assert report.to_dict()["filter"] == "day = date '2024-01-31'"
    assert "where day = date '2024-01-31'" in str(report)


# -- remedies fit the way that a filter was written -----------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    data = pa.table(
        {"Amount": [1], "price": [Decimal("1.50")], "ok": [True], "name": ["x"], "raw": [b"x"], "f": [1.5]}
    )  # fmt: skip
    pq.write_table(data, tmp_path / "sales.parquet")
    return tmp_path / "sales.parquet"


CASES = [
    ("Amount", "5", "give a number, not a str", "write the number without quotes"),
    ("f", "5", "give a number, not a str", "write the number without quotes"),
    ("price", "5", "give a Decimal or an int, not a str", "write the number without quotes"),
    ("ok", "true", "give True or False, not a str", "write true or false without quotes"),
    ("name", 5, "give str, not int", "write it in quotes"),
    ("raw", "x", "give str for text and bytes for binary", "X'00ff' for binary"),
]


@pytest.mark.parametrize(("name", "value", "python", "sql"), CASES)
def test_remedies_fit_the_api(path: Path, name: str, value: Any, python: str, sql: str) -> None:
    for condition in (C(name) == value, [(name, "=", value)], C(name).isin([value])):
        with pytest.raises(ps.PredicateError) as caught:
            ps.read_table(path, filter=condition)
        assert python in str(caught.value)
        assert "quotes" not in str(caught.value) and "SQL" not in str(caught.value)
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table(path, filter=repr(C(name) == value))
    assert sql in str(caught.value) and "a str" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("name = x", "a text is written in single quotes, 'x'"),
        ('name = "x"', "a text is written in single quotes, 'x'"),
        ("Amount > 1 & Amount < 3", "write AND here"),
        ("Amount > 1 | Amount < 3", "write OR here"),
        ("~ Amount > 1", "write NOT here"),
        ("startswith(name, 'x')", "did you mean 'starts_with'"),
        ("day = 2024-01-31", "a date is written so: date '2024-01-31'"),
        ("day = 5", "write it as date '2024-01-31'"),
        ("day = 'x'", "write it as date '2024-01-31'"),
        ("length = 5", "give a timedelta"),
    ],
)
def test_what_newcomers_write_is_answered_by_what_to_write(
    tmp_path: Path, text: str, remedy: str
) -> None:
    data = pa.table(
        {"Amount": [1], "name": ["x"], "day": [dt.date(2024, 1, 31)], "length": [dt.timedelta(1)]}
    )
    pq.write_table(data, tmp_path / "x.parquet")
    for source in (tmp_path, tmp_path / "x.parquet"):
        with pytest.raises(ps.PredicateError) as caught:
            ps.read_table(source, filter=text)
        assert remedy in str(caught.value)
        assert "^" in str(caught.value)


# -- names that are not there ------------------------------------------------------------------------


def test_columns_that_are_not_there_are_answered_by_the_nearest(path: Path) -> None:
    cases: list[Any] = [
        lambda: ps.read_table(path, columns=["amount"]),
        lambda: ps.read_table(path, filter=C("AMOUNT") == 1),
        lambda: ps.read_table(path, filter="amuont = 1"),
        lambda: ps.read_table(path, dictionary_columns=["Amoun"]),
        lambda: ps.index.attach(path, bloom=["amount"], in_place=True),
        lambda: ps.index.attach(path, distinct=["amounts"], in_place=True),
        lambda: open_metadata(path).statistics("amount"),
    ]
    for case in cases:
        with pytest.raises(ps.PageseekError, match="did you mean 'Amount'") as caught:
            case()
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)


def test_of_many_columns_the_nearest_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"c{i:04}_total": [i] for i in range(500)} | {"Price": [1]}), path)
    with pytest.raises(ps.PredicateError, match=r"did you mean 'Price'\? there are 501 names$"):
        ps.read_table(path, columns=["price"])
    with pytest.raises(ps.PredicateError, match="'c0123_total'") as caught:
        ps.read_table(path, columns=["c0123total"])
    assert len(str(caught.value)) < 300
    with pytest.raises(ps.PredicateError, match=r"there are 'c0000_total', .*\.\.\."):
        ps.read_table(path, columns=["zzzzzzzzzzzzzzz"])


def test_leaves_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"item": [{"price": 1, "name": "x"}]}), path)
    with pytest.raises(ps.PredicateError, match=r"did you mean 'item\.price'"):
        ps.read_table(path, columns=["item.Price"])


def test_columns_of_folders_and_mechanisms_that_are_not_there(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ps.PredicateError, match="did you mean 'bloom_filter'"):
        ps.read_table(path, filter=C("Amount") == 1, prune=["bloom_filtr"])
    with pytest.raises(ps.PredicateError, match="did you mean 'bloom_filter'"):
        ps.read_table(path, filter=C("Amount") == 1, prune="bloom")
    folder = tmp_path / "lake" / "Year=2024"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), folder / "x.parquet")
    with pytest.raises(ps.UnsupportedError, match="did you mean 'Year'"):
        ps.read_table(tmp_path / "lake", partitioning={"year": pa.int32()})


def test_files_that_are_not_there(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (path.with_name("Sales.parquet"), path.with_name("sale.parquet")):
        with pytest.raises(FileNotFoundError, match=r"did you mean .*sales\.parquet"):
            ps.read_table(wrong)
        assert main(["scan", str(wrong)]) == 1
        assert "did you mean" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match=r"no such file$"):
        ps.read_table(path.with_name("nothing-like-it.csv"))
    short = path.with_name("u.parquet")
    short.touch()
    with pytest.raises(FileNotFoundError, match=r"no such file$"):  # the ending alone is alike
        ps.read_table(path.with_name("nothing.parquet"))
    short.unlink()
    packed = path.with_name("g.parquet.gz")
    packed.touch()
    with pytest.raises(FileNotFoundError, match=r"no such file$"):
        ps.read_table(path.with_name("nope.parquet"))
    packed.rename(path.with_name("nope.parquet.gz"))
    with pytest.raises(FileNotFoundError, match=r"did you mean .*nope\.parquet\.gz"):
        ps.read_table(path.with_name("nope.parquet"))
    path.with_name("nope.parquet.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere$"):
        ps.read_table(path.parent / "nowhere" / "x.parquet")
    lower = path.parent.parent / path.parent.name.upper() / "x.parquet"
    assert nearest_path(str(lower)) == str(path.parent)


def test_the_command_answers_by_the_nearest(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (
        ["inspect", str(path), "--column", "amount"],
        ["scan", str(path), "--where", "amount = 1"],
    ):
        assert main(wrong) == 1
        assert "did you mean 'Amount'" in capsys.readouterr().err


def test_names_are_strings(path: Path) -> None:
    for wrong in ("Amount", [3], [C("Amount")]):
        with pytest.raises(TypeError, match="a list of names as text, such as"):
            ps.read_table(path, columns=wrong)


def test_nearest_names() -> None:
    assert nearest("PRICE", ["prices", "Price", "x"]) == ["Price"]
    assert nearest("prise", ["prices", "Price", "x"])[0] in ("Price", "prices")
    assert nearest("zzz", ["prices", "Price", "x"]) == []


# -- what is not there is shown as such ---------------------------------------------------------------


def test_fields_that_a_footer_leaves_out_are_none(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunk = Chunk._make(CHUNK.unpack(np.full(len(Chunk._fields), ABSENT, np.int64).tobytes()))
    assert "bloom_filter_offset=None" in repr(chunk) and str(ABSENT) not in repr(chunk)
    with open_metadata(path) as file:
        for group in file.row_groups:
            assert ABSENT not in tuple(group)
            assert str(ABSENT) not in repr(group)
        for leaf in file.leaves:
            assert str(ABSENT) not in repr(file.chunks(leaf)) + repr(leaf)
    for flags in ([], ["--json"], ["--pages", "--json"]):
        assert main(["inspect", str(path), *flags]) == 0
        out = capsys.readouterr().out
        assert str(ABSENT) not in out
        if flags:
            json.loads(out)


def test_what_ruled_out_a_folder_is_no_pruner(tmp_path: Path) -> None:
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        pq.write_table(pa.table({"a": [1]}), folder / "x.parquet")
    text = str(ps.scan(tmp_path, filter="year = 2024").explain())
    assert "1 file less: the values in the names of their folders" in text
    assert "registered pruner" not in text


def test_every_mechanism_of_ours_has_a_sentence() -> None:
    from pageseek.prune.registry import names as known
    from pageseek.scanning.aggregates import aggregate_metadata
    from pageseek.scanning.requests import accounting as by

    ours = {*known(), by.FILTER, by.PARTITION, by.LIMIT, by.TAKE, by.NO_ROWS}
    assert ours | {aggregate_metadata.ANSWERED, aggregate_metadata.BOUNDS} <= set(MECHANISMS)


def test_filters_of_pyarrow_stay_as_they_are() -> None:
    assert repr(to_expression(pc.field("a") > 1)) == str(pc.field("a") > 1)


def test_a_list_is_shown_whole_or_cut_so_that_it_is_no_filter(tmp_path: Path) -> None:
    whole = str(C("a").isin(list(range(20))))
    assert str(parse(whole)) == whole and whole.endswith("18, 19)")
    cut = str(C("a").isin(list(range(21))))
    assert cut == "a in (0, 1, 2, 3, 4, 5, ... 15 more)"
    with pytest.raises(ps.PredicateError):
        parse(cut)


def test_a_name_with_a_line_break_stays_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.parquet"
    pq.write_table(pa.table({"x\ny": [1]}), path)
    report = str(ps.scan(path).filter(C("x\ny") == 1).explain())
    lines = report.splitlines()
    assert lines[0].endswith(r'a\nb.parquet: 1 column where "x\ny" = 1')
    assert any(line.startswith(r"  x\ny ") for line in lines)
    assert all(len(line) > 3 for line in lines if line)
