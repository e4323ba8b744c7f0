"""The metadata of a file as the package sees it: more than `pageseek.open` shows."""

from __future__ import annotations

from pageseek.datasets.sources import open_metadata
from pageseek.format.file_metadata import FileMetadata

__all__ = ["FileMetadata", "open_metadata"]
