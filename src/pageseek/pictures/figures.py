"""Figures without a window, and colours that readers who are blind to some tell apart."""

from __future__ import annotations

import importlib
import io
import os
import warnings
from importlib.util import find_spec
from typing import Any

from pageseek.base.escapes import one_line

# The palette of Okabe and Ito (2008).
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"
PALE, INK = "#D9D9D9", "#333333"
SETTINGS = {
    "font.size": 9,
    "axes.edgecolor": "#999999",
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.parse_math": False,  # a name may have dollars
    "svg.hashsalt": "pageseek",
}
FORMATS = ("png", "svg", "pdf")


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    if find_spec("matplotlib") is None:
        raise ImportError(
            "pictures are drawn by matplotlib, which is not installed: pip install 'pageseek[plot]'"
        )
    return importlib.import_module("matplotlib.figure").Figure(
        (width, height), layout="constrained"
    )


def settings() -> Any:
    """While the block runs, the settings of these pictures."""
    if find_spec("matplotlib") is None:
        new_figure(1, 1)
    return importlib.import_module("matplotlib").rc_context(SETTINGS)


def save(figure: Any, path: str | os.PathLike[str], replace: bool = True) -> None:
    """Write a figure in the form that the ending of the name says. A file appears when it is complete. `replace`: in place of another."""
    name = os.fspath(path)
    form = os.path.splitext(name)[1][1:].lower()
    if form not in FORMATS:
        raise ValueError(f"{name}: a picture is a file whose name ends in .{', .'.join(FORMATS)}")
    from pageseek.storage.atomic_files import Draft, refuse_place

    refuse_place(name, replace)
    body = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box is drawn for it
        figure.savefig(body, format=form, dpi=150, facecolor="white", metadata=undated)
    draft = Draft(name)
    try:
        if replace:
            draft.take_rights_of_old()
        draft.write(body.getbuffer())
        draft.appear(replace)
    finally:
        draft.close()


def cut(text: str, longest: int) -> str:
    """A text for a label, on one line."""
    text = one_line(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def cut_name(name: str, longest: int = 60) -> str:
    """A name of a file, whose end matters most."""
    name = cut(name, 10_000)
    return name if len(name) <= longest else "…" + name[1 - longest :]
