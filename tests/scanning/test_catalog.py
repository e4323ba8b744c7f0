"""A catalog is queried before files are opened: files that it rules out are not read, and counted under its name."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage import Source
from support.tiers import rounds

FILES, ROWS = 12, 600


class Places:
    """Where each value of `v` lies, for conditions `v = number`."""

    name = "places"

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, dict[int, list[int]]] = {}
        self.asked: list[str] = []
        for path in sorted(folder.iterdir()):
            of_file = self.rows[str(path)] = {}
            for row, value in enumerate(pq.read_table(path)["v"].to_pylist()):
                of_file.setdefault(value, []).append(row)

    def select(self, files: Sequence[str], condition: ps.Expression) -> Mapping[str, Any]:
        self.asked.append(repr(condition))
        words = repr(condition).split()
        if len(words) != 3 or words[1] != "=":
            return {}
        return {name: self.rows[name].get(int(words[2]), []) for name in files}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("catalog"), np.random.default_rng(3)
    for i in range(FILES):
        table = pa.table({"file": [i] * ROWS, "v": rng.integers(0, 2_000, ROWS)})
        pq.write_table(
            table, folder / f"{i:02}.parquet", row_group_size=250, write_page_index=True,
            max_rows_per_page=25, use_dictionary=False,
        )  # fmt: skip
    return folder


@pytest.fixture
def places(folder: Path) -> Iterator[Places]:
    made = Places(folder)
    ps.index.register(made)
    yield made
    ps.index.unregister("places")


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("numbered", [False, True])
def test_rows_are_those_of_a_full_read(
    folder: Path, places: Places, limit: int | None, numbered: bool
) -> None:
    for value in random.Random(1).sample(range(2_000), rounds(25, 2)):
        for condition in (ps.col("v") == value, (ps.col("v") > value) & (ps.col("v") < value + 9)):
            scan, full = (ps.scan(folder, filter=condition, prune=prune) for prune in (True, False))
            if numbered:
                scan, full = scan.with_row_number("n"), full.with_row_number("n")
            if limit is not None:
                scan, full = scan.limit(limit), full.limit(limit)
            assert scan.to_table().equals(full.to_table())
            assert scan.count_rows() == full.count_rows()


def test_files_without_rows_are_not_opened(folder: Path, places: Places) -> None:
    rows = next(iter(places.rows.values()))
    value = next(v for v in rows if sum(v in of_file for of_file in places.rows.values()) == 1)
    ps.clear_cache()
    report = ps.scan(folder, filter=ps.col("v") == value).explain(analyze=True).to_dict()
    assert report["files"] == {"total": FILES, "read": 1, "pruned_by": {"places": FILES - 1}}
    assert report["leaves"]["v"]["pages"]["read"] == len({row // 25 for row in rows[value]})
    assert ps.cache_info().files == 1
    without = ps.scan(folder, filter=ps.col("v") == value, prune=["statistics"]).explain()
    assert "places" not in str(without.to_dict())
    assert len(ps.scan(folder).to_table()) == FILES * ROWS


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"nowhere": [1]}, "'nowhere', which is no file of the scan"),
        ({0: ["a"]}, "TypeError"),
        ({0: [ROWS]}, f"row {ROWS} of {ROWS}"),
        (None, "AttributeError"),
    ],
)
def test_a_catalog_that_makes_no_sense(folder: Path, said: Any, why: str) -> None:
    class Wrong:
        name = "wrong"

        def select(self, files: Sequence[str], condition: ps.Expression) -> Any:
            return said and {files[k] if k == 0 else k: v for k, v in said.items()}

    ps.index.register(Wrong())
    try:
        with pytest.raises(ps.PrunerError, match=why) as error:
            ps.scan(folder, filter="v = 1").to_table()
        assert "wrong" in str(error.value)
        assert "prune=[" in str(error.value)
    finally:
        ps.index.unregister("wrong")


def test_a_catalog_is_not_asked_of_names_that_several_files_have(
    folder: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = str(folder / "00.parquet")
    paths = [first, *(str(folder / f"{i:02}.parquet") for i in (1, 2))]
    short = {paths[1]: "http://h/dl", paths[2]: "http://h/dl"}  # their queries are not shown
    monkeypatch.setattr(Source, "name", property(lambda self: short.get(self.path, self.path)))
    value = next(iter(places.rows[first]))
    condition = ps.col("v") == value
    places.rows["http://h/dl"] = {}  # which says that they have no row
    found = ps.read_table(paths, filter=condition)
    assert found.equals(ps.read_table(paths, filter=condition, prune=False))
