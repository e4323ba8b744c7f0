"""What is built for each leaf: what the caller wants, without what the file has already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pageseek.base.arguments import check_column, check_flag, shown
from pageseek.base.errors import UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.embedded import (
    BLOOM,
    KEY_LOOKUP,
    PAGE_INDEX,
    PAYLOAD_HEAD_BYTES,
    Directory,
    InvalidIndexError,
    Pointer,
    fingerprint,
    fingerprint_of_key,
    of_leaf,
    opened,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.index import bloom_builder as bloom
from pageseek.index.build import IndexSpec
from pageseek.index.kinds.key_lookup import key_leaves
from pageseek.index.page_values import indexed_column
from pageseek.prune.kind import Builder, IndexedColumn
from pageseek.prune.registry import kind_named, kind_names

Names = Sequence[str]
_PARAMETERS = {PAGE_INDEX: "page_index=", BLOOM: "bloom=", KEY_LOOKUP: "lookup=[('a', 'b')]"}
MAX_PAYLOAD_BYTES = (1 << 30) + PAYLOAD_HEAD_BYTES  # of an index with its head


class IndexRequest(NamedTuple):
    """What a caller of `attach` wants. `embedded`: columns by kind. `rates`: rates of false positives by kind and column, where they
    are given. `keys`: the names of the columns of each key. `footer`: whether the footer gets an index.
    """

    page_index: bool | Names
    bloom: Names | Mapping[str, float]
    embedded: Mapping[str, Names]
    rates: Mapping[str, Mapping[str, float]]
    keys: Sequence[tuple[str, ...]]
    footer: bool

    def renamed(self, stored: Callable[[str], str]) -> IndexRequest:
        """The same of columns that the file calls otherwise."""

        def names(some: Any) -> Any:
            if isinstance(some, bool):
                return some
            if isinstance(some, Mapping):
                return {stored(name): value for name, value in some.items()}
            return [stored(name) for name in some]

        return IndexRequest(
            names(self.page_index),
            names(self.bloom),
            {kind: names(columns) for kind, columns in self.embedded.items()},
            {kind: names(rates) for kind, rates in self.rates.items()},
            [tuple([stored(name) for name in key]) for key in self.keys],
            self.footer,
        )


def index_request(
    *,
    page_index: bool | Names = True,
    bloom: Names | Mapping[str, float] = (),
    distinct: Names = (),
    lookup: Sequence[str | tuple[str, ...]] = (),
    bitmap: Names = (),
    trigram: Names = (),
    file_bloom: Names | Mapping[str, float] = (),
    footer: bool = False,
    distinct_index: str | None = None,
    indexes: Mapping[str, Names] | None = None,
) -> IndexRequest:
    """What is built, by parameters of `attach`."""
    check_column("distinct_index", distinct_index)
    check_flag("footer", footer)
    if not isinstance(page_index, bool):
        page_index = _names("page_index", page_index)
        _check_single("page_index=", page_index)
    columns, keys = split_keys(lookup)
    named: dict[str, Iterable[str]] = {
        "distinct": distinct,
        "lookup": columns,
        "bitmap": bitmap,
        "trigram": trigram,
        "file_bloom": file_bloom,
    }
    if not isinstance(bloom, Mapping):
        bloom = _names("bloom", bloom)
    _check_single("bloom=", bloom)
    rates = {"file_bloom": file_bloom} if isinstance(file_bloom, Mapping) else {}
    embedded = embedded_columns(named, distinct_index, indexes)
    return IndexRequest(page_index, bloom, embedded, rates, keys, footer)


def embedded_columns(
    named: Mapping[str, Iterable[Any]],
    distinct_index: str | None,
    indexes: Mapping[str, Names] | None,
) -> dict[str, list[str]]:
    """By kind the columns that get an embedded index, in the order in which kinds were registered. `named`: by parameter of
    `attach` that is the name of a kind; the others as of `attach`.
    """
    asked = {name: _names(name, columns) for name, columns in named.items()}
    for name, given in asked.items():
        _check_single(f"{name}=", given)
    if distinct_index is not None:
        asked["distinct_index"] = [distinct_index]
    if indexes is not None and not isinstance(indexes, Mapping):
        raise TypeError(
            f"indexes={shown(indexes)}: a dict of kinds of indexes and their columns, such as {{'bitmap': ['state']}}"
        )
    for name, columns in dict(indexes or {}).items():
        kind = kind_named(name)
        if not callable(getattr(kind, "build", None)):
            if name in _PARAMETERS:
                raise ValueError(
                    f"indexes: {name!r} has a parameter of its own: {_PARAMETERS[name]}"
                )
            able = [n for n in kind_names() if callable(getattr(kind_named(n), "build", None))]
            why = "is not registered" if kind is None else "has no build()"
            raise ValueError(f"indexes: kind {name!r} {why}; there are: {', '.join(able)}")
        own = _names(f"indexes[{name!r}]", columns)
        _check_single(f"indexes[{name!r}]: ", own)
        asked[name] = [*asked.get(name, ()), *own]
        if getattr(kind, "footer_key", None) is not None and len(asked[name]) > 1:
            raise ValueError(f"indexes: a file has one index of kind {name!r}, of one column")
    return {name: asked[name] for name in kind_names() if asked.get(name)}


def _check_single(what: str, given: Iterable[Any]) -> None:
    """TypeError where one of the columns is no name. `what`: begins the message."""
    wrong = [one for one in given if not isinstance(one, str)]
    if wrong:
        raise TypeError(
            f"{what}{[wrong[0]]!r}: names of columns; several columns as one key go with lookup=[...]"
        )


def split_keys(lookup: Iterable[Any]) -> tuple[list[str], list[tuple[str, ...]]]:
    """The single columns of `attach(lookup=...)`, and those that are one key together."""
    columns, keys = [], []
    for one in _names("lookup", lookup):
        if isinstance(one, str):
            columns.append(one)
        elif not isinstance(one, tuple) or not all(isinstance(name, str) for name in one):
            raise TypeError(f"lookup=[{one!r}]: the name of a column, or a tuple of names")
        elif len(set(one)) < max(len(one), 2):
            raise ValueError(f"lookup=[{one!r}]: a key has two different columns or more")
        else:
            keys.append(one)
    return columns, list(dict.fromkeys(keys))


def index_specs(
    file: FileMetadata,
    asked: IndexRequest,
    replace: bool,
    before: Directory | None,
    report: Report,
) -> list[IndexSpec]:
    """What is built, in the order of the leaves; a leaf that gets nothing is left out.

    Parameters
    ----------
    replace
        As of `attach`.
    before
        What the file lists.

    Raises
    ------
    UnsupportedError
        A column cannot have such an index.
    """
    page_index, blooms, embedded, rates_of, keys, _ = asked
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
        members = _members(file, keys, replace, before, report)
        for leaf in file.leaves:
            i = leaf.index
            if i in rates:
                bloom.check(leaf, rates[i])
            mine = [name for name, leaves in kinds.items() if i in leaves]
            given = {name: wanted[i] for name, wanted in settings.items() if i in wanted}
            column, builders = _builders(file, leaf, mine, given, replace, before, report)
            if i in members:
                column = indexed_column(file, leaf, "lookup")
                builders |= members[i]
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


def _members(
    file: FileMetadata,
    keys: Sequence[tuple[str, ...]],
    replace: bool,
    before: Directory | None,
    report: Report,
) -> dict[int, dict[str, Builder]]:
    """By leaf the builders of the keys that it belongs to, by what errors call them; without the keys whose index the file has."""
    made: dict[int, dict[str, Builder]] = {}
    kind = kind_named(KEY_LOOKUP)
    for key in keys:
        leaves = [file.schema_tree.find(name) for name in key]
        if len({leaf.index for leaf in leaves}) < len(leaves):  # 's' of one field 'a', and 's.a'
            raise ValueError(f"lookup=[{key!r}]: a key has two different columns or more")
        columns = [indexed_column(file, leaf, "lookup") for leaf in leaves]
        for column in columns:
            kind.check_column(column)
        if not replace and _has_key(file, leaves, before, report):
            continue
        for leaf, member in zip(leaves, kind.build_key(columns).members, strict=True):
            made.setdefault(leaf.index, {})[f"{KEY_LOOKUP}({', '.join(key)})"] = member
    return made


def _has_key(
    file: FileMetadata, leaves: Sequence[Leaf], before: Directory | None, report: Report
) -> bool:
    """Whether a file has an index of a key that readers use."""
    names = tuple([leaf.name for leaf in leaves])
    found = (
        [one for one in before.pointers if (one.kind, one.leaf) == (KEY_LOOKUP, names)]
        if before
        else []
    )
    if not found or key_leaves(file, found[-1]) is None:
        return False
    try:
        opened_payload(file, found[-1], fingerprint_of_key(file, leaves))
    except InvalidIndexError as error:
        report.note(
            f"{file.name}: columns {found[-1].column}: their lookup index is given up: {error}"
        )
        return False
    return True


def opened_payload(file: FileMetadata, pointer: Pointer, chunks: int) -> memoryview:
    """The body of an index, read whole. InvalidIndexError: it is none of these chunks, or larger than any that `attach` writes."""
    if pointer.length > MAX_PAYLOAD_BYTES:
        raise InvalidIndexError(
            f"its {pointer.length:,} bytes are more than the {MAX_PAYLOAD_BYTES:,} that an index may have"
        )
    (data,) = file.store.read([(pointer.offset, pointer.length)])
    return opened(pointer, memoryview(data), chunks)


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
    """Whether a column has an index of a kind that readers use; one that they would not is rebuilt."""
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
        opened_payload(file, pointer, fingerprint(file, leaf))
    except InvalidIndexError as error:
        report.note(f"{file.name}: column {leaf.name!r}: its {title} is given up: {error}")
        return False
    return True


def _names(what: str, given: Iterable[Any]) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{what}={shown(given)}: a list of names")
    return list(given)
