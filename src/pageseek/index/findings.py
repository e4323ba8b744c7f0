"""What `verify` has found in a file or a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from pageseek.base.late_modules import above
from pageseek.base.records import NamedTuple


class Finding(NamedTuple):
    """Something that an index says and the data denies. `page` is None where it is about a whole chunk, `row_group` where it is
    about the file. `file` is named where a table was verified.
    """

    kind: str
    column: str
    row_group: int | None
    page: int | None
    what: str
    file: str = ""

    def __str__(self) -> str:
        where = f"{self.kind} of {self.column!r}" if self.column else self.kind
        if self.row_group is not None:
            where += f", row group {self.row_group}"
        if self.page is not None:
            where += f", page {self.page}"
        return f"{self.file}: {where}: {self.what}" if self.file else f"{where}: {self.what}"


@dataclass(slots=True)
class Verified:
    """`checked`: how many chunks have an index of each kind, and of how many columns of files a table's log has statistics. All
    were compared with the data.
    """

    path: str
    checked: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        kinds = ", ".join(f"{n:,} of {kind}" for kind, n in self.checked.items()) or "nothing"
        lines = [f"{self.path}: {kinds} checked, {len(self.findings):,} wrong"]
        return "\n".join([*lines, *(f"  {one}" for one in self.findings)])

    def _repr_html_(self) -> str:
        shown: str = above("Verified._repr_html_")(self)
        return shown
