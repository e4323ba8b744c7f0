"""Pictures of the bounds of pages."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytest.importorskip("matplotlib")

from pageseek.cli import main
from pageseek.format.parquet_file import ParquetFile
from pageseek.pictures import bounds, figures
from pageseek.pictures.scale import Scale

N = 2_000
TABLE = pa.table(
    {
        "id": range(N),
        "scattered": [i * 7919 % N for i in range(N)],
        "name": [f"$n{i:05d}_漢" for i in range(N)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i // 100) for i in range(N)],
        "some": [None if 500 < i < 900 else i / 3 for i in range(N)],
        "none": pa.array([None] * N, pa.int64()),
        "tags": [["a"] * (i % 3) for i in range(N)],
        "price": [Decimal(i) / 100 for i in range(N)],
        "flag": [i > 1_000 for i in range(N)],
        "at": pa.array([dt.datetime(2024, 1, 1, 0, 0, i % 60) for i in range(N)], pa.timestamp("ns", "UTC")),
        "blob": [bytes([i % 256, 255]) for i in range(N)],
    }
)  # fmt: skip


def written(tmp_path: Path, table: pa.Table = TABLE, **options: Any) -> str:
    made = tmp_path / "made.parquet"
    options = {"row_group_size": N // 2, "data_page_size": 1, "write_batch_size": 100} | options
    pq.write_table(table, made, use_dictionary=False, **options)
    return str(made)


def panels(figure: Any) -> list[Any]:
    return [panel for panel in figure.axes if panel.get_visible()]


def titles(figure: Any) -> list[str]:
    return [panel.get_title(loc="left") for panel in panels(figure)]


def blocks(panel: Any) -> Any:
    """The corners of the pages: page, corner, x and y."""
    (found,) = [
        c
        for c in panel.collections
        if type(c).__name__ == "PolyCollection"
        and len(c.get_paths())
        and c.get_zorder() == 1
        and c.get_facecolor()[0][2] > 0.5
    ]
    return np.array([path.vertices[:4] for path in found.get_paths()])


def test_a_page_is_a_block_from_its_first_to_its_last_row_and_value(tmp_path: Path) -> None:
    with ps.open(written(tmp_path, write_page_index=True)) as file:
        figure = file.plot(["id", "scattered"])
        index = file.column_index(1, "id")
    ordered, scattered = panels(figure)
    assert index is not None
    corners = blocks(ordered)
    assert len(corners) == 20
    assert corners[:, :, 0].min(axis=1).tolist() == list(range(0, N, 100))
    assert corners[:, :, 0].max(axis=1).tolist() == list(range(100, N + 1, 100))
    assert corners[10, :, 1].min() == index.lower[0].as_py() == 1_000
    assert corners[10, :, 1].max() == index.upper[0].as_py() == 1_099
    assert np.ptp(blocks(scattered)[:, :, 1], axis=1).min() > N * 0.9
    one, all_of_them = titles(figure)
    assert "a typical value lies in 1.0 of 20 pages" in one
    assert "a typical value lies in 20.0 of 20 pages" in all_of_them


def test_every_type_has_a_panel_and_says_what_is_missing(tmp_path: Path) -> None:
    with ps.open(written(tmp_path, write_page_index=True)) as file:
        with pytest.raises(FileNotFoundError, match=r"all\.png: there is no folder .*none$"):
            file.plot(path=tmp_path / "none" / "all.png")
        figure = file.plot(path=tmp_path / "all.png")
        said = dict(zip((leaf.name for leaf in file.leaves), titles(figure), strict=True))
        drawn = dict(zip(said, panels(figure), strict=True))
    assert "399 nulls" in said["some"]
    assert "2,000 nulls" in said["none"]
    assert [text.get_text() for text in drawn["none"].texts] == ["only nulls"]
    assert "list: by row group" in said["tags.list.element"]
    assert "2024-01-01" in [label.get_text() for label in drawn["day"].get_yticklabels()]
    assert [label.get_text() for label in drawn["flag"].get_yticklabels()] == ["false", "true"]
    assert all("$" in label.get_text() for label in drawn["name"].get_yticklabels())
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_page_index_blocks_are_row_groups(tmp_path: Path) -> None:
    with ps.open(written(tmp_path)) as file:
        figure = file.plot(["id"])
    assert len(blocks(panels(figure)[0])) == 2
    assert "no page index" in titles(figure)[0]
    with ps.open(written(tmp_path, write_statistics=False)) as file:
        figure = file.plot(["id"])
    assert "no bounds" in panels(figure)[0].texts[0].get_text()
    with ps.open(written(tmp_path, TABLE.slice(0, 0))) as file:
        assert len(panels(file.plot())) == TABLE.num_columns


def test_a_page_index_in_some_row_groups_is_drawn_beside_the_statistics_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = pa.array(range(N), pa.timestamp("us", "Europe/Berlin"))
    table = pa.table({"id": range(N), "at": moments, "took": moments.cast(pa.int64()).cast(pa.duration("us")), "u": pa.array(range(N), pa.uint16())})  # fmt: skip
    whole = ParquetFile.column_index

    def column_index(file: ParquetFile, group: int, leaf: Any) -> Any:
        return whole(file, group, leaf) if group else None

    monkeypatch.setattr(ParquetFile, "column_index", column_index)
    with ps.open(written(tmp_path, table, write_page_index=True)) as file:
        figure = file.plot()
    for panel, title in zip(panels(figure), titles(figure), strict=True):
        assert "page index in 1 of 2 row groups" in title
        shapes = blocks(panel)
        assert len(shapes) == 11
        assert (shapes[0, :, 1].min(), shapes[-1, :, 1].max()) == (0, N - 1)


def test_infinite_and_extreme_values_leave_the_rest_visible(tmp_path: Path) -> None:
    table = pa.table(
        {
            "real": [float("-inf"), 1.0, 2.0, float("nan"), float("inf"), 3.0] * 50,
            "far": pa.array([-(2**63), 2**63 - 1] * 150),
            "at": pa.array([-(2**63), 2**63 - 1] * 150, pa.timestamp("us")),
            "same": ["x"] * 300,
        }
    )
    with ps.open(written(tmp_path, table, write_page_index=True)) as file:
        figure = file.plot(path=tmp_path / "far.svg")
        assert len(panels(figure)) == 4
        file.plot(path=tmp_path / "again.svg")
    svg = (tmp_path / "far.svg").read_bytes()
    assert b"<svg" in svg and svg == (tmp_path / "again.svg").read_bytes()


def test_pages_with_infinite_bounds_are_hatched_to_the_edge(tmp_path: Path) -> None:
    inf = float("inf")
    rows = [float(i) for i in range(N)]
    table = pa.table(
        {
            "above": [*rows[:-1], inf],
            "below": [-inf, *rows[1:]],
            "ends": [-inf] * (N // 2) + [inf] * (N // 2),
            "all": [-inf, inf] * (N // 2),
            "far": [-1e308, *rows[2:], inf],
        }
    )
    with ps.open(written(tmp_path, table, write_page_index=True)) as file:
        figure = file.plot(path=tmp_path / "o.png")
        said = dict(zip((leaf.name for leaf in file.leaves), titles(figure), strict=True))
        drawn = dict(zip(said, panels(figure), strict=True))

    def hatched(name: str) -> Any:
        (found,) = [c for c in drawn[name].collections if c.get_hatch()]
        return np.array([path.vertices[:4] for path in found.get_paths()])

    low, high = drawn["above"].get_ylim()
    (shape,) = hatched("above")
    assert shape[:, 0].min() == N - 100 and shape[:, 0].max() == N
    assert shape[:, 1].min() == N - 100 and shape[:, 1].max() == pytest.approx(high)
    assert low < 0 and high < 1.1 * N  # finite bounds make the axis
    (shape,) = hatched("below")
    assert shape[:, 1].min() == pytest.approx(drawn["below"].get_ylim()[0])
    for name in ("above", "below"):
        assert "infinite bounds: 1 page, hatched" in said[name]
        assert "a typical value lies in 1.0 of 20 pages" in said[name]
    for name, share in (("ends", 0.01), ("all", 1.0)):
        low, high = drawn[name].get_ylim()
        assert "infinite bounds only: 20 pages, hatched" in said[name]
        assert np.ptp(hatched(name)[:, :, 1], axis=1) == pytest.approx(share * (high - low))
        assert [t.get_text() for t in drawn[name].get_yticklabels()] == ["-inf", "inf"]
        assert not drawn[name].texts  # there is an index
    assert "a typical value lies in 10.0 of 20 pages" in said["ends"]
    assert "infinite bounds: 1 page, hatched" in said["far"]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_labels_of_a_few_rows_are_row_numbers(n: int, tmp_path: Path) -> None:
    table = pa.table({"id": range(n), "none": pa.nulls(n, pa.int64())})
    with ps.open(written(tmp_path, table, write_page_index=True)) as file:
        figure = file.plot(path=tmp_path / "o.png")
    lowest = panels(figure)[-1]
    said = [label.get_text() for label in lowest.get_xticklabels()]
    assert said == [f"{i}" for i in range(max(n, 1) + 1)]
    assert ("1 row, " if n == 1 else f"{n} rows, ") in figure.get_suptitle()
    if n == 1:
        assert titles(figure)[1].endswith("1 null")


def test_many_columns_are_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_COLUMNS", 4)
    with ps.open(written(tmp_path)) as file:
        figure = file.plot()
        with pytest.raises(ps.PredicateError, match="nope"):
            file.plot(["nope"])
        with pytest.raises(ValueError, match="no column"):
            file.plot([])
    assert len(panels(figure)) == 4
    assert "the first 4 of 11 columns" in figure.get_suptitle()


def test_overlap_is_the_mean_number_of_zones_that_hold_a_middle() -> None:
    assert bounds.overlap([0.0, 10.0, 20.0], [9.0, 19.0, 29.0]) == 1
    assert bounds.overlap([0] * 4, [1] * 4) == 4
    assert bounds.overlap([None], [None]) == 0
    large = [10**30 + 2 * i for i in range(4)]
    assert bounds.overlap(large, [low + 1 for low in large]) == 1
    rng = np.random.default_rng(1)
    low = rng.integers(0, 50, 40).astype(float)
    high = low + rng.integers(0, 9, 40)
    asked = (low + high) / 2
    slow = np.mean([((low <= x) & (x <= high)).sum() for x in asked])
    assert bounds.overlap(low.tolist(), high.tolist()) == pytest.approx(slow)


def labels(*values: Any, kind: pa.DataType | None = None) -> tuple[list[str], str]:
    """What is written beside the axis of values, and what all of them leave out."""
    ticks, rest = Scale(pa.array(values, kind), pa.array(values, kind)).ticks()
    places = [tick.place for tick in ticks]
    assert places == sorted(set(places))
    return [tick.label for tick in ticks], rest


DAY = dt.datetime(2024, 5, 6)


@pytest.mark.parametrize(
    ("values", "kind", "said", "rest"),
    [
        (["a", "c", "b", "z"], None, ["a", "b", "c", "z"], ""),
        (["x" * 80 + "1", "x" * 80 + "2"], None, ["xxxxxxxxx…xxxxxxx1", "xxxxxxxxx…xxxxxxx2"], ""),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 3)], None, ["2024-01-01", "2024-01-02", "2024-01-03"], ""),
        ([1, 5], None, ["1", "2", "3", "4", "5"], ""),
        ([0, 9_999], None, ["0", "2,000", "4,000", "6,000", "8,000"], ""),
        ([-0.5, 0.5], None, ["-0.4", "-0.2", "0", "0.2", "0.4"], ""),
        ([0, 2**63], pa.uint64(), ["0", "2e+18", "4e+18", "6e+18", "8e+18"], ""),
        ([0.0, 1e-9], None, ["0", "2.5e-10", "5e-10", "7.5e-10", "1e-09"], ""),
        ([175 * 10**16, 175 * 10**16 + 4_000], None, ["+0", "+1,000", "+2,000", "+3,000", "+4,000"], "labels add to 1.75e+18"),
        ([2**63], pa.uint64(), ["+0"], "labels add to 9.223372036854775808e+18"),
        ([Decimal(10**37), Decimal(10**37 + 2)], pa.decimal128(38, 0), ["+0", "+1", "+2"], "labels add to 1e+37"),
        ([Decimal("0.25"), Decimal("0.26")], None, ["0.25", "0.26"], ""),
        ([1e18, 1e18 + 256], None, ["+0", "+100", "+200"], "labels add to 1e+18"),
        ([0.1], None, ["0.1"], ""),
        ([False, True], None, ["false", "true"], ""),
        ([DAY, DAY + dt.timedelta(microseconds=4)], None, [f"00:00:00.00000{i}" for i in range(5)], "on 2024-05-06"),
        ([DAY, DAY + dt.timedelta(seconds=8)], None, [f"00:00:0{i}" for i in range(0, 9, 2)], "on 2024-05-06"),
        ([DAY + dt.timedelta(hours=18), DAY + dt.timedelta(hours=30)], None,
         ["2024-05-06 18:00:00", "2024-05-06 21:00:00", "2024-05-07 00:00:00", "2024-05-07 03:00:00", "2024-05-07 06:00:00"], ""),
        ([DAY, DAY + dt.timedelta(days=40)], pa.timestamp("ns", "UTC"),
         ["2024-05-06", "2024-05-16", "2024-05-26", "2024-06-05", "2024-06-15"], ""),
        ([DAY], pa.timestamp("ns"), ["2024-05-06"], ""),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 3)], pa.date64(), ["2024-01-01", "2024-01-02", "2024-01-03"], ""),
        ([5e-324, 1e-323], None, ["5e-324", "1e-323"], ""),
        ([1e-300, 1.0000001e-300], None, ["1e-300", "1.0000001e-300"], ""),
        ([0, 4_000], pa.time32("ms"), ["00:00:00", "00:00:01", "00:00:02", "00:00:03", "00:00:04"], ""),
        ([-500_000, 500_000], pa.duration("us"), ["-1 days, 23:59:59.500", "-1 days, 23:59:59.750", "0:00:00.000", "0:00:00.250", "0:00:00.500"], ""),
    ],
)  # fmt: skip
def test_labels_are_exact_and_differ(
    values: list[Any], kind: pa.DataType | None, said: list[str], rest: str
) -> None:
    assert labels(*values, kind=kind) == (said, rest)


LARGE = {
    "uint64": pa.array(range(2**64 - N, 2**64), pa.uint64()),
    "int64": pa.array(range(175 * 10**16, 175 * 10**16 + N)),
    "decimal": pa.array([Decimal(f"{10**36 + i}e-2") for i in range(N)], pa.decimal128(38, 2)),
    "double": pa.array([1e18 + 128 * i for i in range(N)]),
    "timestamp": pa.array(range(2**62, 2**62 + N), pa.timestamp("ns", "UTC")),
}


@pytest.mark.parametrize("name", LARGE)
def test_pages_of_large_numbers_are_drawn_apart(name: str, tmp_path: Path) -> None:
    table = pa.table({"small": range(N), "large": LARGE[name]})
    with ps.open(written(tmp_path, table, write_page_index=True)) as file:
        figure = file.plot(path=tmp_path / "o.png")
    small, large = panels(figure)
    assert all("a typical value lies in 1.0 of 20 pages" in title for title in titles(figure))

    def shares(panel: Any) -> Any:
        low, high = panel.get_ylim()
        return (blocks(panel)[:, :, 1] - low) / (high - low)

    assert np.allclose(shares(small), shares(large), atol=1e-9)
    said = [label.get_text() for label in large.get_yticklabels()]
    assert len(set(said)) == len(said) >= 3


def test_the_command_draws_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, write_page_index=True)
    out = tmp_path / "o.svg"
    assert main(["inspect", path, "--column", "id", "--plot", str(out)]) == 0
    seen = capsys.readouterr()
    assert seen.out == "" and "drawn" in seen.err
    assert b"<svg" in out.read_bytes()
    assert main(["inspect", path, path, "--plot", str(out)]) == 2
    assert "--plot draws one file" in capsys.readouterr().err


def test_without_matplotlib_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    assert main(["inspect", path, "--plot", str(tmp_path / "o.png")]) == 1
    assert "pip install 'pageseek[plot]'" in capsys.readouterr().err


def test_a_picture_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    class Broken:
        def savefig(self, to: Any, **_: Any) -> None:
            to.write(b"half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        figures.save(Broken(), tmp_path / "o.png")
    with pytest.raises(ValueError, match=r"\.png"):
        figures.save(Broken(), tmp_path / "o.gif")
    assert list(tmp_path.iterdir()) == []
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        [-1e308, 1.0, 1e308],
        [sys.float_info.max] * 3,
        [5e-324, 0.0, 1e-323],
        [10**18] * 3,
        [10**18, 10**18 + 128, 10**18 + 256],
        [0.0] * 3,
    ],
)
def test_numbers_at_the_ends_of_doubles_are_drawn(values: list[float], tmp_path: Path) -> None:
    table = pa.table({"g": [values[i // (N // 3 + 1)] for i in range(N)]})
    path = written(tmp_path, table, write_page_index=True)
    with ps.open(path) as file:
        (panel,) = panels(file.plot())
        file.plot("g", tmp_path / "o.png")
    low, high = panel.get_ylim()
    shapes = blocks(panel)
    heights = shapes[:, :, 1].max(axis=1) - shapes[:, :, 1].min(axis=1)
    assert low < shapes[:, :, 1].min() and shapes[:, :, 1].max() < high
    assert (heights > 0.001 * (high - low)).all()
    assert main(["inspect", path, "--column", "g"]) == 0


def test_a_name_is_one_column(tmp_path: Path) -> None:
    with ps.open(written(tmp_path)) as file:
        assert len(panels(file.plot("id"))) == len(panels(file.plot(file.leaf("id")))) == 1


def test_bounds_that_are_no_utf8_are_drawn(tmp_path: Path) -> None:
    scale = Scale(*(pa.array(texts, pa.binary()).view(pa.string()) for texts in ([b"a", b"\xe6"], [b"b", b"\xff"])))  # fmt: skip
    assert [tick.label for tick in scale.ticks()[0]] == ["a", "b", "e6", "ff"]


def test_nulls_without_bounds_are_a_strip(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([None] * N, pa.int64())})
    with ps.open(written(tmp_path, table)) as file:
        (panel,) = panels(file.plot())
    assert panel.get_ylim() == (0, 1)
    (bars,) = panel.collections
    assert bars.get_paths()[0].vertices[:, 1].max() == pytest.approx(0.06)


@pytest.mark.parametrize("command", ["inspect", "explain"])
def test_a_picture_replaces_no_file_unless_told(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = written(tmp_path, TABLE.select(["id"])), tmp_path / "o.svg"
    out.write_text("mine")
    assert main([command, path, "--plot", str(out)]) == 1
    assert "--overwrite" in capsys.readouterr().err and out.read_text() == "mine"
    assert main([command, path, "--plot", str(out), "--overwrite"]) == 0
    assert "<svg" in out.read_text()
