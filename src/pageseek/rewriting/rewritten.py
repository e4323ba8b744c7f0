"""What `rewrite` has done."""

from __future__ import annotations

from dataclasses import dataclass, field

from pageseek.base.late_modules import above
from pageseek.base.report import counted, format_size
from pageseek.index.attached import Attached

SHOWN = 3  # names of files


@dataclass(slots=True)
class Rewritten:
    """What was written.

    Attributes
    ----------
    files : list of str
        The new files, in the order of their rows.
    rows, row_groups, pages : int
        In all files; pages of all columns.
    bytes_before, bytes_after : int
        Of the files that were read, and of the new ones.
    sort_by : list of (str, str)
        Columns, and "ascending" or "descending".
    cluster_by : list of str
    indexes : list of Attached
        What was attached to each file, where indexes were wanted.
    spilled : int
        Bytes that waited on disk while the rows were sorted.
    seconds : float
    replaced : int
        Files of a table that went.
    version : int or None
        Of a table, the number of the version (Delta Lake) or of the snapshot (Iceberg) that the commit made; None: there was none.
    where : str or None
        Of a table, the filter that chose partitions. Where none passes it, nothing was written.
    """

    files: list[str]
    rows: int
    row_groups: int
    pages: int
    bytes_before: int
    bytes_after: int
    sort_by: list[tuple[str, str]] = field(default_factory=list)
    cluster_by: list[str] = field(default_factory=list)
    indexes: list[Attached] = field(default_factory=list)
    spilled: int = 0
    seconds: float = 0.0
    replaced: int = 0
    version: int | None = None
    where: str | None = None

    def add(self, part: Rewritten) -> None:
        """Count a part of what was written, such as a partition."""
        self.files += part.files
        self.indexes += part.indexes
        for name in ("rows", "row_groups", "pages", "bytes_before", "bytes_after", "spilled"):
            setattr(self, name, getattr(self, name) + getattr(part, name))

    def _repr_html_(self) -> str:
        shown: str = above("Rewritten._repr_html_")(self)
        return shown

    def __str__(self) -> str:
        if self.where is not None and not self.files and not self.replaced:
            return f"no file: no partition passes where={self.where!r}"
        names = self.files[:SHOWN] or ["no file"]
        more = f" and {len(self.files) - SHOWN:,} more" if len(self.files) > SHOWN else ""
        sizes = f"{format_size(self.bytes_before)} -> {format_size(self.bytes_after)}"
        lines = [
            f"{', '.join(names)}{more}: {counted(self.rows, 'row')}, {sizes}, in {self.seconds:.1f} s",
            f"  {counted(self.row_groups, 'row group')}, {counted(self.pages, 'page')}",
        ]
        if self.version is not None:
            lines.append(
                f"  {counted(self.replaced, 'file')} -> {counted(len(self.files), 'file')}, in version {self.version} of the table"
            )
        if self.sort_by:
            said = [name if way == "ascending" else f"{name} {way}" for name, way in self.sort_by]
            lines.append(f"  sorted by {', '.join(said)}")
        if self.cluster_by:
            lines.append(f"  clustered by {', '.join(self.cluster_by)}")
        if self.spilled:
            lines.append(f"  {format_size(self.spilled)} waited on disk")
        for made in self.indexes:
            lines += ["  " + line for line in str(made).splitlines()[1:]]
        return "\n".join(lines)
