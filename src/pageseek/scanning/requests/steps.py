"""The steps between a file scan and its lane.

The states of a scan are generators of steps. A step asks the lane to read bytes, or to run jobs. The lane sends the result back
into the generator, or throws the error into it. A generator does no IO, starts no thread, and does not know how long it waits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from pageseek._core.codecs import CodecSettings
from pageseek.base.limits import DEFAULT, Limits
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.codecs import decompressor, prefix_of
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.fetch import Kept
from pageseek.io.range_requests import DecodePages, Wanted

T = TypeVar("T")
LEAST_RESERVED = 1 << 16  # bytes; less makes no difference to the memory of a scan
Held: TypeAlias = tuple[int, memoryview]  # bytes of a file, and where they begin


class ScanContext:
    """What the states of a file scan share: settings, and the report.

    Attributes
    ----------
    report : Report
        Counts what happens.
    limits : Limits
        What a file may claim.
    kept : Kept
        Bytes that were read to prune, and that the scan may need again.
    wait_bytes : int
        The bytes that come in the time of one wait for the store; 0 where a read does not wait (storage.store.wait_bytes).
    row_groups : int
        The row groups of the file, and pieces of these, that are read. They wait side by side.
    threads : int
        How many may decode.
    codec_settings : dict
        How the pages of each codec are decoded.
    """

    __slots__ = (
        "codec_settings",
        "kept",
        "limits",
        "report",
        "row_groups",
        "threads",
        "wait_bytes",
    )

    def __init__(
        self,
        report: Report,
        limits: Limits = DEFAULT,
        kept: Kept | None = None,
        wait_bytes: int = 0,
        threads: int = 1,
    ) -> None:
        self.report, self.limits, self.wait_bytes = report, limits, wait_bytes
        self.threads = threads
        self.kept = Kept() if kept is None else kept
        self.row_groups = 1
        self.codec_settings: dict[int, CodecSettings] = {}

    def counting(self, report: Report) -> ScanContext:
        """The same settings with another report."""
        made = ScanContext(report, self.limits, self.kept, self.wait_bytes, self.threads)
        made.row_groups, made.codec_settings = self.row_groups, self.codec_settings
        return made

    def settings_of(self, number: int, file: FileMetadata) -> CodecSettings:
        """The settings that the decoders of all chunks of a codec share, in one scan of one file."""
        codec, decompress = decompressor(number)
        prefix, step = prefix_of(codec)
        made = self.codec_settings[number] = CodecSettings(
            codec,
            decompress,
            prefix,
            step,
            self.limits.max_output_bytes,
            self.limits.max_page_bytes,
            file.writer.lsb_levels,
            file.writer.always_compressed,
        )
        return made


class IndexMismatch(Exception):
    """The offset index of a leaf does not fit the pages that it points to: nothing it said can be trusted."""

    def __init__(self, leaf: Leaf, message: str) -> None:
        super().__init__(message)
        self.leaf = leaf


class Read(NamedTuple):
    """Bytes of the file at each (offset, length). `kind`: metadata, index or data. The result is a memoryview of each; of data it
    may be FileBytes, which are read by the thread that needs them.
    """

    ranges: Wanted
    kind: str


class Decode(NamedTuple):
    """Jobs that may be done side by side, each a generator of steps. `nbytes`: of what they decode. The result is that of each
    job, in their order.
    """

    jobs: Sequence[Steps[Any]]
    nbytes: int


class Reserve(NamedTuple):
    """Bytes of memory that the scan will take beyond those that it was begun with."""

    nbytes: int


# a list of ranges, as pruners yield it, reads bytes of indexes
Step: TypeAlias = Wanted | Read | DecodePages | Decode | Reserve
Steps: TypeAlias = Generator[Step, Any, T]
