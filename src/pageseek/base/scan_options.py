"""The options of `pageseek.scan`, for type checkers: functions that hand them on take `**options: Unpack[ScanOptions]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pageseek.base.habits import ReadHabits

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Literal

    import pyarrow as pa

    from pageseek.base.progress import Progress


class ScanOptions(ReadHabits, total=False):
    """All options of `scan` but columns, filter and limit."""

    params: Sequence[Any] | Mapping[str, Any] | None
    nan: Literal["ieee", "spark"]
    int96_unit: Literal["ns", "us", "ms"]
    string_type: Literal["string", "large", "view"]
    dictionary_columns: Sequence[str]
    out_of_range: Literal["error", "keep"]
    prune: bool | Collection[str]
    distinct_index: str | None
    batch_size: int
    threads: int | None
    max_ahead_bytes: int
    progress: bool | Callable[[Progress], None]
    max_page_bytes: int
    max_output_bytes: int
    max_metadata_bytes: int
    partitioning: Any
    schema: pa.Schema | None
    table: bool | None
    version: int | None
    timestamp: dt.datetime | str | None
    snapshot: int | str | None
    filesystem: Any
    storage_options: Mapping[str, Any] | None
    retries: int | None
    timeout: float | None
