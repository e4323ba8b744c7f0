"""Indexes put into a Parquet file, and taken out: its pages stay where they are, and a new footer says where the rest is.

What the file had up to its old footer is kept, byte for byte and at the same places; indexes follow it, then the new
footer, in which whatever else the old one had is as it was. The form is that of docs/format.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.base.progress import Watch
from pageseek.base.report import Report
from pageseek.format.chunks import Chunk as Record
from pageseek.format.embedded import (
    BLOOM,
    PAGE_INDEX,
    Directory,
    InvalidIndexError,
    directory,
    fingerprint,
    fingerprint_of_all,
    of_leaf,
    opened,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.index import bloom_builder as bloom
from pageseek.index.appended import AppendedIndexes, Attached
from pageseek.index.build import BuiltIndexes, IndexSpec, build
from pageseek.index.chunk_walk import each_chunk
from pageseek.index.page_reader import Chunk
from pageseek.index.page_values import check_column
from pageseek.index.targets import ends
from pageseek.prune.kind import Builder, IndexedColumn
from pageseek.prune.registry import kind_named, kind_names
from pageseek.storage import Store


def attach(
    source: Any,
    *,
    page_index: bool | Sequence[str] = True,
    bloom: Sequence[str] | Mapping[str, float] = (),
    distinct: Sequence[str] = (),
    distinct_index: str | None = None,
    indexes: Mapping[str, Sequence[str]] | None = None,
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
        A column of strings whose different values are also written in the form of DataFusion's example: `IDX1`, a length,
        values with newlines between them, and its place under the key `distinct_index_offset`.
    indexes : dict
        Of registered kinds (`pageseek.index.register`) by name the columns that get such an index, where they have none.
        `indexes={"distinct": ["a"]}` says what `distinct=["a"]` does.
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
        wanted = _wanted(distinct, distinct_index, indexes)
        specs = _specs(file, page_index, bloom, wanted, replace, before, report)
        paged = any(spec.page_index for spec in specs)  # only bounds of pages need an order
        order_given = paged and not file.has_orders and not _has_bounds(file)
        if end.in_place and not specs:  # it has everything
            return Attached(one.name, file.store.size, file.store.size, skipped=report.notes)
        with closing(end.target(file.store)) as target:
            made = AppendedIndexes(file, target, before, order_given, replace)
            made.expect(specs)
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


def _wanted(
    distinct: Sequence[str], distinct_index: str | None, indexes: Mapping[str, Sequence[str]] | None
) -> dict[str, list[str]]:
    """By kind the columns that get an embedded index, in the order in which kinds were registered."""
    asked = {"distinct": _names("distinct", distinct), "distinct_index": [distinct_index or ""]}
    if distinct_index is None:
        del asked["distinct_index"]
    for name, columns in ({} if indexes is None else dict(indexes)).items():
        kind = kind_named(name)
        if kind is None or not callable(getattr(kind, "build", None)):
            if name in (PAGE_INDEX, BLOOM):
                raise ValueError(f"indexes: {name!r} has a parameter of its own: {name}=")
            able = ", ".join(
                one for one in kind_names() if callable(getattr(kind_named(one), "build", None))
            )
            why = "is not registered" if kind is None else "has no build()"
            raise ValueError(f"indexes: kind {name!r} {why}; there are: {able}")
        asked[name] = [*asked.get(name, ()), *_names(f"indexes[{name!r}]", columns)]
        if getattr(kind, "footer_key", None) is not None and len(asked[name]) > 1:
            raise ValueError(f"indexes: a file has one index of kind {name!r}, of one column")
    return {name: asked[name] for name in kind_names() if asked.get(name)}


def _has_index(
    file: FileMetadata, leaf: Leaf, name: str, before: Directory | None, report: Report
) -> bool:
    """Whether a column has an index of a kind that readers use; one that they would not is built anew."""
    kind = kind_named(name)
    title = getattr(kind, "title", f"index of kind {name!r}")
    if getattr(kind, "footer_key", None) is not None:
        try:
            there: bool = kind.place(file) is not None
        except InvalidIndexError:
            return False
        if there:
            report.note(f"{file.name}: it has {title}, whoever wrote it; say replace=True")
        return there
    try:
        pointer = of_leaf(leaf, name, getattr(kind, "version", 1), before)
        if pointer is None:
            return False
        (data,) = file.store.read([(pointer.offset, pointer.length)])
        opened(pointer, memoryview(data), fingerprint(file, leaf))
    except InvalidIndexError as error:
        report.note(f"{file.name}: column {leaf.name!r}: its {title} is given up: {error}")
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
    embedded: Mapping[str, Sequence[str]],
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
    builders: dict[int, dict[str, Builder]] = {}
    columns: dict[int, IndexedColumn] = {}
    asked = {
        name: {file.schema_tree.find(one).index for one in those}
        for name, those in embedded.items()
    }
    with _named(file):
        for leaf in file.leaves:
            if leaf.index in filtered:
                bloom.check(leaf, filtered[leaf.index])
            for name in (name for name, those in asked.items() if leaf.index in those):
                check_column(leaf, f"{name}=[...]")
                leaf_type = file.schema_tree.parquet_leaf_type(leaf)
                column = IndexedColumn(leaf, leaf_type, file.group_rows)
                kind = kind_named(name)
                if hasattr(kind, "check_column"):
                    kind.check_column(column)
                if replace or not _has_index(file, leaf, name, before, report):
                    columns[leaf.index] = column
                    builders.setdefault(leaf.index, {})[name] = kind.build(column)
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
        spec = IndexSpec(
            leaf,
            columns.get(leaf.index),
            frozenset(pages),
            frozenset(filters),
            filtered.get(leaf.index, 0.0),
            builders.get(leaf.index, {}),
        )
        if pages or filters or spec.builders:
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
