"""Tables of Iceberg as its versions 1 and 3 have them, where pyiceberg knows version 2 alone; written by hand, from the specification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import pageseek as ps

pytest.importorskip("pyiceberg", "0.10")

from support.iceberg_written import (  # fmt: skip
    COUNTS,
    Written,
    column,
    ided,
    rows_of,
)

# -- version 1 ------------------------------------------------------------------------------------


def _of_version_1(folder: Path, **told: object) -> Written:
    """A table of two files in two partitions, of which the manifest has the values."""
    schema = [column(1, "i", "int"), column(2, "p", "string")]
    specs = [[(2, "p", "identity", "string")]]
    table = Written(folder, [schema], 1, specs, **told)  # type: ignore[arg-type]
    for i, p in enumerate("ab"):
        table.add(rows_of([ided("i", pa.int32(), 1)], [i]), partition=(p,))
    return table


@pytest.mark.parametrize("inline", [False, True])
def test_a_table_of_version_1_has_no_more_than_that_requires(tmp_path: Path, inline: bool) -> None:
    """No counts, no sequence numbers, no list of schemas and partitionings; or no list of manifests at all."""
    folder = _of_version_1(tmp_path, inline=inline, counts=()).commit()
    assert ps.read_table(folder).to_pylist() == [{"i": 0, "p": "a"}, {"i": 1, "p": "b"}]
    one = ps.scan(folder, filter="p = 'b'")
    assert one.to_table()["i"].to_pylist() == [1]
    assert one.explain().to_dict()["files"]["read"] == 1


def test_manifests_in_a_snapshot_are_of_the_partitioning_that_they_name(tmp_path: Path) -> None:
    schema = [column(1, "i", "int"), column(2, "p", "string")]
    specs: list[list[tuple[int, str, str, object]]] = [[], [(2, "p", "identity", "string")]]
    table = Written(tmp_path, [schema], 1, specs, inline=True)
    both = [ided("i", pa.int32(), 1), ided("p", pa.string(), 2)]
    table.add(rows_of(both, [1], ["x"]))
    table.add(rows_of(both[:1], [2]), spec=1, partition=("y",))
    assert ps.read_table(table.commit()).to_pylist() == [{"i": 1, "p": "x"}, {"i": 2, "p": "y"}]
    files = ps.scan(str(tmp_path), filter="p = 'x'").explain().to_dict()["files"]
    assert files["read"] == 1


@pytest.mark.parametrize("counts", [(), (None,), COUNTS[:2], [None, *COUNTS[1:]]])
@pytest.mark.parametrize("version", [1, 2])
def test_a_list_of_manifests_may_lack_counts(
    tmp_path: Path, version: int, counts: Sequence[str | None]
) -> None:
    """A table that was upgraded from version 1 keeps such lists."""
    table = Written(tmp_path, [[column(1, "i", "int")]], version, counts=counts)
    for i in range(3):
        table.add(rows_of([ided("i", pa.int32(), 1)], [i]))
    if version == 2:
        table.positions([(table.entries[1], 0)], 2)
    expected = [0, 2] if version == 2 else [0, 1, 2]
    assert ps.read_table(table.commit())["i"].to_pylist() == expected
    assert ps.scan(str(tmp_path), filter="i = 2").count_rows() == 1
