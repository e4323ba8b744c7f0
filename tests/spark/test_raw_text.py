"""Text that is not UTF-8: the bytes are those of Spark's own reader, whoever reads."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, lookup, read

pytestmark = pytest.mark.spark
PIECES = [b"a", b"b", b"\xff", b"\xc3", b"\xa9", b"\xc3\xa9", b"%", b"\xed\xa0\x80", b"\x00", b""]
ROWS = 600
HEX = "hex(s) s", "hex(l) l", "hex(d) d", "hex(n.s) n", "hex(a[0]) a", "i"
QUERIES = [
    f"select {', '.join(HEX)} from {{}}",
    "select i, s from {} where s > 'b'",
    "select i from {} where s = 'ab'",
    "select i from {} where s = cast(x'ff' as string)",
    "select i from {} where l >= cast(x'c3' as string) and n.s < cast(x'ff' as string)",
    "select i from {} where s like '%b%'",
    "select i from {} where s like 'a%b' or l like '%a%b%'",
    "select i from {} where not s like 'a%' and s not in ('b', '')",
    "select hex(s), count(*), hex(min(l)) from {} where s < 'c' group by s",
    "select hex(min(s)), hex(max(l)), count(distinct d) from {}",
    "select t.i, u.i from {} t join {} u on t.s = u.s where u.i < 30",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made, chosen = tmp_path_factory.mktemp("text"), random.Random(1)
    drawn = [b"".join(chosen.choices(PIECES, k=chosen.randrange(4))) for _ in range(ROWS)]
    values = pa.array([None if i % 50 == 7 else value for i, value in enumerate(drawn)])
    text, codes = values.view(pa.string()), values.dictionary_encode()
    table = pa.table(
        {
            "s": text,
            "l": values.cast(pa.large_binary()).view(pa.large_string()),
            "d": pa.DictionaryArray.from_arrays(codes.indices, codes.dictionary.view(pa.string())),
            "n": pa.StructArray.from_arrays([text], ["s"]),
            "a": pa.ListArray.from_arrays(list(range(ROWS + 1)), text),
            "i": range(ROWS),
        }
    )
    for i in range(2):
        part = table.slice(i * ROWS // 2, ROWS // 2)
        pq.write_table(part, made / f"{i}.parquet", data_page_size=500, use_dictionary=not i)
    return str(made)


def answer(spark: Any, query: str, view: str) -> list[str]:
    return sorted(map(str, spark.sql(query.format(view, view)).collect()))


@pytest.mark.parametrize("way", [{}, {"local": False}, {"local": False, "native": False}, None])
def test_queries_have_the_answers_of_sparks_reader(
    spark: Any, folder: str, conf: Callable[[str, str], None], way: dict[str, Any] | None
):
    # With its filters pushed, Spark's reader loses rows that equal such a text.
    conf("spark.sql.parquet.filterPushdown", "false")
    spark.read.parquet(folder).createOrReplaceTempView("theirs")
    ours = read(spark, folder) if way is None else load(spark, folder, **way)
    ours.createOrReplaceTempView("ours")
    for query in QUERIES:
        expected = answer(spark, query, "theirs")
        assert expected
        assert answer(spark, query, "ours") == expected, query


@pytest.mark.parametrize("limit", [None, 0])
def test_keys_are_found_by_their_bytes(spark: Any, folder: str, limit: int | None):
    texts = "select cast(x'ff' as string) s union all select 'ab' union all select cast(x'c3' as string)"
    options = {} if limit is None else {"broadcast_limit": limit}
    found = lookup(spark, folder, spark.sql(texts), on="s", **options)
    rows = read(spark, folder).where("hex(s) in ('FF', '6162', 'C3')")
    assert {row.s for row in rows.selectExpr("hex(s) s").collect()} == {"FF", "6162", "C3"}
    assert sorted(found.selectExpr(*HEX).collect()) == sorted(rows.selectExpr(*HEX).collect())


def test_outside_of_spark_such_a_text_is_an_error(folder: str):
    with pytest.raises(ps.CorruptFileError, match=r"0\.parquet: column 's', .* is not UTF-8"):
        ps.read_table(folder, columns=["s"])
