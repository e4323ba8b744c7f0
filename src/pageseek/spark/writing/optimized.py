"""What `optimize` has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pageseek.base.report import counted, format_size
from pageseek.spark.writing.write import WrittenFile


@dataclass(frozen=True, slots=True)
class Optimized:
    """What was rewritten. Print it.

    Attributes
    ----------
    path : str
        The folder.
    files : tuple of WrittenFile
        The new files, with their rows and bytes.
    files_before, bytes_before : int
        Of the files that they replace.
    groups, kept : int
        Groups of files that were written together; how many of them a run that died had finished.
    row_groups, pages : int
        Of the new files; pages of all columns.
    sort_by : tuple of (str, str)
        Columns, and "ascending" or "descending".
    cluster_by : tuple of str
    indexes : mapping of (str, str) to int
        By kind and column, the chunks that got an index.
    skipped : tuple of str
        Why others got none.
    spilled : int
        Bytes that waited on disks while rows were sorted.
    seconds : float
    """

    path: str
    files: tuple[WrittenFile, ...]
    files_before: int
    bytes_before: int
    groups: int
    kept: int = 0
    row_groups: int = 0
    pages: int = 0
    sort_by: tuple[tuple[str, str], ...] = ()
    cluster_by: tuple[str, ...] = ()
    indexes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    spilled: int = 0
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes_after(self) -> int:
        """The bytes of the new files."""
        return sum(file.bytes for file in self.files)

    def __str__(self) -> str:
        before = f"{counted(self.files_before, 'file')} of {format_size(self.bytes_before)}"
        after = f"{counted(len(self.files), 'file')} of {format_size(self.bytes_after)}"
        lines = [
            f"{self.path}: {counted(self.rows, 'row')}, {before} -> {after}, in {self.seconds:.1f} s",
            f"  {counted(self.groups, 'group')}, {counted(self.row_groups, 'row group')}, {counted(self.pages, 'page')}",
        ]
        if self.kept:
            lines.append(f"  {counted(self.kept, 'group')} finished by a run that died")
        if self.sort_by:
            said = [name if way == "ascending" else f"{name} {way}" for name, way in self.sort_by]
            lines.append(f"  each file sorted by {', '.join(said)}")
        if self.cluster_by:
            lines.append(f"  each file clustered by {', '.join(self.cluster_by)}")
        if self.spilled:
            lines.append(f"  {format_size(self.spilled)} waited on disk")
        width = max([len(column) for _, column in self.indexes], default=0)
        lines += [
            f"  {kind:<10}  {column:<{width}}  {counted(chunks, 'chunk')}"
            for (kind, column), chunks in self.indexes.items()
        ]
        lines += [f"  not: {why}" for why in self.skipped]
        return "\n".join(lines)
