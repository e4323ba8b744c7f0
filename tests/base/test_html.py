"""What notebooks show: HTML that is well formed and escaped, in the colours of the page, without scripts; nothing is read for it."""

from __future__ import annotations

import pickle
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import html
from pageseek.base.report import LeafReport
from support.store_log import Log

N = 2_000
EVIL = "<script>alert('x')</script>&\"\u202e\x00\n"
ALLOWED = {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "br", "code"}


class Page(HTMLParser):
    """Reads HTML, and refuses what is not well formed or not plain."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.bars: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED and {name for name, _ in attrs} <= {"style"}
        style = dict(attrs).get("style") or ""
        assert "#" not in style and "url" not in style and "rgb" not in style
        self.bars += re.findall("background:currentColor;width:(.*)", style)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def __contains__(self, text: str) -> bool:
        return any(text in part for part in self.text)


def page(shown: Any) -> Page:
    return Page(shown._repr_html_())


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = pa.table({"id": range(N), EVIL: ["<i>"] * N, "big": ["x" * 50] * N})
    pq.write_table(
        table, tmp_path / "a<b>.parquet", row_group_size=500, write_page_index=True, use_dictionary=False,
    )  # fmt: skip
    return str(tmp_path / "a<b>.parquet")


def test_values_are_escaped() -> None:
    assert html.shown("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert html.shown(html.Markup("<b>")) == "<b>"
    assert html.shown("a\u202eb\x00\ud800") == "a\\u202eb\\x00\\ud800"
    assert html.shown(html.table(("<i>",), [("<b>",)])).count("&lt;") == 2
    html.shown("\ud800").encode()


def test_bars_are_as_full_as_they_are_told() -> None:
    assert Page(html.share(1, 4)).bars == ["25.0%"]
    assert Page(html.share(9, 4)).bars == ["100.0%"]
    assert Page(html.share(0, 4)).bars == Page(html.share(1, 0)).bars == []


def test_a_scan(path: str, log: Log) -> None:
    scan = ps.scan(path, filter=ps.col(EVIL) == EVIL).select(EVIL).limit(7).take([1, 2])
    found = page(scan)
    assert "a<b>.parquet" in found and "7" in found.text and "2 rows by their numbers" in found
    assert log.ranges == []
    many = page(ps.scan([path] * 9).with_row_number("n"))
    assert "9 files" in many.text and "and 4 more" in many and "n" in many.text


def test_a_report_says_what_its_text_says(path: str) -> None:
    scan = ps.scan(path, filter=ps.col("id") < 600)
    for report in (scan.explain(), scan.explain(analyze=True)):
        found = page(report)
        said = " ".join(found.text)
        steps, _, columns = str(report).partition("\n\n")
        assert columns
        for line in steps.splitlines()[1:]:
            for word in re.findall(r"\d[\d,]* of \d[^)]*|\d[\d,]* \w+ \w+ less: .*", line):
                assert word in said
        assert "50.0%" in found.bars  # two of four row groups
        assert "a<b>.parquet" in found
        assert "<script>alert('x')</script>&\"\\u202e\\x00\n" in found.text


def test_all_lines_of_a_report() -> None:
    report = ps.Report(analyzed=True, nan="spark", version="weak", filter="<x>")
    report.retried(2, 1.5)
    report.waves = 3
    report.spent("open", 0.0)
    report.too_dear("bloom_filter", 100, 50)
    report.note("<note>")
    report.leaves = {"a": LeafReport()}
    found = page(report)
    for said in (
        "2 requests tried again, after waits of 1.50 s", "3 waves", "compared as spark", "version: weak",
        "bloom_filter was not asked", "note: <note>", "not counted",
    ):  # fmt: skip
        assert said in found


def test_a_file(path: str, log: Log) -> None:
    with ps.open(path) as file:
        log.clear()
        found = page(file)
        assert f"<ParquetFile {path}: 2,000 rows, 4 row groups, " in repr(file)
        assert repr(file).endswith("big: string>") and "; id: int64, " in repr(file)
        assert log.ranges == []
    for said in ("id", "int64", "0", "1999", "<i>", "x" * 29 + "...", "snappy", "all"):
        assert said in found.text
    assert "100.0%" in found.bars


def test_a_plan(path: str, log: Log) -> None:
    plan = ps.scan(path, filter=ps.col("id") < 600).select("id", EVIL).plan()
    log.clear()
    found = page(plan)
    for said in (
        "a<b>.parquet",
        "where id < 600",
        "1 of 1",
        "2 of 4",
        "columns id, <script>",
    ):
        assert said in found, said
    assert "50.0%" in found.bars
    shown = repr(plan)
    assert shown.startswith("<ScanPlan 1 file, 2 row groups, at most ") and "\n" not in shown
    assert shown.endswith("where id < 600>") and log.ranges == []
    few = ps.scan(path).limit(7).plan()
    assert "no filter, limit 7" in page(few) and repr(few).endswith("; limit 7>")
    assert "no filter" in page(ps.scan(path).plan())
    assert "at most" not in repr(ps.scan(path).plan())
    for part in plan.split(2):
        assert "1 file" in repr(part) and "rows, at most" in page(part).text


def test_a_plan_of_many_files(tmp_path: Path) -> None:
    for i in range(30):
        pq.write_table(pa.table({f"c{n}": [i] for n in range(10)}), tmp_path / f"{i:02}.parquet")
    plan = ps.scan(tmp_path).plan()
    found = page(plan)
    assert "19.parquet" in found and "20.parquet" not in found and "and 10 more files" in found.text
    assert "30 files" in repr(plan) and "c7 and 2 more" in repr(plan) and len(repr(plan)) < 200
    none = ps.scan(tmp_path, filter=ps.col("c0") > 99).plan()
    assert "0 of 30" in page(none).text and "0 files, 0 row groups" in repr(none)


def test_indexes_of_a_file(path: str, tmp_path: Path) -> None:
    out = tmp_path / "<out>.parquet"
    ps.index.attach(path, output=out, lookup=["id"], distinct=[EVIL])
    found = ps.index.list(out)
    shown = page(found)
    for said in ("<out>.parquet", "the rows of each value", "attached", "the writer", "lookup"):
        assert said in shown, said
    assert "<script>alert('x')</script>&\"\\u202e\\x00\n" in shown.text
    again = pickle.loads(pickle.dumps(found))
    assert again == found == list(found) and page(again).text == shown.text
    pq.write_table(pa.table({"a": [1]}), out)
    assert "no indexes" in page(ps.index.list(out))
    wide = pa.table({f"c{n}": [n] for n in range(60)})
    pq.write_table(wide, out, write_page_index=True)
    assert "and 10 more" in page(ps.index.list(out)).text


def test_what_was_rewritten(path: str, tmp_path: Path) -> None:
    made = ps.rewrite(path, tmp_path / "<new>.parquet", sort_by="id")
    found = page(made)
    for said in ("Rewritten: 2,000 rows", "<new>.parquet", "sorted by id", "bytes before"):
        assert said in found
    made.files *= 9
    assert "and 4 more" in page(made).text
    made.files, made.where = [], "a = '<'"
    assert "no partition passes where=" in page(made)


def test_long_words_are_broken_where_the_page_is_narrow() -> None:
    long = "/".join(["folder"] * 10)
    for cell in (long, html.lines([long, "b"])):
        assert "overflow-wrap" in html.table((), [(cell,)])
    for cell in ("a few words " * 9, html.share(1, 2), html.small("b")):
        assert "overflow-wrap" not in html.table((), [(cell,)])


def test_a_wide_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({f"c{i}": [i] for i in range(200)}), tmp_path / "a.parquet")
    with ps.open(tmp_path / "a.parquet") as file:
        assert "and 192 more columns" in repr(file) and len(repr(file)) < 400
        found = page(file)
    assert "c49" in found.text and "c50" not in found.text and "and 150 more columns" in found


def test_values_that_python_lacks(tmp_path: Path) -> None:
    days = pa.array([0, 1 << 30], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"d": days, "none": pa.nulls(2, pa.int64())}), tmp_path / "a.parquet")
    with ps.open(tmp_path / "a.parquet") as file:
        found = page(file)
    assert "?" in found.text and "2" in found.text


def test_a_file_with_impossible_chunks_is_shown_by_a_line(path: str) -> None:
    with ps.open(path) as file:
        file._metadata.chunks = lambda leaf: (_ for _ in ()).throw(ps.CorruptFileError("no"))  # type: ignore[method-assign]
        found = page(file)
    assert "ParquetFile" in found.text and "2,000 rows" in found


def test_results_of_indexes(path: str) -> None:
    attached = ps.index.attach(path, bloom=["id"], in_place=True)
    found = page(attached)
    assert "bloom" in found.text and "id" in found.text and "4" in found.text
    verified = ps.index.verify(path)
    assert "bloom" in page(verified).text and "nothing is wrong" in page(verified)
    verified.findings += [ps.index.Finding("bloom", "id", 0, None, "<wrong>")] * 30
    assert "<wrong>" in page(verified) and "and 10 more" in page(verified)
    assert "30 wrong" in page(verified)


def test_results_of_many_files(path: str, tmp_path: Path) -> None:
    done = ps.index.attach_all([path], bloom=["id"])
    done.failed["<b>"] = OSError("<i>")
    found = page(done)
    assert "1 of 2" in found.text and "50.0%" in found.bars and "failed: <b>: <i>" in found


def test_advice(path: str) -> None:
    found = page(ps.advise(path, queries=["big = 'y'", "id = 7"]))
    assert "as it is" in found.text and "100.0%" in found.bars and "2,000 rows" in found
