"""Limits on sizes that a file claims: far beyond those of honest files, and below those that do harm."""

from __future__ import annotations

from dataclasses import fields

from pageseek.base.arguments import whole
from pageseek.base.records import dataclass

MOST = (1 << 63) - 1  # what the core counts to: a greater limit means the same


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes that one scan lets a file claim; a greater one is a LimitError that names the option to raise.

    Attributes
    ----------
    max_page_bytes : int
        One page, decompressed.
    max_output_bytes : int
        Each buffer of one column of one row group, decoded.
    max_metadata_bytes : int
        A footer or an index, as it lies in the file and as it is parsed.
    """

    max_page_bytes: int = 1 << 30
    max_output_bytes: int = 1 << 33
    max_metadata_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        for option in fields(self):
            value = whole(option.name, getattr(self, option.name))
            if value < 1:
                raise ValueError(f"{option.name}={value}: at least 1")
            if value > MOST:
                object.__setattr__(self, option.name, MOST)


DEFAULT = Limits()
