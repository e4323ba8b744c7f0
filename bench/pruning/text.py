"""Columns of text in several languages, read in full: what a reader does that has nothing to prune."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "LANGUAGES", "Full", "texts", "write"]

ROWS, GROUP, DIFFERENT = 200_000, 100_000, 500
SEED = 23
LETTERS = "abcdefghijklmnopqrstuvwxyz "
# letters, and how often one of the first 27 is taken
LANGUAGES = {
    "ascii": (LETTERS, 1.0),
    "german": (LETTERS + "äöüß", 0.96),
    "cyrillic": ("".join(map(chr, range(0x430, 0x450))), 27 / 32),
    "japanese": ("".join(map(chr, [*range(0x3042, 0x3094), *range(0x4E00, 0x4E80)])), 27 / 210),
}
ENCODINGS = {
    "plain": "PLAIN",
    "dictionary": "",
    "lengths": "DELTA_LENGTH_BYTE_ARRAY",
    "strings": "DELTA_BYTE_ARRAY",
}


@dataclass(frozen=True, slots=True)
class Full:
    """A column of which every row is wanted."""

    language: str
    chars: int
    encoding: str
    nulls: int = 0  # per cent

    @property
    def name(self) -> str:
        """As the column is called."""
        end = f"-nulls-{self.nulls}" if self.nulls else ""
        return f"{self.language}-{self.chars}-{self.encoding}{end}"


COLUMNS: tuple[Full, ...] = (
    *(Full(language, 40, encoding) for encoding in ENCODINGS for language in LANGUAGES),
    *(Full(language, chars, "plain") for chars in (5, 300) for language in LANGUAGES),
    *(Full(language, 40, encoding, 10) for encoding in ENCODINGS for language in LANGUAGES),
)


def texts(language: str, chars: int, rows: int, different: int, seed: int = SEED) -> pa.Array:
    """Rows of random letters, of which so many are different."""
    dice = np.random.default_rng(seed)
    letters, share = LANGUAGES[language]
    often = min(27, len(letters))
    chances = [share / often] * often
    chances += [(1 - share) / max(len(letters) - often, 1)] * (len(letters) - often)
    made = dice.choice(
        np.array(list(letters)), (different, chars), p=np.array(chances) / sum(chances)
    )
    words = pa.array(["".join(line) for line in made.tolist()])
    return words.take(pa.array(dice.integers(0, different, rows)))


def write(folder: Path) -> Path:
    """The file of all columns, uncompressed; made once and found there again."""
    path = folder / f"text-{ROWS}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    columns = {}
    for one in COLUMNS:
        few = DIFFERENT if one.encoding == "dictionary" else 20_000
        values = texts(one.language, one.chars, ROWS, few)
        if one.nulls:
            absent = np.random.default_rng(SEED).random(ROWS) < one.nulls / 100
            values = values.take(pa.array(np.arange(ROWS), mask=absent))
        columns[one.name] = values
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    pq.write_table(
        pa.table(columns), unfinished, row_group_size=GROUP, compression="none",
        use_dictionary=[one.name for one in COLUMNS if one.encoding == "dictionary"],
        column_encoding={one.name: ENCODINGS[one.encoding] for one in COLUMNS if one.encoding != "dictionary"},
    )  # fmt: skip
    unfinished.replace(path)
    return path
