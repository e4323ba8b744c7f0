"""ILIKE: small letters of value and pattern are compared, one character for one; it never prunes a row that passes."""

from __future__ import annotations

import io
import itertools
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps

WORDS = [
    "abc", "ABC", "aBcd", "12ab", "12AB", "12", "", "K", "k", "\u212a", "\u00c4rger", "\u00e4RGER", "\u0130x", "ix", "stra\u00dfe",
    "STRASSE", "\u03a3\u03b1\u03c2", "\u03c3\u0391\u03c3", "a_c", "a%c", "\U00010400", "\U00010428", None, "a\nB", "12_\u212a",
]  # fmt: skip


def lowered(text: str) -> str:
    return "".join(pc.utf8_lower(pa.array(list(text), pa.string())).to_pylist())


def matches(value: str, pattern: str) -> bool:
    """LIKE by hand, over small letters."""
    if not pattern:
        return not value
    if pattern[0] == "%":
        return any(matches(value[i:], pattern[1:]) for i in range(len(value) + 1))
    return bool(value) and pattern[0] in ("_", value[0]) and matches(value[1:], pattern[1:])


def file_of(values: list[Any], kind: pa.DataType | None = None, **options: Any) -> bytes:
    file = io.BytesIO()
    table = pa.table({"n": range(len(values)), "s": pa.array(values, kind or pa.string())})
    pq.write_table(table, file, row_group_size=4, write_page_index=True, **options)
    return file.getvalue()


@pytest.fixture(scope="module", params=[True, False], ids=["dictionary", "plain"])
def source(request: pytest.FixtureRequest) -> bytes:
    return file_of(sorted(WORDS, key=lambda word: word or ""), use_dictionary=request.param)


def passing(source: bytes, condition: Any, **options: Any) -> list[Any]:
    return ps.read_table(source, columns=["s"], filter=condition, **options)["s"].to_pylist()


def test_ilike_is_like_over_small_letters(source: bytes) -> None:
    chance = random.Random(5)
    everything = ps.read_table(source)["s"].to_pylist()
    patterns = [
        "",
        "%",
        "_",
        "%%",
        "12%",
        "12\u212a%",
        "k",
        "\u212a",
        "i_",
        "\u03a3%\u03a3",
        "STRA_E",
        "%RG%",
        "1%B",
    ]
    patterns += ["".join(chance.choices("aBkK%_12\u212a\u00c4\u00e4\u0130\u03c3\U00010400", k=n)) for n in range(1, 5) for _ in range(40)]  # fmt: skip
    for pattern in patterns:
        small = lowered(pattern)
        expected = [w for w in everything if w is not None and matches(lowered(w), small)]
        rest = [w for w in everything if w is not None and not matches(lowered(w), small)]
        for prune in (True, False):
            assert passing(source, ps.col("s").ilike(pattern), prune=prune) == expected, pattern
            assert passing(source, "s ilike ?", params=[pattern], prune=prune) == expected, pattern
            assert passing(source, "s not ilike ?", params=[pattern], prune=prune) == rest, pattern


def test_no_sign_has_a_small_letter_that_is_a_sign_of_ascii_without_case() -> None:
    """What lets the beginning of a pattern prune."""
    signs = pa.array([chr(c) for c in itertools.chain(range(0xD800), range(0xE000, 0x110000))])
    small = pc.utf8_lower(signs)
    moved = signs.filter(pc.not_equal(signs, small)).to_pylist()
    to = small.filter(pc.not_equal(signs, small)).to_pylist()
    assert len(moved) > 1000
    assert not [a for a, b in zip(moved, to, strict=True) if b[0] < "\x80" and not b.isalpha()]
    assert all(len(b) == 1 for b in to)


def test_escapes(source: bytes) -> None:
    assert passing(source, r"s ilike 'A\_C'") == ["a_c"]
    assert passing(source, "s ilike 'AX%c' escape 'X'") == ["a%c"]
    assert passing(source, ps.col("s").ilike("A!_C", escape="!")) == ["a_c"]
    assert passing(source, "s ilike null") == []
    assert repr(ps.col("s").ilike("A!_'", escape="!")) == "s ilike 'A!_''' escape '!'"


