"""Indexes put into a Parquet file, and taken out: its pages stay where they are, and a new footer says where the rest is.

What the file had up to its old footer is kept, byte for byte and at the same places; indexes follow it, then the new
footer, in which whatever else the old one had is as it was. The form is that of docs/format.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pageseek._core import build as core
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError, CorruptFileError, UnsupportedError, from_core
from pageseek.base.progress import Watch
from pageseek.base.report import Report, format_size
from pageseek.format.checksums import PIECE, with_sum
from pageseek.format.chunks import Chunk as Record
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import (
    BLOOM,
    KEY,
    LONGEST,
    PAGE_INDEX,
    Directory,
    InvalidIndexError,
    Pointer,
    directory,
    fingerprint,
    fingerprint_of_all,
    framed,
    merged,
    of_leaf,
    opened,
    types_of,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.format.value_list import KIND as DISTINCT
from pageseek.format.value_list import VERSION as DISTINCT_VERSION
from pageseek.index import bloom_builder as bloom
from pageseek.index import distinct_builder as distinct
from pageseek.index.build import BuiltIndexes, IndexSpec, build
from pageseek.index.chunk_walk import each_chunk
from pageseek.index.distinct_builder import FileValues, GroupValues
from pageseek.index.local_target import Target
from pageseek.index.page_index_builder import PageIndex
from pageseek.index.page_reader import Chunk
from pageseek.index.targets import ends
from pageseek.prune import datafusion_list as published
from pageseek.storage import Store

PUBLISHED = published.KIND
GONE = -1
OFFSET_PLACE, COLUMN_PLACE, BLOOM_PLACE = 0, 2, 4  # among those of a chunk (ps_footer_edit)
LISTED = 256 << 20  # bytes that the values of all columns take together


@dataclass(slots=True)
class Attached:
    """What was done to a file. `added`: by kind and column, the chunks that have an index now and had none; less than zero of
    those that had one and have none now. `skipped`: why others have none.
    """

    path: str
    bytes_before: int
    bytes_after: int
    added: dict[tuple[str, str], int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        more = self.bytes_after - self.bytes_before
        lines = [
            f"{self.path}: {format_size(self.bytes_before)} and {format_size(abs(more))} {'more' if more >= 0 else 'less'}"
        ]
        width = max([len(column) for _, column in self.added], default=0)
        lines += [
            f"  {kind:<10}  {column:<{width}}  {abs(n):,} chunk{'s' * (abs(n) != 1)}{' taken out' * (n < 0)}"
            for (kind, column), n in self.added.items()
        ]
        lines += [f"  not: {why}" for why in self.skipped]
        return "\n".join(lines)


def attach(
    source: Any,
    *,
    page_index: bool | Sequence[str] = True,
    bloom: Sequence[str] | Mapping[str, float] = (),
    distinct: Sequence[str] = (),
    distinct_index: str | None = None,
    output: Any = None,
    in_place: bool = False,
    overwrite: bool = False,
    table: Any = None,
    replace: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
) -> Attached:
    """Add indexes to a Parquet file; its data is not touched, and every reader still reads it.

    Parameters
    ----------
    source : path, URL, (filesystem, path), or bytes
        One file: whatever `scan` takes for one.
    page_index : bool or list of str
        ColumnIndex and OffsetIndex (PageIndex.md), of every column or of some, where chunks have none. All readers that know
        page indexes profit.
    bloom : list of str, or dict
        Columns that get Parquet's own Bloom filters (BloomFilter.md), where chunks have none; with a dict the rate
        of false positives of each (0.01 otherwise).
    distinct : list of str
        Columns whose different values are listed, for the file and for each row group, where they are not too many. Read by
        pageseek.
    distinct_index : str
        A column of strings whose different values are also written in the form that DataFusion published: `IDX1`, a length,
        values with newlines between them, and its place under the key `distinct_index_offset`.
    output : path, URL, or (filesystem, path)
        Where the new file goes, which has what the store of the old one says of it (Content-Type, user metadata), where that of
        the new one takes it. `in_place=True` replaces the old one instead, if it is still the version that was read: on S3, GCS
        and Azure by a write on that condition, which obstore has and other filesystems have not. Either way it appears in one
        step, once it is complete. What goes to a store is put together in the folder for temporary files.
    overwrite : bool
        Let `output` replace what is there, whatever it is.
    table : deltalake.DeltaTable, or a table of pyiceberg; or False
        That the file belongs to, in place of `output` and `in_place`. The new file goes beside the old one, and one commit exchanges
        them, with partition values and statistics as they were; the object is of that version then. `source` may be spelt as
        the table spells it (`file_uris()`, `inspect.data_files()["file_path"]`), and is opened with the table's own options then.
        A `source` that is the folder of a table is refused without it; False takes the bare files of such a folder, as in `scan`.
    replace : bool
        Build what is there anew.
    storage_options : mapping
        Of the stores that `source` and `output` name by URLs, as of `scan`.
    threads : int
        That decode; as many as there are cores if not given.
    progress : bool or callable
        Show a bar (by tqdm), or call a function with a pageseek.Progress after each chunk.

    Returns
    -------
    Attached
        What was added, and what was not, and why. Where nothing was, a file stays as it is, in place and in a table.

    Raises
    ------
    UnsupportedError
        The file is encrypted, a column cannot have such an index, the store cannot replace a file on the condition that it is the
        one that was read, or the new file would lie in a Delta Lake or Iceberg table, which records the sizes of its files (`table`).
        Of a `table`: rows of the file are deleted by vectors or delete files, or it asks more of writers than is known here.
    CorruptFileError
        A page cannot be read. Nothing was written.
    FileChangedError
        The file became another one meanwhile, and that one is left as it is, or somebody has taken it out of the `table`. Nothing
        was written.
    StoreError
        A store failed, or a commit to the `table`.
    FileExistsError
        Something lies where `output` says. Nothing was written.
    """
    if not isinstance(distinct_index, str | None):
        raise TypeError(f"distinct_index={distinct_index!r}: the name of one column")
    one, end = ends(source, output, in_place, overwrite, storage_options, table)
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:
        _refuse(file)
        before = directory_of(file, report)
        if distinct_index is not None and not replace and _has_published(file):
            report.note(f"{file.name}: it has a list in the published form; say replace=True")
            distinct_index = None
        specs = _specs(file, page_index, bloom, distinct, distinct_index, replace, before, report)
        paged = any(spec.page_index for spec in specs)  # only bounds of pages need an order
        order_given = paged and not file.has_orders and not _has_bounds(file)
        if end.in_place and not specs:  # it has everything
            return Attached(one.name, file.store.size, file.store.size, skipped=report.notes)
        with closing(end.target(file.store)) as target:
            made = _Writing(file, target, before, order_given, replace)
            near = target.copy(file.store, file.footer_start)
            for chunk in _built(file, near, specs, report, order_given, threads, progress):
                made.take(chunk)
            made.finish(specs)
            if made.result.added or not end.in_place:
                target.commit(file.store.check)
                end.done(target.size)
            else:
                made.result.path, made.result.bytes_after = one.name, file.store.size
    made.result.skipped[:0] = report.notes
    return made.result


def _built(
    file: FileMetadata,
    store: Store,
    specs: Sequence[IndexSpec],
    report: Report,
    order_given: bool,
    threads: int | None,
    progress: bool | Watch,
) -> Iterable[BuiltIndexes]:
    """What is wanted of all chunks, in the order of the file."""
    of = {spec.leaf.index: spec for spec in specs}
    chunks = [
        (group, spec.leaf)
        for group in range(file.num_row_groups)
        for spec in specs
        if spec.asks(group) and file.group_rows[group]
    ]

    def work(chunk: Chunk) -> BuiltIndexes:
        return build(file, chunk, of[chunk.leaf.index], order_given)

    def held(group: int, leaf: Leaf) -> int:
        spec = of[leaf.index]
        return (
            bloom.bytes_for(leaf, file.chunk(group, leaf), spec.rate) if group in spec.bloom else 0
        )

    return each_chunk(file, chunks, work, report, threads, progress, store, held)


def refuse_encrypted(file: FileMetadata) -> None:
    """Raise UnsupportedError where a footer is signed, or columns are secret."""
    if file.is_encrypted or _has_any(file, "crypto"):
        raise UnsupportedError(
            f"{file.name}: the file is encrypted: an index in the clear would tell what it hides, and its footer may be signed"
        )


def _refuse(file: FileMetadata) -> None:
    refuse_encrypted(file)
    for leaf in file.leaves:
        if file.lie_before(leaf, file.footer_start):
            continue
        for group, rows in enumerate(file.group_rows):
            if not rows:  # of no place
                continue
            _, _, stop = file.placed_chunk(group, leaf)
            if stop > file.footer_start:
                raise CorruptFileError(
                    f"{file.name}: column {leaf.name!r}, row group {group}: the chunk ends at byte {stop}, "
                    f"inside the footer, which begins at {file.footer_start}: nothing can be attached"
                )


def directory_of(file: FileMetadata, report: Report) -> Directory | None:
    try:
        found = directory(file)
        if found is not None and found.chunks not in (None, fingerprint_of_all(file)):
            raise InvalidIndexError(
                "they were built from other column chunks: the file was written anew"
            )
    except InvalidIndexError as error:
        report.note(f"{file.name}: the indexes that were attached before are given up: {error}")
        return None
    return found


def _has_published(file: FileMetadata) -> bool:
    """Whether there is a list in the published form, whoever wrote it."""
    try:
        return published.place(file) is not None
    except InvalidIndexError:
        return False


def _has_list(file: FileMetadata, leaf: Leaf, before: Directory | None, report: Report) -> bool:
    """Whether a column has a list of its values that readers use; one that they would not is built anew."""
    try:
        pointer = of_leaf(leaf, DISTINCT, DISTINCT_VERSION, before)
        if pointer is None:
            return False
        (data,) = file.store.read([(pointer.offset, pointer.length)])
        opened(pointer, memoryview(data), fingerprint(file, leaf))
    except InvalidIndexError as error:
        report.note(
            f"{file.name}: column {leaf.name!r}: its list of distinct values is given up: {error}"
        )
        return False
    return True


def _has_bounds(file: FileMetadata) -> bool:
    """Whether some chunk has min_value or max_value, which mean something only by column_orders."""
    return _has_any(file, "statistics_min_value_offset", "statistics_max_value_offset")


def _has_any(file: FileMetadata, *fields: str) -> bool:
    """Whether the record of some chunk has one of these fields."""
    at = [Record._fields.index(field) for field in fields]
    return any((file.figures(leaf)[:, at] != ABSENT).any() for leaf in file.leaves)


def _specs(
    file: FileMetadata,
    page_index: bool | Sequence[str],
    blooms: Sequence[str] | Mapping[str, float],
    lists: Sequence[str],
    published_of: str | None,
    replace: bool,
    before: Directory | None,
    report: Report,
) -> list[IndexSpec]:
    """What is wanted of each leaf, in their order."""
    rates = (
        dict(blooms)
        if isinstance(blooms, Mapping)
        else dict.fromkeys(_names("bloom", blooms), bloom.RATE)
    )
    paged = file.leaves if page_index is True else []
    if not isinstance(page_index, bool):
        paged = [file.schema_tree.find(name) for name in _names("page_index", page_index)]
    filtered = {file.schema_tree.find(name).index: rate for name, rate in rates.items()}
    listed = {file.schema_tree.find(name).index for name in _names("distinct", lists)}
    public = None if published_of is None else file.schema_tree.find(published_of).index
    with _named(file):
        if public is not None:
            published.check_type(file.leaves[public])
        for leaf in file.leaves:
            if leaf.index in filtered:
                bloom.check(leaf, filtered[leaf.index])
            if leaf.index in listed or leaf.index == public:
                distinct.check(leaf)
    every = range(file.num_row_groups)
    indexed = {leaf.index for leaf in paged}
    specs = []
    for leaf in file.leaves:
        of_leaf = file.chunks(leaf) if leaf.index in indexed or leaf.index in filtered else []
        pages = {
            group for group, chunk in zip(every, of_leaf)  # noqa: B905
            if replace or chunk.offset_index_offset == ABSENT or chunk.column_index_offset == ABSENT
        } if leaf.index in indexed else set()  # fmt: skip
        filters = {
            group for group, chunk in zip(every, of_leaf)  # noqa: B905
            if replace or chunk.bloom_filter_offset == ABSENT
        } if leaf.index in filtered else set()  # fmt: skip
        own = leaf.index in listed and (replace or not _has_list(file, leaf, before, report))
        values = set(every) if own or leaf.index == public else set()
        spec = IndexSpec(
            leaf,
            frozenset(pages),
            frozenset(filters),
            frozenset(values),
            filtered.get(leaf.index, 0.0),
            own,
            leaf.index == public,
        )
        if pages or filters or values:
            specs.append(spec)
    return specs


@contextmanager
def _named(file: FileMetadata) -> Iterator[None]:
    """What columns cannot have is said with the name of their file."""
    try:
        yield
    except UnsupportedError as error:
        raise UnsupportedError(f"{file.name}: {error}") from None


def _names(what: str, given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{what}={given!r}: a list of names")
    return list(given)


class _Writing:
    """The bytes behind the old ones, as chunk after chunk is done."""

    def __init__(
        self,
        file: FileMetadata,
        target: Target,
        before: Directory | None,
        order_given: bool,
        replace: bool,
    ) -> None:
        self._file, self._target, self._before = file, target, before
        self._replace = replace
        n = file.num_row_groups * file.num_leaves
        self._places = array("q", [ABSENT]) * (n * core.PLACES)
        self._order_given = order_given
        self._page_indexes: list[tuple[int, int, PageIndex]] = []
        self._values: dict[int, FileValues] = {}  # by leaf
        self._listed = 0  # bytes of them
        self._crowded: set[int] = set()  # leaves that were given up for want of room
        self._regions: list[Pointer] = []
        self._filters = 0  # bytes of them
        self._published: int | None = None  # where the list in that form begins
        self.result = Attached(target.path, file.store.size, 0)

    def take(self, made: BuiltIndexes) -> None:
        group, leaf = made.row_group, made.leaf
        if made.bloom is not None:
            at = self._target.write(made.bloom)
            self._place(group, leaf.index, BLOOM_PLACE, at, len(made.bloom))
            self._target.write(made.bloom_sums)
            self._filters += self._target.size - at
            self._count(BLOOM, leaf)
        if made.distinct is not None:
            self._join(group, leaf, made.distinct)
        if made.page_index is not None:
            self._keep_offsets(group, leaf, made.page_index)
            self._page_indexes.append((group, leaf.index, made.page_index))
            for why in made.page_index.why_not:
                part = "column index" if made.page_index.offsets is not None else "page index"
                self.result.skipped.append(f"{part} of {leaf.name!r}, row group {group}: {why}")
            if made.page_index.offsets is not None or made.page_index.column is not None:
                self._count(PAGE_INDEX, leaf)

    def _join(self, group: int, leaf: Leaf, found: GroupValues) -> None:
        values = self._of(leaf)
        self._listed -= values.nbytes
        values.take(group, found)
        if self._listed + values.nbytes > LISTED:
            values.give_up()
            self._crowded.add(leaf.index)
        self._listed += values.nbytes

    def _of(self, leaf: Leaf) -> FileValues:
        if leaf.index not in self._values:
            self._values[leaf.index] = FileValues(leaf, self._file.num_row_groups)
        return self._values[leaf.index]

    def _too_many(self, what: str, leaf: Leaf, why: str) -> None:
        if leaf.index in self._crowded:
            why = (
                f"the values of all columns take more than {format_size(LISTED)} together; "
                "list those of fewer columns at a time"
            )
        self.result.skipped.append(f"{what} of {leaf.name!r}: {why}")

    def _keep_offsets(self, group: int, leaf: Leaf, made: PageIndex) -> None:
        """An offset index that the writer left stays, if it is that of the pages."""
        if self._replace or self._file.chunk(group, leaf).offset_index_offset == ABSENT:
            return
        known, new = self._file.offset_index(group, leaf), made.offsets
        made.offsets = None
        if new is None or made.column is None:
            made.column = None
        elif (
            known is None
            or core.offset_index(known.offset, known.compressed_size, known.first_row[:-1].copy())
            != new
        ):
            made.column = None
            made.why_not.append(
                "the offset index that it has does not fit its pages; say replace=True"
            )

    def _count(self, kind: str, leaf: Leaf) -> None:
        key = kind, leaf.name
        self.result.added[key] = self.result.added.get(key, 0) + 1

    def _place(self, group: int, leaf: int, which: int, offset: int, length: int) -> None:
        at = (group * self._file.num_leaves + leaf) * core.PLACES + which
        self._places[at], self._places[at + 1] = offset, length

    def finish(self, specs: Sequence[IndexSpec]) -> None:
        """What is known only when all chunks are: the page index; lists of values, which come with the footer where few
        bytes are read to pass a file over; the footer.
        """
        if self._filters:  # they lie one behind the other
            start = self._target.size - self._filters
            self._regions.append(Pointer(BLOOM, 1, start, self._filters, sums=PIECE))
        self._write_page_indexes()
        for spec in specs:
            if spec.lists:
                self._write_values(spec.leaf)
            if spec.published:
                self._write_published(spec.leaf)
            self._values.pop(spec.leaf.index, None)
        file, before = self._file, self._before
        kept = () if before is None else before.pointers
        new = {(one.kind, one.leaf) for one in self._regions if one.kind == DISTINCT}

        def goes(one: Pointer) -> bool:
            """Whether another one stands for it now."""
            if one.kind == PUBLISHED:
                return self._published is not None
            return (one.kind, one.leaf) in new

        found = Directory(
            file.footer_start if before is None else before.base,
            tuple(
                merged(
                    [
                        *(one.freed() if goes(one) else one for one in kept),
                        *self._regions,
                    ]
                )
            ),
            self._order_given or (before is not None and before.orders),
            fingerprint_of_all(file),
        )
        told = found.to_value()
        if len(told) > LONGEST:
            raise UnsupportedError(
                f"{file.name}: to say where {len(found.pointers):,} indexes lie takes {len(told):,} bytes of the footer, more than "
                f"the {LONGEST:,} that are read; list the values of fewer columns"
            )
        dropped, added = [KEY], [(KEY, told)] if found.pointers else []
        if self._published is not None:
            dropped.append(published.KEY)
            added.append((published.KEY, b"%d" % self._published))
        self._write_footer(dropped, added, file.num_leaves if self._order_given else 0)

    def _write_published(self, leaf: Leaf) -> None:
        values = self._of(leaf).values()
        if values is None:
            why = f"more than {distinct.MOST:,} values, or {format_size(distinct.LARGEST)}"
            self._too_many("published list", leaf, why)
            return
        with _named(self._file):
            body = published.written(values, leaf)
        self._published = self._target.write(body)
        chunks = fingerprint(self._file, leaf)
        self._regions.append(
            Pointer(PUBLISHED, 1, self._published, len(body), leaf.path, *types_of(leaf), xxh64(body), chunks)
        )  # fmt: skip
        self.result.added[PUBLISHED, leaf.name] = self._file.num_row_groups

    def _write_values(self, leaf: Leaf) -> None:
        file, values = self._file, self._of(leaf)
        made = values.index()
        if made is None:
            why = f"more than {distinct.MOST:,}, or {format_size(distinct.LARGEST)}"
            self._too_many("distinct values", leaf, why)
            return
        try:
            made.array(file.schema_tree.parquet_leaf_type(leaf))
        except (InvalidIndexError, CoreError):
            self.result.skipped.append(
                f"distinct values of {leaf.name!r}: some are none of its type"
            )
            return
        chunks = fingerprint(file, leaf)
        body = framed(made.to_bytes(), chunks)
        at = self._target.write(body)
        self._regions.append(
            Pointer(DISTINCT, DISTINCT_VERSION, at, len(body), leaf.path, *types_of(leaf), xxh64(body), chunks)
        )  # fmt: skip
        self.result.added[DISTINCT, leaf.name] = values.complete

    def _write_page_indexes(self) -> None:
        """All ColumnIndexes, then all OffsetIndexes, as writers lay them; each with its checksum."""
        start = self._target.size
        for group, leaf, made in self._page_indexes:
            if made.column is not None:
                self._write_page_index(group, leaf, COLUMN_PLACE, made.column)
            elif made.offsets is not None:  # an old one may not fit the new offset index
                self._place(group, leaf, COLUMN_PLACE, GONE, GONE)
        for group, leaf, made in self._page_indexes:
            if made.offsets is not None:
                self._write_page_index(group, leaf, OFFSET_PLACE, made.offsets)
        if self._target.size > start:
            self._regions.append(
                Pointer(PAGE_INDEX, 1, start, self._target.size - start, sums=True)
            )

    def _write_page_index(self, group: int, leaf: int, which: int, made: bytes) -> None:
        chunk = self._file.chunk(group, self._file.leaves[leaf])
        made = with_sum(made, chunk_range(chunk)[0])
        self._place(group, leaf, which, self._target.write(made), len(made))

    def _write_footer(
        self, dropped: list[bytes], added: list[tuple[bytes, bytes]], orders: int
    ) -> None:
        file = self._file
        footer = new_footer(file, self._places, dropped, added, orders)
        self._target.write(footer)
        self._target.write(len(footer).to_bytes(4, "little") + b"PAR1")
        self.result.bytes_after = self._target.size


def new_footer(
    file: FileMetadata,
    places: Any,
    dropped: list[bytes],
    added: list[tuple[bytes, bytes]],
    orders: int = 0,
) -> bytes:
    """The footer of a file with other places of indexes and other key-value pairs (`core.footer_edited`)."""
    try:
        return bytes(core.footer_edited(file.footer, places, dropped, added, orders))
    except CoreError as error:
        raise from_core(error, f"{file.name}: footer", file.footer_start) from error
