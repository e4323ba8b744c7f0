"""What a file says of itself before indexes are added or taken out: whether that is possible, and what was attached."""

from __future__ import annotations

from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.base.report import Report
from pageseek.format.chunks import Chunk
from pageseek.format.embedded import Directory, InvalidIndexError, directory, fingerprint_of_all
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT


def refuse_encrypted(file: FileMetadata) -> None:
    """Raise UnsupportedError where a footer is signed, or columns are encrypted."""
    if file.is_encrypted or _has_any(file, "crypto"):
        raise UnsupportedError(
            f"{file.name}: the file is encrypted: an index in the clear would tell what it hides, and its footer may be signed"
        )


def refuse_chunks_in_footer(file: FileMetadata) -> None:
    """Raise CorruptFileError where a chunk cannot be read, or reaches into the footer, behind which indexes are written."""
    for leaf in file.leaves:
        if file.lie_before(leaf, file.footer_start):
            continue
        for group, rows in enumerate(file.group_rows):
            if not rows:  # its chunks may lie anywhere
                continue
            _, _, stop = file.placed_chunk(group, leaf)
            if stop > file.footer_start:
                raise CorruptFileError(
                    f"{file.name}: column {leaf.name!r}, row group {group}: the chunk ends at byte {stop}, "
                    f"inside the footer, which begins at {file.footer_start}: nothing can be attached"
                )


def attached_directory(file: FileMetadata, report: Report) -> Directory | None:
    """What was attached before; None, with a note, where it is that of another file."""
    try:
        found = directory(file)
        if found is not None and found.chunks not in (None, fingerprint_of_all(file)):
            raise InvalidIndexError(
                "they were built from other column chunks: the file was rewritten"
            )
    except InvalidIndexError as error:
        report.note(f"{file.name}: the indexes that were attached before are given up: {error}")
        return None
    return found


def has_bounds(file: FileMetadata) -> bool:
    """Whether some chunk has min_value or max_value, whose order column_orders says."""
    return _has_any(file, "statistics_min_value_offset", "statistics_max_value_offset")


def _has_any(file: FileMetadata, *fields: str) -> bool:
    """Whether the footer has one of these fields for some chunk."""
    at = [Chunk._fields.index(field) for field in fields]
    return any((file.figures(leaf)[:, at] != ABSENT).any() for leaf in file.leaves)
