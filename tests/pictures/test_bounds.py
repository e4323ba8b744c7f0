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
from pageseek.pictures import bounds, figures
from pageseek.pictures.scale import Scale, ticks

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
    low, high = np.array([0.0, 10, 20]), np.array([9.0, 19, 29])
    assert bounds.overlap(low, high) == 1
    assert bounds.overlap(np.zeros(4), np.ones(4)) == 4
    assert bounds.overlap(np.array([np.nan]), np.array([np.nan])) == 0
    rng = np.random.default_rng(1)
    low = rng.integers(0, 50, 40).astype(float)
    high = low + rng.integers(0, 9, 40)
    asked = (low + high) / 2
    slow = np.mean([((low <= x) & (x <= high)).sum() for x in asked])
    assert bounds.overlap(low, high) == pytest.approx(slow)


def test_ticks_are_values_of_the_column() -> None:
    scale = Scale(pa.array(["a", "c", None]), pa.array(["b", "z", None]))
    assert [scale.label(y) for y in ticks(scale, 0, 3)] == ["a", "b", "c", "z"]
    assert scale.label(0.5) == "" and scale.label(9) == ""
    days = pa.array([dt.date(2024, 1, 1)]), pa.array([dt.date(2024, 3, 1)])
    scale = Scale(*days)
    assert scale.label(scale.lower[0]) == "2024-01-01"
    assert Scale(pa.array([1]), pa.array([5])).label(1234.0) == "1,234"


def test_the_command_draws_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, write_page_index=True)
    out = tmp_path / "o.svg"
    assert main(["inspect", path, "--column", "id", "--plot", str(out)]) == 0
    seen = capsys.readouterr()
    assert seen.out == "" and "drawn" in seen.err
    assert b"<svg" in out.read_bytes()
    assert main(["inspect", path, path, "--plot", str(out)]) == 1
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
    assert [scale.label(y) for y in range(4)] == ["a", "b", "e6", "ff"]


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
