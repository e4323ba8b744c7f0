"""Pictures of what a scan read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex

from pageseek.base.report import ChunkReport, Count, Report
from pageseek.cli import main
from pageseek.pictures import reading

N = 5_000
TABLE = pa.table(
    {
        "id": range(N),
        "other": [i * 7919 % N for i in range(N)],
        "name": [f"n{i:05d}" for i in range(N)],
    }
)


def written(folder: Path, name: str = "made.parquet", **options: Any) -> str:
    made = folder / name
    options = {"row_group_size": N // 5, "data_page_size": 1, "write_batch_size": 100} | options
    pq.write_table(TABLE, made, use_dictionary=False, **options)
    return str(made)


def lengths(panel: Any, y: float, left: float = 0.0, width: float = 1.0) -> dict[str, float]:
    """The shares of a bar, by colour."""
    found: dict[str, float] = {}
    for patch in panel.patches:
        middle = patch.get_y() + patch.get_height() / 2
        inside = left <= patch.get_x() < left + width and abs(middle - y) < 0.1
        if inside and patch.get_fill() and patch.get_facecolor()[3] and patch.get_width() > 1e-9:
            colour = to_hex(patch.get_facecolor()).upper()
            found[colour] = found.get(colour, 0.0) + patch.get_width() / width
    return found


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_sums_and_cells_are_the_counts_of_the_report(tmp_path: Path) -> None:
    path = written(tmp_path, write_page_index=True)
    report = ps.scan(path, filter="id >= 1200 and id < 1400 and other > 2500").explain(analyze=True)
    figure = report.plot(tmp_path / "o.png")
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")
    above, below = figure.axes
    read = reading.COLOURS["read"]
    assert lengths(above, 1) == pytest.approx({read: 0.2, reading.COLOURS["statistics"]: 0.8})
    pages, leaves = report.tally()
    assert lengths(above, 2)[read] == pytest.approx(pages.read / pages.total)
    columns = [text.get_text() for text in below.get_xticklabels()]
    assert columns == list(leaves)
    cell = lengths(below, 1, columns.index("id") + 0.04, 0.92)
    assert cell == pytest.approx({read: 0.2, reading.COLOURS["column_index"]: 0.8})
    for group in (0, 2, 3, 4):
        assert lengths(below, group, 0.04, 0.92) == pytest.approx(
            {reading.COLOURS["statistics"]: 1}
        )
    assert legend(figure)[0] == "read"
    assert {"statistics", "column index"} <= set(legend(figure))
    title = figure.get_suptitle()
    assert (
        "made.parquet" in title and "where" in title and f"{report.rows_out:,} rows found" in title
    )


def test_cells_of_every_report_are_whole(tmp_path: Path) -> None:
    path = written(tmp_path, write_page_index=True)
    pq.write_table(TABLE, tmp_path / "bare.parquet", row_group_size=N // 5)
    for source in (path, str(tmp_path / "bare.parquet")):
        for term in (None, "id = 7", "other = 7", "id < 0", "name like '%99%' and id > 2000"):
            for limit in (None, 3):
                for analyze in (False, True):
                    report = ps.scan(source, filter=term, limit=limit).explain(analyze=analyze)
                    figure = report.plot()
                    for panel in figure.axes[1:]:
                        for patch in panel.patches:
                            assert patch.get_width() <= 0.92 + 1e-9
                    if len(figure.axes) > 1:
                        columns = len(figure.axes[1].get_xticks())
                        for group in range(5):
                            for x in range(columns):
                                found = lengths(figure.axes[1], group, x + 0.03, 0.94)
                                assert sum(found.values()) * 0.94 == pytest.approx(0.92) or (
                                    not found and not analyze
                                ), (source, term, limit, analyze, group, x, found)


def test_without_a_page_index_whole_chunks_are_drawn(tmp_path: Path) -> None:
    made = tmp_path / "bare.parquet"
    pq.write_table(TABLE, made, row_group_size=N // 5)
    figure = ps.scan(made, filter="id = 1300", prune=["statistics"]).explain().plot()
    below = figure.axes[1]
    assert lengths(below, 1, 0.04, 0.92) == pytest.approx({reading.COLOURS["read"]: 1})
    assert lengths(below, 0, 0.04, 0.92) == pytest.approx({reading.COLOURS["statistics"]: 1})
    report = Report(files=Count(1, 1), row_groups=Count(1, 1), rows=Count(9, 9))
    report.chunks = {("a.parquet", 0, "id"): ChunkReport(path="id")}
    figure = report.plot()
    assert "pages are not counted" in figure.axes[1].get_title(loc="left")
    assert lengths(figure.axes[1], 0, 0.04, 0.92) == pytest.approx({reading.COLOURS["read"]: 1})


def test_many_files_and_row_groups_are_drawn_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(6):
        written(tmp_path, f"{i}.parquet", write_page_index=True)
    report = ps.scan(str(tmp_path), filter="id = 1300").explain(analyze=True)
    figure = report.plot()
    said = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert said == [f"{i}.parquet 1" for i in range(6)]
    assert "24 row groups of which nothing is read" in figure.axes[1].get_title(loc="left")
    monkeypatch.setattr(reading, "MOST_BANDS", 2)
    figure = report.plot()
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == ["3 of 3 files"] * 2
    figure = ps.scan(str(tmp_path / "0.parquet")).explain().plot()
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == [
        "row group 0 to 1",
        "row group 2 to 4",
    ]
    monkeypatch.setattr(reading, "MOST_COLUMNS", 1)
    assert (
        ps.scan(str(tmp_path / "0.parquet")).explain().plot().axes[1].get_xlabel()
        == "and 2 more columns"
    )


@pytest.mark.parametrize("analyze", [False, True])
def test_columns_that_a_file_lacks_have_no_bar(analyze: bool, tmp_path: Path) -> None:
    for i, name in enumerate(("old", "new")):
        table = pa.table({"id": range(10 * i, 10 * i + 10), name: range(10)})
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=5, write_page_index=True)
    scan = ps.scan(str(tmp_path), filter="id > 1 and id < 12")
    figure = scan.explain(analyze=analyze).plot(tmp_path / "o.png")
    below = figure.axes[1]
    columns = [text.get_text() for text in below.get_xticklabels()]
    bands = [text.get_text() for text in below.get_yticklabels()]
    assert bands == ["0.parquet 0", "0.parquet 1", "1.parquet 0"]
    said = {(t.get_position()[1], columns[int(t.get_position()[0])]): t.get_text() for t in below.texts}  # fmt: skip
    assert said == {(0, "new"): "not in this file", (1, "new"): "not in this file", (2, "old"): "not in this file"}  # fmt: skip
    for y in range(3):
        for x, column in enumerate(columns):
            assert bool(lengths(below, y, x + 0.03, 0.94)) == ((y, column) not in said)
    assert "late materialization" not in legend(figure)


def test_one_thing_is_named_as_one(tmp_path: Path) -> None:
    table = pa.table({f"c{i}": [1] for i in range(reading.MOST_COLUMNS + 1)})
    pq.write_table(table, tmp_path / "0.parquet")
    report = ps.scan(str(tmp_path / "0.parquet")).explain(analyze=True)
    report.requests = 1
    figure = report.plot()
    assert figure.axes[1].get_xlabel() == "and 1 more column"
    assert "in 1 request, 1 row found" in figure.get_suptitle()


def test_mechanisms_without_a_colour_are_hatched_and_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    report = ps.scan(path, filter="id = 7").take(range(10, 20)).explain()
    report.row_groups.prune("my_pruner", 1)
    report.row_groups.total += 1
    figure = report.plot(tmp_path / "o.pdf")
    assert "my pruner" in legend(figure)
    assert (tmp_path / "o.pdf").read_bytes().startswith(b"%PDF")


def test_the_command_draws_beside_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = written(tmp_path, write_page_index=True), tmp_path / "o.svg"
    code = main(["explain", path, "--where", "id = 7", "--analyze", "--plot", str(out)])
    seen = capsys.readouterr()
    assert code == 0 and "What was read" in seen.out and "drawn" in seen.err
    assert b"<svg" in out.read_bytes()
