"""Links of the documentation lead somewhere, its pages are in the menu of the site, and its reference has every public name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pageseek
import pageseek.index
import pageseek.spark
from support.doc_examples import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)(?: \"[^\"]*\")?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and the site make them."""
    text = FENCED.sub("", path.read_text())
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().replace("`", "")
        found.add(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", plain).strip()))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    path = ROOT / page
    text = CODE.sub("", FENCED.sub("", path.read_text()))
    lost = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        inside = target.is_relative_to(ROOT / "docs") or not path.is_relative_to(ROOT / "docs")
        there = target.exists() and inside  # the site has only what is in docs
        if there and anchor and target.suffix == ".md":
            there = anchor in anchors(target)
        if not there:
            lost.append(link)
    assert not lost, f"{page}: {', '.join(lost)} lead nowhere"


def test_every_page_is_in_the_menu_of_the_site() -> None:
    named = re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert sorted(named) == sorted(pages)
    (styles,) = re.findall(
        r"^extra_css: \[(.+)\]$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    assert (ROOT / "docs" / styles).exists()


def test_the_reference_has_every_public_name() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "docs/api").glob("*.md")))
    listed = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    public = {f"pageseek.{name}" for name in pageseek.__all__}
    public -= {"pageseek.__version__"}
    for module in (pageseek.aio, pageseek.index, pageseek.polars, pageseek.spark):
        public -= {f"pageseek.{module.__name__.rpartition('.')[2]}"}
        name = module.__name__.replace("engines.", "")
        public |= {f"{name}.{one}" for one in module.__all__}
    remedy = "add a line '::: NAME' to a page in docs/api"
    assert sorted(public - listed) == [], remedy
    assert sorted(listed - public) == [], "no public names: take them out of docs/api"


@pytest.mark.parametrize("script", ["pictures.py", "notebooks.py"])
def test_pictures_and_notebooks_are_those_that_the_scripts_make(script: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / script), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def _executed(tmp_path: Path, *sources: str) -> tuple[int, str, list[Any]]:
    """The exit code, the errors and the outputs of the cells of a notebook that was run."""
    cells = [{"cell_type": "code", "source": [source], "outputs": ["old"]} for source in sources]
    text = {"cell_type": "markdown", "source": ["# a title"]}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [text, *cells]}))
    (tmp_path / "made").mkdir(exist_ok=True)
    script = str(ROOT / "tools/run_notebooks.py")
    command = [sys.executable, script, str(tmp_path / "made"), str(tmp_path / "a.ipynb")]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    made = tmp_path / "made/a.ipynb"
    found = json.loads(made.read_text())["cells"][1:] if made.exists() else []
    return run.returncode, run.stderr, [cell["outputs"] for cell in found]


def test_a_notebook_is_executed_and_shows_what_its_cells_show(tmp_path: Path) -> None:
    rich = "class A:\n    def _repr_html_(self):\n        return '<b>x</b>'\na = A()"
    code, _, outputs = _executed(
        tmp_path, rich, "import os\nprint(os.getcwd())", "a", "print(1)\n2", "a; None"
    )
    assert code == 0
    assert outputs[0] == outputs[4] == []
    assert outputs[1][0]["text"] == ["/home/you/demo\n"]
    assert outputs[2][0]["data"]["text/html"] == ["<b>x</b>"]
    assert [one["output_type"] for one in outputs[3]] == ["stream", "execute_result"]
    assert outputs[3][1]["data"] == {"text/plain": ["2"]}


def test_a_cell_that_fails_is_named(tmp_path: Path) -> None:
    for wrong in ("1 / 0", "raise SystemExit(0)", "a b"):
        code, err, outputs = _executed(tmp_path, "x = 1", wrong)
        assert code == 1 and "a.ipynb, cell 2" in err and not outputs
    code, err, outputs = _executed(tmp_path, "raise KeyboardInterrupt")
    assert code != 0 and err.endswith("KeyboardInterrupt\n") and "cell 1:\n" not in err
    assert not outputs


def test_marks_of_conflicts_are_found_in_any_file(tmp_path: Path) -> None:
    def found() -> tuple[int, list[str]]:
        command = [sys.executable, str(ROOT / "tools/conflicts.py"), str(tmp_path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return run.returncode, [line.partition(": ")[0] for line in run.stdout.splitlines()]

    for name, text in (
        (".github/a.yml", f"a\n{'<' * 7} HEAD\n{'=' * 7}\n{'>' * 7} other\n"),
        ("good.md", f"Title\n{'=' * 7}\n x {'<' * 7} y\n{'<' * 8}\n"),
        ("build/b.txt", f"{'<' * 7} HEAD\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert found() == (1, [str(Path(".github/a.yml:2")), str(Path(".github/a.yml:4"))])
    (tmp_path / ".github/a.yml").unlink()
    assert found()[0] == 0
