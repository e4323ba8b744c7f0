"""Spark reads files with attached indexes like those without, and reads less of them if a filter allows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage.hadoop_sums import sums_of
from support.engines import (
    FLOATS,
    READERS,
    WRITERS,
    Asked,
    Pair,
    Read,
    Reader,
    corpus_pair,
    odd_floats,
    sql,
    table,
    written_pair,
)

pytestmark = pytest.mark.spark
GROUP = 20_000  # rows of a row group


def spark_writes(spark: Any, data: pa.Table, path: Path) -> None:
    """One file of parquet-mr, with several row groups and many pages."""
    source, out = path.with_name("source"), path.with_name("out")
    pq.write_table(data, source)
    frame = spark.read.parquet(str(source)).coalesce(1)
    knobs = {"parquet.block.size": 400_000, "parquet.page.size": 8_192}
    frame.write.options(**knobs).parquet(str(out))
    (made,) = out.glob("*.parquet")
    made.rename(path)
    assert pq.ParquetFile(path).num_row_groups > 1


def spark_reads(spark: Any, path: Path, asked: Asked) -> Read:
    frame = spark.read.parquet(str(path))
    names = frame.columns

    def rows(one: Any) -> pa.Table:
        if hasattr(one, "toArrow"):  # since Spark 4.0
            return one.toArrow()
        found = list(map(tuple, one.collect()))
        return pa.table(dict(zip(names, map(list, zip(*found, strict=True)), strict=True)))

    return rows(frame), rows(frame.where(sql(asked)))


@pytest.fixture(scope="module", params=["spark", "corpus", *WRITERS])
def pair(
    request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Pair:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "corpus":
        return corpus_pair(folder, request.getfixturevalue("conformance"))
    if request.param == "spark":
        return written_pair(folder, lambda data, path: spark_writes(spark, data, path))
    return written_pair(folder, WRITERS[request.param])


def test_spark_reads_the_same(spark: Any, pair: Pair) -> None:
    pair.check_bytes()
    pair.check_rows(lambda path, asked: spark_reads(spark, path, asked))


@pytest.fixture(scope="module")
def by_spark(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("by_spark")
    return written_pair(folder, lambda data, path: spark_writes(spark, data, path))


# fastparquet leaves files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("reader", READERS)
def test_others_read_what_spark_wrote(by_spark: Pair, reader: Reader) -> None:
    by_spark.check_rows(reader)


# -- what is left out ---------------------------------------------------------------------------


def nodes(plan: Any) -> Iterator[Any]:
    """A physical plan and all that it is made of."""
    yield plan
    if plan.nodeName() == "AdaptiveSparkPlan":
        yield from nodes(plan.executedPlan())
    children = plan.children().iterator()
    while children.hasNext():
        yield from nodes(children.next())


def scanned(spark: Any, path: Path, condition: str, **options: str) -> tuple[int, int]:
    """Rows of the answer, and rows that Spark's scan gave out for the filter above it, by its own metric."""
    frame = spark.read.options(**options).parquet(str(path)).where(condition)
    rows = len(frame.collect())
    plan = frame._jdf.queryExecution().executedPlan()
    (scan,) = [node for node in nodes(plan) if "Scan parquet" in node.nodeName()]
    return rows, scan.metrics().apply("numOutputRows").value()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many pages a chunk, no page index, and no dictionary that would tell what a Bloom filter does."""
    path = tmp_path_factory.mktemp("plain") / "plain.parquet"
    pq.write_table(
        table(), path, row_group_size=GROUP, data_page_size=8_000, write_batch_size=1_000,
        use_dictionary=False, write_page_index=False,
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def indexed(plain: Path) -> Path:
    path = plain.with_name("indexed.parquet")
    ps.index.attach(plain, bloom=["text"], output=path)
    return path


@pytest.fixture(params=["true", "false"], ids=["vectorized", "rows"])
def spark_reader(request: pytest.FixtureRequest, spark: Any) -> Iterator[Any]:
    """Both of Spark's readers: the one of batches, and that of parquet-mr."""
    name = "spark.sql.parquet.enableVectorizedReader"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield spark
    spark.conf.set(name, before)


