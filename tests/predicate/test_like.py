"""LIKE: wildcards and escapes compared with plain Python; which part of a pattern prunes."""

from __future__ import annotations

import io
import itertools
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pageseek as ps
from pageseek.predicate.bound import Bound, BoundLeaf
from pageseek.predicate.like import compile_pattern, matcher
from pageseek.predicate.row_tests import row_tests
from pageseek.scanning.one_file import group_reader, joined_groups
from support.tiers import examples

TEXTS = ["", "a", "b", "ab", "ba", "a\nb", "a%b", "a_b", "a\\b", "é", "aé", "€b", "aab", "\0", "a.b", "(a)*", "😀", "A"]  # fmt: skip
X = ps.col("x")


def written(values: list[Any], kind: pa.DataType, rows: int = 4) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(values, kind)})
    pq.write_table(
        table, sink, row_group_size=1000, write_page_index=True, data_page_size=1,
        write_batch_size=rows, use_dictionary=False,
    )  # fmt: skip
    return sink.getvalue()


def oracle(pattern: Any, escape: str, value: Any) -> bool:
    """By a regular expression of Python's, which counts code points in text and bytes in bytes."""
    as_text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    value = value if isinstance(value, str) else value.decode("latin-1")
    out, k = [], 0
    while k < len(as_text):
        char = as_text[k]
        if escape and char == escape:
            k += 1
            out.append(re.escape(as_text[k]))
        else:
            out.append({"%": ".*", "_": "."}.get(char) or re.escape(char))
        k += 1
    return re.fullmatch("".join(out), value, re.DOTALL) is not None


KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), [None, *TEXTS]),
    "large": (pa.large_string(), [None, *TEXTS]),
    "binary": (pa.binary(), [None, b"\xff", b"\xc3", *(t.encode() for t in TEXTS)]),
    "fixed": (pa.binary(2), [None, b"ab", b"a\n", b"\xff\x00", "é".encode(), b"a%", b"a_"]),
}
FILES = {name: written(values, kind) for name, (kind, values) in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(150), deadline=None)
@given(
    parts=st.lists(st.sampled_from([*TEXTS, "%", "_", "%", "_", "\\%", "\\_", "\\\\"]), max_size=5),
    escape=st.sampled_from(["\\", "!", "", "a", "%"]),
)
def test_any_pattern(name: str, parts: list[str], escape: str) -> None:
    text = "".join(parts)
    pattern: Any = text if KINDS[name][0] in (pa.string(), pa.large_string()) else text.encode()
    as_text = text if isinstance(pattern, str) else pattern.decode("latin-1")
    ends, k = False, 0
    while escape and k < len(as_text):
        ends = as_text[k] == escape and k + 1 == len(as_text)
        k += 1 + (as_text[k] == escape)
    if ends:
        with pytest.raises(ps.PredicateError, match="nothing follows"):
            ps.read_table(FILES[name], filter=X.like(pattern, escape))
        return
    values = KINDS[name][1]
    passing = [v for v in values if v is not None and oracle(pattern, escape, v)]
    others = [v for v in values if v is not None and not oracle(pattern, escape, v)]
    test = X.like(pattern, escape)
    assert ps.read_table(FILES[name], filter=test)["x"].to_pylist() == passing
    assert ps.read_table(FILES[name], filter=~test)["x"].to_pylist() == others


def test_every_short_pattern() -> None:
    for chars in itertools.product("ab%_", repeat=3):
        pattern = "".join(chars)
        found = ps.read_table(FILES["string"], filter=X.like(pattern))["x"].to_pylist()
        assert found == [t for t in TEXTS if oracle(pattern, "\\", t)], pattern


@pytest.mark.parametrize(
    ("pattern", "parts", "prefix", "exact", "only"),
    [
        ("foo", (b"foo",), b"foo", True, False),
        ("p%", (b"p", "%"), b"p", False, True),
        ("p%%%", (b"p", "%"), b"p", False, True),
        ("%", ("%",), b"", False, True),
        ("a_c%", (b"a", "_", b"c", "%"), b"a", False, False),
        ("\\%a%", (b"%a", "%"), b"%a", False, True),
        ("", (), b"", True, False),
    ],
)
def test_what_a_pattern_comes_to(
    pattern: str, parts: tuple[Any, ...], prefix: bytes, exact: bool, only: bool
) -> None:
    made = compile_pattern(pattern, "\\")
    assert (made.parts, made.prefix, made.exact, made.only_prefix) == (parts, prefix, exact, only)


SORTED = written([f"{c}{k:03}" for c in "abcd" for k in range(250)], pa.string(), 50)


