"""The indexes that a caller wants for many files: their columns, as the session compares names, and as files spell them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from typing import Any

from pageseek.base.arguments import check_column, check_flag
from pageseek.base.errors import NoColumnError, PageseekError, PredicateError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.index.bloom_builder import RATE, check_rate
from pageseek.index.index_specs import embedded_columns, split_keys
from pageseek.storage import Source

AT_ONCE = 16  # files that are opened side by side


class AskedIndexes(NamedTuple):
    """What to build. `page_index`: of all columns, of none, or of these. `bloom`, `file_bloom`: rates by column. `keys`: columns that
    are one key together. `embedded`: columns by kind. `footer`: whether footers get an index.
    """

    page_index: bool | tuple[str, ...]
    bloom: Mapping[str, float]
    file_bloom: Mapping[str, float]
    keys: tuple[tuple[str, ...], ...]
    embedded: Mapping[str, tuple[str, ...]]
    footer: bool

    @classmethod
    def of(
        cls,
        page_index: bool | str | Sequence[str],
        bloom: str | Sequence[str] | Mapping[str, float],
        file_bloom: str | Sequence[str] | Mapping[str, float],
        named: Mapping[str, str | Sequence[Any]],
        distinct_index: str | None,
        indexes: Mapping[str, str | Sequence[str]] | None,
        footer: bool,
    ) -> AskedIndexes:
        """Of the parameters of `attach_index`. `named`: those that are kinds.

        Raises
        ------
        TypeError, ValueError
            They are none.
        """
        check_column("distinct_index", distinct_index)
        check_flag("footer", footer)
        kinds = {kind: _listed(f"indexes[{kind!r}]", of) for kind, of in (indexes or {}).items()}
        lists = {kind: [of] if isinstance(of, str) else list(of) for kind, of in named.items()}
        lists["lookup"], keys = split_keys(lists["lookup"])
        embedded = embedded_columns(lists, distinct_index, kinds)
        return cls(
            page_index
            if isinstance(page_index, bool)
            else tuple(_listed("page_index", page_index)),
            _rates("bloom", bloom),
            _rates("file_bloom", file_bloom),
            tuple(keys),
            {kind: tuple(names) for kind, names in embedded.items()},
            footer,
        )

    def spelled_as(self, files: Sequence[Source], fold: bool) -> AskedIndexes:
        """The same with names as the first file that has each spells it. `fold`: case does not matter.

        Raises
        ------
        PredicateError
            None of the files has a column of a name, or a file has several.
        """
        missing = dict.fromkeys(self._names())
        spelled: dict[str, str] = {}
        first: FileMetadata | None = None
        for file in _opened(files) if missing else ():
            first = first or file
            spelled |= _spelled(file, [name for name in missing if name not in spelled], fold)
            if len(spelled) == len(missing):
                break
        else:
            if first is not None:
                name = next(name for name in missing if name not in spelled)
                where = first.name if len(files) == 1 else f"{first.name} and {len(files) - 1} more"
                raise NoColumnError(f"{where}: no column {name!r}", first.schema_tree.offer(name))
        return self._renamed(spelled)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be built."""
        return not (
            self.page_index
            or self.bloom
            or self.file_bloom
            or self.keys
            or any(self.embedded.values())
            or self.footer
        )

    def arguments(self) -> dict[str, Any]:
        """The parameters of `pageseek.index.attach` that say so."""
        pages = self.page_index
        return {
            "page_index": pages if isinstance(pages, bool) else list(pages), "bloom": self.bloom, "file_bloom": self.file_bloom,
            "lookup": self.keys, "indexes": self.embedded, "footer": self.footer,
        }  # fmt: skip

    def of_file(self, file: Source, fold: bool) -> AskedIndexes:
        """The same for one file: with the names as it spells them, without the columns that it lacks."""
        with closing(FileMetadata(file, file.open(), Report())) as opened:
            own = _spelled(opened, dict.fromkeys(self._names()), fold)

        def kept(names: Iterable[str]) -> tuple[str, ...]:
            return tuple([name for name in names if name in own])

        there = AskedIndexes(
            self.page_index if isinstance(self.page_index, bool) else kept(self.page_index),
            {name: self.bloom[name] for name in kept(self.bloom)},
            {name: self.file_bloom[name] for name in kept(self.file_bloom)},
            tuple([key for key in self.keys if len(kept(key)) == len(key)]),
            {kind: kept(names) for kind, names in self.embedded.items() if kept(names)},
            self.footer,
        )
        return there._renamed(own)

    def _names(self) -> Iterator[str]:
        if not isinstance(self.page_index, bool):
            yield from self.page_index
        yield from self.bloom
        yield from self.file_bloom
        for key in self.keys:
            yield from key
        for names in self.embedded.values():
            yield from names

    def _renamed(self, spelled: Mapping[str, str]) -> AskedIndexes:
        def own(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(spelled.get(name, name) for name in names))

        return AskedIndexes(
            self.page_index if isinstance(self.page_index, bool) else own(self.page_index),
            {spelled.get(name, name): rate for name, rate in self.bloom.items()},
            {spelled.get(name, name): rate for name, rate in self.file_bloom.items()},
            tuple([tuple([spelled.get(name, name) for name in key]) for key in self.keys]),
            {kind: own(names) for kind, names in self.embedded.items()},
            self.footer,
        )


def _rates(what: str, given: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Rates of false positives by column."""
    rates = given if isinstance(given, Mapping) else dict.fromkeys(_listed(what, given), RATE)
    for name in _listed(what, list(rates)):
        check_rate(name, rates[name])
    return dict(rates)


def _listed(what: str, names: str | Sequence[str]) -> list[str]:
    made = [names] if isinstance(names, str) else list(names)
    for name in made:
        if not isinstance(name, str):
            raise TypeError(f"{what}: {name!r} is no name of a column")
    return made


def _opened(files: Sequence[Source]) -> Iterator[FileMetadata]:
    """The files that can be opened, in their order; the others are for whoever reads them."""
    ends = [
        0,
        1,
        *range(1 + AT_ONCE, len(files), AT_ONCE),
        len(files),
    ]  # most often the first has all
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for start, stop in pairwise(ends):
            yield from (one for one in pool.map(_open, files[start:stop]) if one is not None)


def _open(file: Source) -> FileMetadata | None:
    try:
        with closing(FileMetadata(file, file.open(), Report())) as opened:
            return opened
    except (OSError, PageseekError):
        return None


def _spelled(file: FileMetadata, names: Iterable[str], fold: bool) -> dict[str, str]:
    """Those of the names that a file has, as it spells them: of columns, and dotted ones of leaves."""
    tree = file.schema_tree
    own = {tree.field(i).name for i in range(tree.num_fields)} | {leaf.name for leaf in file.leaves}
    made = {}
    for name in names:
        fits = [name] if name in own else []
        if fold and not fits:
            fits = sorted(one for one in own if one.lower() == name.lower())
        if len(fits) == 1:
            made[name] = fits[0]
        elif fits:
            raise PredicateError(
                f"{file.name}: {name!r} is ambiguous: {', '.join(map(repr, fits))}; write the name as the file does"
            )
    return made