def test_spark_leaves_out_pages(spark_reader: Any, plain: Path, indexed: Path) -> None:
    condition = "id = 31007"
    assert scanned(spark_reader, plain, condition) == (1, GROUP)
    found, read = scanned(spark_reader, indexed, condition)
    assert found == 1
    assert 1 <= read <= GROUP // 4
    off = {"parquet.filter.columnindex.enabled": "false"}
    assert scanned(spark_reader, indexed, condition, **off) == (1, GROUP)


def test_spark_leaves_out_pages_of_a_range(spark_reader: Any, plain: Path, indexed: Path) -> None:
    condition = (
        "id BETWEEN 19990 AND 20009"  # the end of one row group, and the beginning of the next
    )
    assert scanned(spark_reader, plain, condition) == (20, 2 * GROUP)
    found, read = scanned(spark_reader, indexed, condition)
    assert found == 20
    assert 20 <= read <= GROUP // 2


def test_spark_leaves_out_row_groups(spark_reader: Any, plain: Path, indexed: Path) -> None:
    condition = "text = 'text 5'"
    assert scanned(spark_reader, plain, condition) == (0, 3 * GROUP)
    found, read = scanned(spark_reader, indexed, condition)
    assert (found, read) == (0, 0)


def test_spark_finds_what_is_in_a_filter(spark_reader: Any, plain: Path, indexed: Path) -> None:
    """A value of each row group; with page indexes off, what is left out is so by Bloom filters alone."""
    off = {"parquet.filter.columnindex.enabled": "false"}
    data = table()
    for at in (11, GROUP + 12, 2 * GROUP + 13):
        condition = f"text = '{data['text'][at].as_py()}'"
        assert scanned(spark_reader, plain, condition, **off) == (1, 3 * GROUP)
        assert scanned(spark_reader, indexed, condition, **off) == (1, GROUP)
        without = off | {"parquet.filter.bloom.enabled": "false"}
        assert scanned(spark_reader, indexed, condition, **without) == (1, 3 * GROUP)


def test_answers_about_nan_and_zeros_stay(spark_reader: Any, tmp_path: Path) -> None:
    path = odd_floats(tmp_path / "a.parquet")
    indexed = tmp_path / "b.parquet"
    ps.index.attach(path, bloom=["f"], distinct=["f"], output=indexed)
    frames = [spark_reader.read.parquet(str(one)) for one in (path, indexed)]
    for condition in FLOATS:
        before, after = (frame.where(condition).count() for frame in frames)
        assert after == before, condition


@pytest.mark.parametrize("way", ["in place", "output", "overwritten"])
def test_a_file_beside_checksums_of_hadoop(spark: Any, tmp_path: Path, way: str) -> None:
    """Spark keeps checksums next to local files, and refuses a file that does not match them."""
    folder = tmp_path / "written"
    spark.range(50_000).selectExpr("id", "id % 7 as k").coalesce(1).write.parquet(str(folder))
    (path,) = folder.glob("*.parquet")
    own = path.with_name(f".{path.name}.crc")
    with path.open("rb") as file:
        assert own.read_bytes() == sums_of(file.fileno(), path.stat().st_size)

    def reads(which: Path) -> list[Any]:
        frame = spark.read.parquet(str(which))
        return [frame.count(), frame.where("k = 3").selectExpr("sum(id)").collect()[0][0]]

    expected = [50_000, sum(range(3, 50_000, 7))]
    if way == "in place":
        for change in (ps.index.attach, ps.index.detach):
            knobs = {"distinct": ["k"], "bloom": ["id"]} if change is ps.index.attach else {}
            before = own.read_bytes()
            change(path, in_place=True, **knobs)
            assert own.read_bytes() != before
            assert reads(folder) == expected
    else:
        to = tmp_path / "other.parquet"
        (tmp_path / ".other.parquet.crc").write_bytes(own.read_bytes())
        if way == "overwritten":
            to.write_bytes(path.read_bytes())
        ps.index.attach(path, distinct=["k"], output=to, overwrite=way == "overwritten")
        assert reads(to) == expected
    with own.open("r+b") as file:  # they are held against the bytes
        file.seek(-1, 2)
        file.write(bytes([own.read_bytes()[-1] ^ 1]))
    with pytest.raises(Exception, match="Checksum"):
        reads(path)
