"""Values of parameters in filters: they are never a part of the text."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

DAY = dt.date(2024, 1, 31)
IDS = [uuid.UUID(int=i << 70 | 7) for i in range(40)]
COLUMNS: dict[str, list[Any]] = {
    "i": [*range(40)],
    "f": [i / 10 for i in range(40)],
    "s": [f"it's {i}" if i % 3 else None for i in range(40)],
    "b": [bytes([i]) for i in range(40)],
    "d": [DAY + dt.timedelta(i) for i in range(40)],
    "t": [dt.datetime(2024, 1, 31, 12) + dt.timedelta(i) for i in range(40)],
    "m": [Decimal(i) / 4 for i in range(40)],
    "u": IDS,
    "yes": [i % 2 == 0 for i in range(40)],
    "tags": [[i, i + 1] for i in range(40)],
}
TABLE = pa.table({**COLUMNS, "u": pa.array([one.bytes for one in IDS], pa.uuid())})


@pytest.fixture(scope="module")
def source() -> bytes:
    file = io.BytesIO()
    pq.write_table(TABLE, file, row_group_size=10, write_page_index=True)
    return file.getvalue()


def numbers(source: Any, condition: Any, params: Any) -> list[int]:
    found = ps.read_table(source, columns=["i"], filter=condition, params=params)["i"].to_pylist()
    assert (
        ps.scan(source).filter(condition, params).select("i").to_table()["i"].to_pylist() == found
    )
    return found


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("tags", "yes")])
def test_a_value_of_every_type(source: bytes, name: str) -> None:
    value = COLUMNS[name][13]
    text, at = f"{name} = ?", [13]
    assert numbers(source, text, [value]) == at
    assert numbers(source, text, (value,)) == at
    assert numbers(source, f"{name} = :k", {"k": value}) == at
    assert numbers(source, f":k = {name}", {"k": value}) == at
    assert numbers(source, f"{name} in ?", [[value, value]]) == at
    assert numbers(source, f"{name} in (?, ?)", [value, None]) == at
    assert numbers(source, f"{name} between ? and :k".replace(":k", "?"), [value, value]) == at
    assert numbers(source, ps.col(name) == ps.param("k"), {"k": value}) == at
    assert numbers(source, ps.col(name).isin(ps.param("k")), {"k": [value]}) == at
    assert numbers(source, f"{name} = ?", [None]) == []
    assert numbers(source, f"not ({name} = ?)", [None]) == []
    assert numbers(source, f"{name} != ? or i = 1", [None]) == [1]


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("s like ?", ["%1_"], [10, 11, 13, 14, 16, 17, 19]),
        ("s like ? escape ?", ["it!'s 2", "!"], [2]),
        ("s like ?", [pa.scalar("it's 2")], [2]),
        ("s like ?", [pa.scalar("it's 2", pa.large_string())], [2]),
        ("s like ?", [pa.scalar("it's 2", pa.string_view())], [2]),
        ("s like ?", [pa.scalar(None, pa.string())], []),
        ("s ilike ?", [pa.scalar("IT's 2")], [2]),
        ("starts_with(s, ?)", [pa.scalar("it's 31")], [31]),
        ("b = ?", [pa.scalar(b"\x05")], [5]),
        ("starts_with(s, ?)", ["it's 2"], [2, 20, 22, 23, 25, 26, 28, 29]),
        ("starts_with(s, ?)", [None], []),
        ("? = any(tags)", [5], [4, 5]),
        ("any(tags) = :k or i = :k", {"k": 5}, [4, 5]),
        ("i in ?", [[]], []),
        ("not (i in ?)", [[*range(1, 40)]], [0]),
        ("i not in ?", [[None, 1]], []),
        ("i in ?", [np.array([3, 4, 999])], [3, 4]),
        ("i in ?", [pa.array([3, None])], [3]),
        ("i in ?", [range(38, 99)], [38, 39]),
        ("i in ?", [{7}], [7]),
        ("i < ?", [np.int8(2)], [0, 1]),
        ("i < ?", [pa.scalar(2)], [0, 1]),
        ("i < ?", [1.5], [0, 1]),
        ("b = ?", [memoryview(b"\x05")], [5]),
        ("yes = ? and i < ?", [True, 3], [0, 2]),
        ("? and i = 4", [True], [4]),
        ("? and i = 4", [False], []),
        ("? is null and i = 4", [None], [4]),
        ("? = ? and i = 4", [1, 1], [4]),
        ("s = ?", ["' or 1 = 1 --"], []),
        ("s = '?' or i = ?", [2], [2]),
        ("i = ? -- and :k\n", [2], [2]),
        ('"i" = (?)', [2], [2]),
    ],
)
def test_where_a_parameter_may_stand(source: bytes, text: str, params: Any, expected: Any) -> None:
    assert numbers(source, text, params) == expected


def test_a_pattern_may_be_a_scalar_of_arrow(source: bytes) -> None:
    assert numbers(source, ps.col("s").like(pa.scalar("it's 2")), None) == [2]
    with pytest.raises(ps.PredicateError, match="a str, or bytes"):
        ps.col("s").like(pa.scalar(5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "params", "words"),
    [
        ("i = ?", [], "this [?] is number 1, and params has 0 values"),
        ("i = ? and i = ?", [1], "this [?] is number 2, and params has 1 value"),
        ("i = ?", [1, 2], "params has 2 values, and the filter has 1 [?]"),
        ("i = 1", {"k": 2}, "no parameter :k; there are none"),
        ("i = :key", {"key": 1, "kez": 2}, "no parameter :kez; did you mean 'key'?"),
        ("i = :key", {"Key": 1}, ":key has no value: did you mean 'Key'?"),
        ("i = :key", [1], "give params={'key': ...}"),
        ("i = ?", {"key": 1}, "params is a dict; write :name"),
        ("i = ?", 5, "params=5: a list with a value for each"),
        ("s = ?", "abc", "params='abc': a list with a value for each"),
        ("i = ?", [[1, 2]], "a list; write IN [?], without parentheses"),
        ("i in (?)", [[1, 2]], "a list; write IN [?], without parentheses"),
        ("i in ?", [1], r"not 1; write IN \([?]\) for one value"),
        ("s in ?", ["abc"], r"not 'abc'; write IN \([?]\)"),
        ("i = ?", [ps.col("f")], "which is no value"),
        ("i = ?", ["x"], "column 'i' of type int64 cannot be compared with 'x'"),
        ("i = $1", [1], "a parameter is written [?] or :name"),
        ("i = ?", None, r"[?] has no value: give params=\[...\]"),
        ("i = :k", None, r"no value: give the filter to .*, or params={'k': ...}"),
        ("i = 1 and", [], "write a column"),
        (None, [1], "params: there is no filter"),
        ([("i", "=", 1)], [1], "params: they belong to a filter in SQL"),
        (ps.col("i") == 1, {"k": 1}, "no parameter :k"),
        (ps.col("i") == ps.param("k"), {}, ":k has no value"),
        (ps.col("i") == ps.param("k"), [1], "give params={'k': ...}"),
    ],
)
def test_errors_say_what_is_missing(source: bytes, text: Any, params: Any, words: str) -> None:
    with pytest.raises(ps.PredicateError, match=words):
        ps.read_table(source, filter=text, params=params)


def test_errors_point_at_the_parameter(source: bytes) -> None:
    with pytest.raises(ps.PredicateError, match=r"\n  s = 'x' and i = \?\n {18}\^") as caught:
        ps.read_table(source, filter="s = 'x' and i = ?", params=[])
    assert caught.value.at == 16


def test_a_prepared_query_takes_names_in_sql(source: bytes) -> None:
    query = ps.scan(source).select("i").prepare("i = :k")
    assert query.parameters == ("k",)
    assert query(5)["i"].to_pylist() == [5]
    assert query.many([3, 1])["i"].to_pylist() == [3, 1]
    listed = ps.scan(source).select("i").prepare("i in :ks and starts_with(s, :p)")
    assert listed(ks=[1, 2, 3], p="it")["i"].to_pylist() == [1, 2]
    ids = ps.scan(source).select("i").prepare("u = :u")
    assert ids.many([IDS[3], str(IDS[5]), IDS[7].bytes])["i"].to_pylist() == [3, 5, 7]
    with pytest.raises(ps.PredicateError, match="in a prepared query write :name"):
        ps.scan(source).prepare("i = ?")


def test_parameters_prune(source: bytes) -> None:
    for condition, params in (("i = ?", [25]), ("u = ?", [IDS[25]]), ("u = ?", [str(IDS[25])])):
        report = ps.scan(source, filter=condition, params=params).explain(analyze=True)
        assert report.to_dict()["row_groups"]["read"] == 1


# ---- UUIDs


@pytest.mark.parametrize(
    "text",
    [
        f"u = '{IDS[9]}'",
        f"u = uuid '{IDS[9]}'",
        f"u = '{IDS[9].hex.upper()}'",
        f"u in (uuid '{IDS[9]}', X'{IDS[9].hex}', null)",
        f"u >= '{IDS[9]}' and u < '{IDS[10]}'",
        f"u between '{IDS[9]}' and '{IDS[9]}'",
    ],
)
def test_uuids_in_sql(source: bytes, text: str) -> None:
    assert numbers(source, text, None) == [9]


@pytest.mark.parametrize(
    "value", [IDS[9], IDS[9].bytes, str(IDS[9]), pa.scalar(IDS[9].bytes, pa.uuid())]
)
def test_uuids_in_python(source: bytes, value: Any) -> None:
    column = ps.col("u")
    for condition in (column == value, column.isin([value]), [("u", "=", value)]):
        assert numbers(source, condition, None) == [9]
    assert numbers(source, column.isin(IDS * 2), None) == [*range(40)]
    assert numbers(source, column.isin(TABLE["u"]), None) == [*range(40)]


def test_a_uuid_is_shown_as_sql_writes_it(source: bytes) -> None:
    shown = repr(ps.col("u") == IDS[9])
    assert shown == f"u = uuid '{IDS[9]}'"
    assert numbers(source, shown, None) == [9]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("u = '12'", "cannot be compared with '12': write it as uuid '550e8400"),
        ("u = uuid '12'", "UUID: '12' is no UUID, such as '550e8400"),
        ("u = 5", "write it as uuid '550e8400"),
        (ps.col("u") == "12", "give a uuid.UUID, its 16 bytes, or its text"),
        (ps.col("i") == IDS[3], "not declared as a UUID; give value.bytes or str"),
        ("u = '550e8400-e29b41d4-a716446655440000'", "cannot be compared"),
        ("u = '{550e8400-e29b-41d4-a716-446655440000}'", "cannot be compared"),
    ],
)
def test_what_is_no_uuid(source: bytes, condition: Any, words: str) -> None:
    with pytest.raises(ps.PredicateError, match=words):
        ps.read_table(source, filter=condition)


def test_a_prefix_of_a_uuid_is_no_uuid(source: bytes) -> None:
    """Bytes of another length equal nothing, as of every column of a fixed width."""
    assert numbers(source, ps.col("u") == IDS[9].bytes[:8], None) == []
