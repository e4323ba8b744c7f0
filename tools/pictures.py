"""Draws the pictures of docs/concepts.md into docs/pictures.

usage: pictures.py [--check]      (--check: say which differ from what this script draws)
"""

from __future__ import annotations

import sys
from html import escape

from steps import ROOT

INK, DIM, LINE, PAPER = "#1f2933", "#6b7785", "#9aa5b1", "#ffffff"
READ, LEFT, INDEX = "#0f9d8a", "#e4e8ec", "#f4b740"  # read, left out, an index
TIP = "id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'"
FONT = "font-family='system-ui, sans-serif'"


class Picture:
    """Shapes on a sheet of paper, with a description for those who cannot see it."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' role='img'>",
            f"<title>{escape(title)}</title>",
            f"<defs><marker {TIP}><path d='M0 0 8 4 0 8z' fill='{INK}'/></marker></defs>",
            f"<rect width='{width}' height='{height}' rx='10' fill='{PAPER}'/>",
        ]

    def box(self, x: float, y: float, w: float, h: float, fill: str, line: str = LINE) -> None:
        self.parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{w:g}' height='{h:g}' rx='3' fill='{fill}' stroke='{line}'/>"
        )

    def text(
        self,
        x: float,
        y: float,
        said: str,
        size: int = 13,
        anchor: str = "start",
        fill: str = INK,
        bold: bool = False,
    ) -> None:
        weight = " font-weight='600'" if bold else ""
        self.parts.append(
            f"<text x='{x:g}' y='{y:g}' font-size='{size}' text-anchor='{anchor}' fill='{fill}' {FONT}{weight}>"
            f"{escape(said)}</text>"
        )

    def arrow(self, *points: tuple[float, float]) -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f"<polyline points='{path}' fill='none' stroke='{INK}' stroke-width='1.5' marker-end='url(#tip)'/>"
        )

    def key(self, x: float, y: float, *entries: tuple[str, str]) -> None:
        """Say what colours mean."""
        for colour, said in entries:
            self.box(x, y - 11, 14, 14, colour)
            self.text(x + 20, y, said, 12, fill=DIM)
            x += 44 + 7 * len(said)

    def svg(self) -> str:
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def anatomy() -> str:
    """A file from its first byte to its last."""
    p = Picture(
        760,
        430,
        "A Parquet file: row groups of column chunks of pages, then indexes, then the footer",
    )
    columns = ("id", "customer", "price")
    for group in range(2):
        top = 40 + group * 125
        p.text(20, top - 10, f"row group {group}", bold=True)
        for i, name in enumerate(columns):
            x = 20 + i * 180
            p.box(x, top, 165, 80, "#f7f9fa")
            p.text(x + 8, top + 17, f"column chunk {name}", 12)
            for page in range((4, 3, 5)[i]):
                width = 149 / (4, 3, 5)[i]
                p.box(x + 8 + page * width, top + 28, width - 3, 42, LEFT)
                p.text(x + 6 + (page + 0.5) * width, top + 53, str(page), 11, "middle", DIM)
    p.text(570, 70, "Pages are the smallest", 12, fill=DIM)
    p.text(570, 87, "unit that can be decoded.", 12, fill=DIM)
    p.text(570, 112, "Pages of two columns need", 12, fill=DIM)
    p.text(570, 129, "not begin at the same row.", 12, fill=DIM)
    for i, (name, what) in enumerate(
        (
            ("Bloom filters", "is a value certainly absent?"),
            ("column index", "bounds of every page"),
            ("offset index", "place and first row of every page"),
        )
    ):
        x = 20 + i * 180
        p.box(x, 285, 165, 40, INDEX)
        p.text(x + 8, 303, name, 12, bold=True)
        p.text(x + 8, 318, what, 9)
    p.box(20, 340, 525, 44, "#cfe8ff")
    p.text(28, 359, "footer", 12, bold=True)
    p.text(
        28,
        375,
        "schema; of each column chunk its place, size and statistics; places of the indexes",
        11,
    )
    p.box(20, 392, 165, 22, LEFT)
    p.text(28, 407, "length of the footer, PAR1", 11)
    p.arrow((640, 402), (560, 402), (560, 362), (550, 362))
    p.text(648, 399, "a reader begins", 12, fill=DIM)
    p.text(648, 414, "at the end", 12, fill=DIM)
    return p.svg()


def lookup() -> str:
    """The five steps of a lookup."""
    p = Picture(760, 470, "A lookup: tail, statistics of row groups, column index, pages, rows")
    p.text(20, 28, "id = 4711", 15, bold=True)
    steps = (
        ("1  tail", "One read of the end of the file brings the footer", "and usually the page index."),
        ("2  row groups", "Statistics in the footer rule out row groups;", "Bloom filters and dictionaries where they pay."),
        ("3  pages", "Bounds in the column index rule out pages.", "The offset index says where the others lie."),
        ("4  filter", "The page of id is fetched and decoded.", "One row of it passes."),
        ("5  payload", "Of the other columns the pages of that row", "are decoded, and of these only that row."),
    )  # fmt: skip
    for i, (name, first, second) in enumerate(steps):
        y = 62 + i * 82
        p.text(20, y + 14, name, 14, bold=True)
        p.text(20, y + 34, first, 12, fill=DIM)
        p.text(20, y + 50, second, 12, fill=DIM)
        if i:
            p.arrow((560, y - 20), (560, y - 6))
    x0 = 370
    p.box(x0, 64, 380, 26, LEFT)
    p.box(x0 + 320, 64, 60, 26, "#cfe8ff")
    p.text(x0 + 350, 82, "tail", 11, "middle")
    p.text(x0 + 160, 82, "data: not read yet", 11, "middle", DIM)
    for i in range(4):
        p.box(x0 + i * 96, 146, 90, 26, READ if i == 1 else LEFT)
        p.text(x0 + i * 96 + 45, 164, ("0 … 3999", "4000 … 7999", "8000 … 11999", "12000 … 15999")[i], 10, "middle", PAPER if i == 1 else DIM)  # fmt: skip
    for i in range(8):
        p.box(x0 + i * 48, 228, 43, 26, READ if i == 1 else LEFT)
        if i < 4:
            p.text(x0 + i * 48 + 21, 245, ("4000…", "4500…", "5000…", "5500…")[i], 10, "middle", PAPER if i == 1 else DIM)  # fmt: skip
    for i in range(38):
        p.box(x0 + i * 10, 310, 8, 26, READ if i == 16 else LEFT)
    p.text(x0, 352, "500 rows of one page; 4711 is one of them", 10, fill=DIM)
    for i, name in enumerate(("customer", "price", "comment")):
        y = 384 + i * 26
        p.text(x0, y + 14, name, 11)
        for page in range(8):
            p.box(x0 + 70 + page * 39, y, 35, 18, LEFT)
        p.box(x0 + 70 + 39, y, 35, 18, "#bfe6df")
        p.box(x0 + 70 + 39 + 15, y, 4, 18, READ)
    return p.svg()


def late() -> str:
    """Late materialization, by two columns."""
    p = Picture(
        760, 300, "Late materialization: payload columns are decoded only for the rows that passed"
    )
    p.text(20, 30, "customer = 17", 15, bold=True)
    p.text(150, 30, "wanted: customer, price, comment", 13, fill=DIM)
    passed = {3, 11}
    for column, (name, pages) in enumerate((("customer", 4), ("price", 3), ("comment", 6))):
        y = 62 + column * 66
        p.text(20, y + 24, name, 13, bold=True)
        width = 600 / pages
        for page in range(pages):
            first, stop = page * 24 / pages, (page + 1) * 24 / pages
            hit = any(first <= row < stop for row in passed)
            fetched = column == 0 or hit
            p.box(130 + page * width, y, width - 6, 40, "#bfe6df" if fetched else LEFT)
        for row in range(24):
            if column == 0 or row in passed:
                p.box(133 + row * 25, y + 8, 14, 24, READ if row in passed else "#7cc9bd")
    for row in passed:
        p.arrow((140 + row * 25, 104), (140 + row * 25, 124))
        p.arrow((140 + row * 25, 170), (140 + row * 25, 190))
    p.key(130, 280, (READ, "rows that pass"), ("#7cc9bd", "decoded for the filter"), ("#bfe6df", "pages fetched"), (LEFT, "not read"))  # fmt: skip
    return p.svg()


def coalescing() -> str:
    """Ranges that become few requests."""
    p = Picture(760, 210, "Coalescing: pages that lie near one another are fetched by one request")
    p.text(20, 30, "Pages wanted, by their place in the file", 13, bold=True)
    wanted = ((20, 60), (95, 50), (155, 40), (480, 70), (565, 40), (690, 40))
    p.box(20, 45, 720, 30, LEFT)
    for x, w in wanted:
        p.box(x, 45, w, 30, READ)
    p.text(20, 120, "Requests on local disk", 13, bold=True)
    for x, w in wanted:
        p.box(x, 130, w, 12, INDEX)
    p.text(20, 170, "Requests to a remote store", 13, bold=True)
    for x, stop in ((20, 195), (480, 605), (690, 730)):
        p.box(x, 180, stop - x, 12, INDEX)
    p.text(400, 170, "a small gap is read, where that takes less than a round trip", 12, fill=DIM)
    return p.svg()


PICTURES = {
    "anatomy": anatomy,
    "lookup": lookup,
    "late-materialization": late,
    "coalescing": coalescing,
}


def main(arguments: list[str]) -> int:
    """Draw, or compare."""
    folder = ROOT / "docs" / "pictures"
    stale = []
    for name, draw in PICTURES.items():
        path, svg = folder / f"{name}.svg", draw()
        if arguments == ["--check"]:
            if not path.exists() or path.read_text() != svg:
                stale.append(path.name)
        else:
            path.write_text(svg)
    if stale:
        print(f"pictures: run tools/pictures.py; it draws otherwise: {', '.join(stale)}")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
