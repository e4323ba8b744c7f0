"""Links of the documentation lead somewhere, its pages are in the menu of the site, and its reference has every public name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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
