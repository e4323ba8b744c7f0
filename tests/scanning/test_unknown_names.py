"""Names that do not exist: what errors offer, over the columns of all files and folders, in one short traceback."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import NoColumnError


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Two files of one folder with different columns."""
    folder = tmp_path / "lake/day=1"
    folder.mkdir(parents=True)
    pq.write_table(
        pa.table({"id": [1], "place": [{"zip": "1", "City": "b"}]}), folder / "a.parquet"
    )
    pq.write_table(pa.table({"id": [2], "Price": [1.5], "size": ["s"]}), folder / "b.parquet")
    return str(tmp_path / "lake")


@pytest.fixture
def one(lake: str) -> str:
    return f"{lake}/day=1/a.parquet"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"columns": ["prise"]}, "Price"),  # a column of the second file
        ({"columns": ["price"]}, "Price"),
        ({"columns": ["dya"]}, "day"),  # of the folders
        ({"columns": ["id", "SIZE"]}, "size"),
        ({"filter": "price = 1"}, "Price"),
        ({"filter": "id = 1 and prise > 5"}, "Price"),
        ({"filter": "dy = 1"}, "day"),
        ({"filter": ps.col("places.zip") == "1"}, "place.zip"),
        ({"filter": "place.city = 'b'"}, "place.City"),
        ({"filter": "any(sizes) = 's'"}, "size"),
        ({"filter": "id = 1 or Prize > id"}, "Price"),
    ],
)
def test_the_names_of_all_files_are_offered(lake: str, options: Any, name: str) -> None:
    with pytest.raises(NoColumnError, match=rf"did you mean '{name}'\?") as caught:
        ps.read_table(lake, **options)
    assert "none in the other 1 file;" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_error_in_sql_points_at_a_name_that_no_file_has(lake: str) -> None:
    with pytest.raises(NoColumnError, match=r"\n  id = 1 and prise > 5\n {13}\^") as caught:
        ps.read_table(lake, filter="id = 1 and prise > 5")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.at) == (str(caught.value), 11)


def test_names_of_one_file(one: str) -> None:
    for made, words in (
        (lambda: ps.read_table(one, filter=ps.col("place.zap") == "1"), "no field 'zap'; did you mean 'zip'?"),
        (lambda: ps.read_table(one, filter="place.citty = 'b'"), "no field 'citty'; did you mean 'City'?"),
        (lambda: ps.read_table(one, columns=["place.city"]), "did you mean 'place.City'?"),
        (lambda: ps.read_table(one, filter="ID = 1"), "did you mean 'id'?"),
        (lambda: ps.scan(one).select("idd").to_table(), "did you mean 'id'?"),
        (lambda: ps.scan(one).aggregate([("idd", "min")]), "did you mean 'id'?"),
        (lambda: ps.open(one).chunk(0, "idd"), "did you mean 'id'?"),
    ):  # fmt: skip
        with pytest.raises(NoColumnError) as caught:
            made()
        assert words in str(caught.value)
        assert one in str(caught.value)


MISTAKES: list[tuple[Callable[[str], Any], type[Exception], str]] = [
    (lambda path: ps.read_table(path, prune=["statistic"]), ps.PredicateError, "did you mean 'statistics'?"),
    (lambda path: ps.read_table(path, filter="id in [1, 2]"), ps.PredicateError, "IN stand in parentheses"),
    (lambda path: ps.read_table(path, filter="where id = 1"), ps.PredicateError, "without where"),
    (lambda path: ps.read_table(path, filter="WHERE 1 = id"), ps.PredicateError, "without WHERE"),
    (lambda path: ps.read_table(path, filter="id = %s"), ps.PredicateError, "written ? or :name"),
    (lambda path: ps.read_table(path, filter=("id", "=", 1)), ps.PredicateError, "such as [('a', '>', 35)]"),
    (lambda path: ps.scan(path).select(5), TypeError, "select=5: a list of names"),
    (lambda path: ps.open(str(Path(path).parent)), ValueError, "has 2: give one of them, such as '"),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(MISTAKES)))
def test_mistakes(one: str, at: int) -> None:
    made, kind, words = MISTAKES[at]
    with pytest.raises(kind) as caught:
        made(one)
    assert words in str(caught.value)


def test_columns_may_have_the_names_of_words_of_sql(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"where": [1, None], "select": [True, False]}), path)
    for text, n in (
        ("where = 1", 1), ("where is null", 1), ("where in (1)", 1), ("select and where = 1", 1), ("select", 1),
        ("where between 0 and 2", 1), ("not select or where ilike 'x'", None),
    ):  # fmt: skip
        if n is not None:
            assert ps.scan(path, filter=text).count_rows() == n, text