@pytest.mark.parametrize(
    ("test", "most", "rows"),
    [
        (X.like("b100"), 60, 1),
        (X.like("b1%"), 150, 100),
        (X.like("b1_5"), 150, 10),
        (X.like("b%5"), 300, 25),
        (X.like("%5"), 1000, 100),
        (~X.like("b1_5"), 1000, 990),
        (~X.like("%"), 0, 0),
        (~X.like("b%"), 800, 750),
    ],
)
def test_what_is_read(test: Any, most: int, rows: int) -> None:
    scan = ps.scan(SORTED, filter=test)
    assert scan.explain().rows.read <= most
    assert scan.count_rows() == rows


def test_what_like_does_not_take() -> None:
    for wrong in (lambda: X.like(5), lambda: X.like("a", "ab"), lambda: X.like("a", None)):
        with pytest.raises(ps.PredicateError):
            wrong()  # type: ignore[no-untyped-call]
    with pytest.raises(ps.PredicateError, match="give str for text"):
        ps.read_table(FILES["string"], filter=X.like(b"a%"))
    with pytest.raises(ps.PredicateError, match="give str for text"):
        ps.read_table(FILES["binary"], filter=X.like("a%"))
    long = written(["a" * 100_000, "b"], pa.string())
    assert ps.read_table(long, filter=X.like("%" + "a" * 90_000)).num_rows == 1
    assert ps.read_table(long, filter=X.like("_%" * 4_999)).num_rows == 1
    with pytest.raises(ps.PredicateError, match="above the limit"):
        ps.read_table(long, filter=X.like("_" * 5_000_000))


def test_repr() -> None:
    assert repr(X.like("a%")) == "x like 'a%'"
    assert repr(~X.like("a!%", "!")) == "not (x like 'a!%' escape '!')"


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_many_prefixes_are_one_test(
    kind: pa.DataType, negate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{k:04}" for k in range(3_000)] + ["", "0", "07", None, "zz"]
    given = [t.encode() if t is not None and kind == pa.binary() else t for t in texts]
    sink = io.BytesIO()
    table = pa.table({"s": pa.array(given, kind), "row": range(len(texts))})
    pq.write_table(table, sink, data_page_size=500, write_page_index=True, row_group_size=700)
    prefixes = ["0001", "00011", "001", "17", "170", "2999x", "z", "00", "0001"]
    own = [p.encode() if kind == pa.binary() else p for p in prefixes]
    tests: list[Any] = [ps.col("s").starts_with(p) for p in own]
    tests[2] = ps.col("s").like(own[2] + (b"%" if kind == pa.binary() else "%"))
    condition = tests[0]
    for test in tests[1:]:
        condition = condition | test
    condition = ~condition if negate else condition
    wanted = [
        row
        for row, text in enumerate(texts)
        if text is not None and any(text.startswith(p) for p in prefixes) != negate
    ]
    calls = []

    def noted(condition: Bound, *how: Any) -> Any:
        calls.append(condition)
        return row_tests(condition, *how)

    for module in (group_reader, joined_groups):
        monkeypatch.setattr(module, "row_tests", noted)
    found = ps.read_table(sink.getvalue(), filter=condition)
    assert found["row"].to_pylist() == wanted
    assert len(set(map(id, calls))) == 1 and isinstance(calls[0], BoundLeaf)
    again = ps.read_table(sink.getvalue(), filter=condition & (ps.col("row") > 5))
    assert again["row"].to_pylist() == [row for row in wanted if row > 5]


def test_a_prefix_of_nothing_takes_all() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": ["a", "", None, "b"]}), sink)
    tests = [ps.col("s").starts_with(p) for p in ("x", "y", "z", "", "xy")]
    condition = tests[0] | tests[1] | tests[2] | tests[3] | tests[4]
    assert ps.read_table(sink.getvalue(), filter=condition)["s"].to_pylist() == ["a", "", "b"]
    assert ps.read_table(sink.getvalue(), filter=~condition).num_rows == 0


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_bytes_that_are_no_text_are_any_bytes(kind: pa.DataType) -> None:
    given = pa.array([b"a\xffb", b"xa\xc3b", b"ab\xff", b"b", None])
    values = (
        given.cast(pa.large_binary()).view(kind) if kind == pa.large_string() else given.view(kind)
    )
    for pattern, wanted in (
        ("a%b", [True, False, False, False, None]),
        ("%a%b%", [True, True, True, False, None]),
        ("%b", [True, True, False, True, None]),
    ):
        match = matcher(compile_pattern(pattern, "\\"), True)
        assert match([pa.chunked_array([values])]).to_pylist() == wanted
