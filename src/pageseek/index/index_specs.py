"""What is built for each leaf: what the caller wants, without what the file has already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pageseek.base.errors import UnsupportedError
from pageseek.base.report import Report
from pageseek.format.embedded import (
    BLOOM,
    PAGE_INDEX,
    Directory,
    InvalidIndexError,
    fingerprint,
    of_leaf,
    opened,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.index import bloom_builder as bloom
from pageseek.index.build import IndexSpec
from pageseek.index.page_values import indexed_column
from pageseek.prune.kind import Builder, IndexedColumn
from pageseek.prune.registry import kind_named, kind_names

Names = Sequence[str]


def embedded_columns(
    named: Mapping[str, Iterable[str]],
    distinct_index: str | None,
    indexes: Mapping[str, Names] | None,
) -> dict[str, list[str]]:
    """By kind the columns that get an embedded index, in the order in which kinds were registered. `named`: by parameter of
    `attach` that is the name of a kind; the others as of `attach`.
    """
    asked = {name: _names(name, columns) for name, columns in named.items()}
    if distinct_index is not None:
        asked["distinct_index"] = [distinct_index]
    for name, columns in dict(indexes or {}).items():
        kind = kind_named(name)
        if not callable(getattr(kind, "build", None)):
            if name in (PAGE_INDEX, BLOOM):
                raise ValueError(f"indexes: {name!r} has a parameter of its own: {name}=")
            able = [n for n in kind_names() if callable(getattr(kind_named(n), "build", None))]
            why = "is not registered" if kind is None else "has no build()"
            raise ValueError(f"indexes: kind {name!r} {why}; there are: {', '.join(able)}")
        asked[name] = [*asked.get(name, ()), *_names(f"indexes[{name!r}]", columns)]
        if getattr(kind, "footer_key", None) is not None and len(asked[name]) > 1:
            raise ValueError(f"indexes: a file has one index of kind {name!r}, of one column")
    return {name: asked[name] for name in kind_names() if asked.get(name)}


def index_specs(
    file: FileMetadata,
    page_index: bool | Names,
    blooms: Names | Mapping[str, float],
    embedded: Mapping[str, Names],
    rates_of: Mapping[str, Mapping[str, float]],
    replace: bool,
    before: Directory | None,
    report: Report,
) -> list[IndexSpec]:
    """What is built, in the order of the leaves; a leaf that gets nothing is left out.

    Parameters
    ----------
    page_index, blooms, replace
        As of `attach`.
    embedded
        As `embedded_columns` gives it.
    rates_of
        Rates of false positives by kind and column, where they are given.
    before
        What the file lists.

    Raises
    ------
    UnsupportedError
        A column cannot have such an index.
    """
    find = file.schema_tree.find
    if not isinstance(blooms, Mapping):
        blooms = dict.fromkeys(_names("bloom", blooms), bloom.RATE)
    paged = {leaf.index for leaf in file.leaves} if page_index is True else set()
    if not isinstance(page_index, bool):
        paged = {find(name).index for name in _names("page_index", page_index)}
    rates = {find(name).index: rate for name, rate in blooms.items()}
    kinds = {name: {find(one).index for one in columns} for name, columns in embedded.items()}
    settings: dict[str, dict[int, float]] = {}
    for name, wanted in rates_of.items():
        for one, rate in wanted.items():
            bloom.check_rate(one, rate)
        settings[name] = {find(one).index: rate for one, rate in wanted.items()}
    specs = []
    try:
        for leaf in file.leaves:
            i = leaf.index
            if i in rates:
                bloom.check(leaf, rates[i])
            mine = [name for name, leaves in kinds.items() if i in leaves]
            given = {name: wanted[i] for name, wanted in settings.items() if i in wanted}
            column, builders = _builders(file, leaf, mine, given, replace, before, report)
            pages, filters = set(), set()  # row groups
            for group, chunk in enumerate(file.chunks(leaf) if i in paged or i in rates else ()):
                places = chunk.offset_index_offset, chunk.column_index_offset
                if i in paged and (replace or ABSENT in places):
                    pages.add(group)
                if i in rates and (replace or chunk.bloom_filter_offset == ABSENT):
                    filters.add(group)
            if pages or filters or builders:
                rate = rates.get(i, 0.0)
                spec = IndexSpec(leaf, column, frozenset(pages), frozenset(filters), rate, builders)
                specs.append(spec)
    except UnsupportedError as error:
        raise UnsupportedError(f"{file.name}: {error}") from None
    return specs


def _builders(
    file: FileMetadata,
    leaf: Leaf,
    names: Iterable[str],
    settings: Mapping[str, float],
    replace: bool,
    before: Directory | None,
    report: Report,
) -> tuple[IndexedColumn | None, dict[str, Builder]]:
    """The builders of embedded kinds for a leaf by name, and their column; without the kinds whose index it has."""
    column, builders = None, {}
    for name in names:
        kind, column = kind_named(name), indexed_column(file, leaf, name)
        if hasattr(kind, "check_column"):
            kind.check_column(column)
        if replace or not _has_index(file, leaf, name, before, report):
            given = (settings[name],) if name in settings else ()
            builders[name] = kind.build(column, *given)
    return column, builders


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


def _names(what: str, given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{what}={given!r}: a list of names")
    return list(given)