def test_what_precedes_the_first_letter_prunes() -> None:
    source = file_of([f"{i:03}-Name" for i in range(40)])
    scan = ps.scan(source, filter="s ilike '017-nA%'")
    assert scan.to_table()["n"].to_pylist() == [17]
    assert scan.explain(analyze=True).to_dict()["row_groups"]["read"] == 1
    assert ps.scan(source, filter="s ilike 'n017%'").count_rows() == 0


def test_elements_of_lists_and_columns_that_are_missing(tmp_path: Any) -> None:
    lists = pa.table({"s": pa.array([["A", "b"], ["c"], None, [None]])})
    pq.write_table(lists, tmp_path / "a.parquet")
    assert ps.scan(tmp_path, filter="any(s) ilike 'B'").count_rows() == 1
    (tmp_path / "k=Xy").mkdir()
    pq.write_table(pa.table({"t": ["Q"]}), tmp_path / "k=Xy/a.parquet")
    folder = tmp_path / "k=Xy"
    pq.write_table(pa.table({"u": ["Q"]}), folder / "b.parquet")
    both = ps.scan(folder.parent / "k=Xy", filter="t ilike 'q'")
    assert both.count_rows() == 1
    assert ps.scan(str(tmp_path / "**/[ab].parquet").replace("**", "k=*"), filter="k ilike 'xY'").count_rows() == 2  # fmt: skip


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("string_type", ["string", "large", "view"])
def test_all_types_of_text(kind: pa.DataType, string_type: Any) -> None:
    source = file_of(["Ab", "aB", "c", None], kind)
    assert passing(source, "s ilike 'AB'", string_type=string_type) == ["Ab", "aB"]
    assert passing(source, "s ilike 'AB'", dictionary_columns=["s"]) == ["Ab", "aB"]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("n ilike '1%'", "column of type int64 is no text"),
        ("s ilike X'00'", "the pattern of ILIKE is a text"),
        ("s ilike 5", "the pattern of ILIKE is a text"),
        ("'x' ilike s", "ILIKE tests a column"),
        ("s ilike 'a' escape 'xx'", "ESCAPE takes one character"),
        ("lower(s) = 'x'", "no function lower; ILIKE compares without regard.*pc.utf8_lower"),
        ("length(s) = 5", r"pc.utf8_length\(pc.field\('name'\)\)"),
        ("n + 1 = 5", "without arithmetic.*pc.field"),
        ("n * 2 = 5", "without arithmetic.*pc.field"),
        ("n - 1 = 5", "without arithmetic.*pc.field"),
    ],
)
def test_errors(condition: str, words: str) -> None:
    source = file_of(["a"])
    with pytest.raises(ps.PredicateError, match=words):
        ps.read_table(source, filter=condition)


def test_errors_of_the_method() -> None:
    for pattern, words in ((b"a", "bytes have no case"), (5, "ilike.5.: a str"), (ps.param("k"), "no parameter")):  # fmt: skip
        with pytest.raises(ps.PredicateError, match=words):
            ps.col("s").ilike(pattern)


def test_columns_compute_nothing() -> None:
    n: Any = ps.col("n")
    for compute in (
        lambda: n + 1 > 3, lambda: 1 + n, lambda: n - 1, lambda: 1 - n, lambda: n * 2, lambda: 2 * n, lambda: n / 2, lambda: 2 / n,
        lambda: n // 2, lambda: n % 2, lambda: n**2, lambda: -n, lambda: abs(n),
    ):  # fmt: skip
        with pytest.raises(ps.PredicateError, match=r"^n: .*without arithmetic.*pc.field"):
            compute()


def test_arithmetic_is_that_of_pyarrow() -> None:
    """What the errors and the documentation advise instead."""
    source = file_of(["Ab", "c", "DE", None])
    assert passing(source, pc.field("n") + 1 > 3) == [None]
    assert passing(source, pc.utf8_lower(pc.field("s")) == "ab") == ["Ab"]
    assert passing(source, pc.utf8_length(pc.field("s")) == 2) == ["Ab", "DE"]
    scan = ps.scan(source, filter="n < 3").filter(pc.multiply_checked(pc.field("n"), 2) >= 2)
    assert scan.to_table()["n"].to_pylist() == [1, 2]
