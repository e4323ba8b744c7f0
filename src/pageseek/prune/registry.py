"""The mechanisms that may prune and the kinds of index, by name: those of this package, and those of users.

A kind that is embedded in files is found by its key in the footer. Kinds of this package are in
`pageseek.index.kinds`, and are imported when a file has that key, or when an index is built or verified.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from pageseek.base.errors import PredicateError
from pageseek.base.report import MECHANISMS
from pageseek.base.suggest import nearest
from pageseek.base.tracebacks import short_traceback
from pageseek.format.embedded import BLOOM, FREE, PAGE_INDEX
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.prune.bloom_filter import BloomPruner
from pageseek.prune.built_in_kinds import BUILT_IN
from pageseek.prune.checked_pruner import PRICE, PRUNE, LatePruner, method_of, pruner_of
from pageseek.prune.dictionary import DictionaryPruner
from pageseek.prune.protocol import Catalog, Pruner

STATISTICS, COLUMN_INDEX, PAGE_HEADERS = "statistics", "column_index", "page_headers"
DICTIONARY = DictionaryPruner.name
LOOKUP = "lookup"
LOOKUPS = frozenset({LOOKUP, "key_lookup"})
# kinds of rows: where they leave a file, it is opened
OF_OPENED = LOOKUPS | {"bitmap", "trigram"}
LOG = "log"  # of a table: it rules out files before they are opened
# scans of many files use them by name
DISTINCT, DATAFUSION_INDEX, FILE_BLOOM = "distinct", "distinct_index", "file_bloom"
BLOOM_FILTER = BloomPruner.name
OF_MANY_FILES = frozenset({DISTINCT, DATAFUSION_INDEX, FILE_BLOOM})
_PARQUET: tuple[Pruner, ...] = (BloomPruner(), DictionaryPruner())
_TAKEN = {*MECHANISMS, STATISTICS, COLUMN_INDEX, PAGE_HEADERS, PAGE_INDEX, BLOOM, FREE}


class _Registry:
    """Kinds in the order of their registration. Its tuples are read without a lock: they are replaced, never changed.

    Attributes
    ----------
    pruners : tuple of Pruner
        The pruners that are put to one row group at a time, in the order in which they run at equal prices.
    catalogs : tuple of Catalog
        The catalogs that are asked before files are opened.
    names : tuple of str
        All names that `prune=[...]` knows.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kinds: dict[str, Any] = {}  # registered objects, or imported ones
        self._modules = {kind.name: kind.module for kind in BUILT_IN}
        MECHANISMS.update({kind.name: kind.reason for kind in BUILT_IN})
        self._late: tuple[Pruner, ...] = tuple(
            [LatePruner(kind.name, kind.key, partial(self.find, kind.name)) for kind in BUILT_IN]
        )
        self._renew()

    def _renew(self) -> None:
        users = [pruner_of(kind) for name, kind in self._kinds.items() if self._prunes(name)]
        self.pruners: tuple[Pruner, ...] = (*_PARQUET, *self._late, *users)
        self.catalogs = tuple(
            [kind for kind in self._kinds.values() if callable(getattr(kind, "select", None))]
        )
        named = [one.name for one in (*self.pruners, *self.catalogs)]
        self.names = tuple(dict.fromkeys((LOG, STATISTICS, COLUMN_INDEX, PAGE_HEADERS, *named)))

    def _prunes(self, name: str) -> bool:
        kind = self._kinds[name]
        return name not in self._modules and callable(getattr(kind, method_of(kind, PRUNE), None))

    def add(self, kind: Any, what: str, remove: str) -> None:
        """Add a kind of a user. `what`, `remove`: the functions that errors name."""
        with self._lock:
            if self._kinds.get(kind.name) is kind:
                return
            if kind.name in _TAKEN or kind.name in self.known:
                raise ValueError(
                    f"{what}: {kind.name!r} is taken; give the {_noun(what)} another name, or call "
                    f"{remove}({kind.name!r}) first if that is a {_noun(what)} of yours"
                )
            self._kinds[kind.name] = kind
            reason = getattr(kind, "reason", None)
            if isinstance(reason, str):
                MECHANISMS[kind.name] = reason
            self._renew()

    def remove(self, name: str, what: str) -> None:
        with self._lock:
            users = [one for one in self._kinds if one not in self._modules]
            if name not in users:
                known = ", ".join(users) or "none"
                raise ValueError(
                    f"{what}: no {_noun(what)} {name!r} was registered; there are: {known}"
                )
            del self._kinds[name]
            MECHANISMS.pop(name, None)
            self._renew()

    @property
    def known(self) -> tuple[str, ...]:
        """The names of all kinds: those of this package first."""
        users = (name for name in list(self._kinds) if name not in self._modules)
        return (*self._modules, *users)

    def find(self, name: str) -> Any:
        """The kind of a name, imported if it is one of this package; None where there is none."""
        found = self._kinds.get(name)
        if found is None and name in self._modules:
            found = importlib.import_module(self._modules[name]).KIND
            with self._lock:
                self._kinds[name] = found
        return found


def _noun(what: str) -> str:
    return "pruner" if what.endswith("pruner") else "kind"


@short_traceback
def register(kind: Any) -> None:
    """Add a kind of index: `attach` then builds it, scans prune with it, `list`, `verify` and `detach` know it.

    Its payloads lie in the files, behind the pages, with a checksum and a fingerprint of the column that they were built
    from. Every other reader ignores them, and so does a process that has not registered the kind. Registering one object
    again has no effect. Safe for threads.

    A registration holds for one process, the one that plans a scan. `pageseek.spark.read` plans on the driver, where one
    registration is enough. Code that scans inside Spark's executors, or in worker processes that do not fork, has to import
    the module that registers there.

    Parameters
    ----------
    kind : pageseek.index.Kind
        An object with a `name`, and those of `version`, `build`, `load`, `answers`, `prune` and `verify` that it needs.
        A kind without `build` has `price` and `prune`, as in `pageseek.prune.Pruner`: it finds its index by itself, beside
        the file for example. Or it has `select`, as in `pageseek.prune.Catalog`: a catalog outside of the files, which is
        asked before any file is opened.

    Raises
    ------
    TypeError
        The object does not fit the protocol.
    ValueError
        The name is taken, or is no plain word.
    """
    _check_name(kind, "register")
    version = getattr(kind, "version", 1)
    if type(version) is not int or version < 1:
        raise TypeError(f"register: {kind!r} has version {version!r}, not a number from 1 on")
    methods = ("build", "load", "answers", "price", "prune", "verify", "select")
    for method in methods:
        if not callable(getattr(kind, method, lambda: None)):
            raise TypeError(f"register: {kind!r} has a {method} that cannot be called")
    has = {method for method in methods if callable(getattr(kind, method, None))}
    if not has & {"build", "select"} or (has & {"price", "prune"} and "build" not in has):
        missing = {"price", "prune"} - has
        if missing:
            raise TypeError(
                f"register: {kind!r} has no build(), and so needs price() and prune(); it has no {min(missing)}()"
            )
    REGISTRY.add(kind, "register", "unregister")


@short_traceback
def unregister(name: str) -> None:
    """Remove a registered kind; scans that exist already go without it. ValueError: there is none."""
    REGISTRY.remove(name, "unregister")


def kind_named(name: str) -> Any:
    """The kind that is registered under a name, or None."""
    return REGISTRY.find(name)


def kind_names() -> tuple[str, ...]:
    """The names of all kinds."""
    return REGISTRY.known


@short_traceback
def register_pruner(pruner: Any) -> None:
    """Let a mechanism of your own rule out rows, by what it finds itself: an index that lies beside the files, for example.

    It is a kind (`pageseek.index.register`) without `build`. It runs after cheaper mechanisms, on the rows that these leave,
    if it reads much less than the pages that it may save. `prune=[...]` knows its name, and `explain` counts what it ruled
    out under that name.

    Parameters
    ----------
    pruner : pageseek.prune.Pruner
        `name` (str), `cheap` (bool), `price(context, test)` and `prune(context, tests)`, as in that protocol; `whole`,
        `coarse` and `patterns` are False if they are missing. The former names of the methods, `cost` and `judge`, work as well.
        `pageseek.prune` also has `Proof`, `PruneContext` and `passing` to write a pruner with.

    Raises
    ------
    TypeError
        The object does not fit the protocol.
    ValueError
        The name is taken, or is no plain word.
    """
    _check_name(pruner, "register_pruner")
    if not isinstance(getattr(pruner, "cheap", None), bool):
        raise TypeError(f"register_pruner: {pruner!r} has no attribute 'cheap' of type bool")
    for names in (PRICE, PRUNE):
        name = method_of(pruner, names)
        if not callable(getattr(pruner, name, None)):
            raise TypeError(f"register_pruner: {pruner!r} has no {names[0]}()")
    REGISTRY.add(pruner, "register_pruner", "unregister_pruner")


@short_traceback
def unregister_pruner(name: str) -> None:
    """Take a registered pruner back; scans that exist already go without it. ValueError: there is none."""
    REGISTRY.remove(name, "unregister_pruner")


def _check_name(kind: Any, what: str) -> None:
    if isinstance(kind, type):
        raise TypeError(f"{what}: {kind!r} is a class, not an object")
    if not isinstance(getattr(kind, "name", None), str):
        raise TypeError(f"{what}: {kind!r} has no attribute 'name' of type str")
    if not kind.name.isidentifier():
        raise ValueError(f"{what}: the name {kind.name!r} is no plain word such as 'my_index'")


def catalogs() -> tuple[Catalog, ...]:
    """The catalogs that are asked before files are opened."""
    return REGISTRY.catalogs


def names() -> tuple[str, ...]:
    """All names that `prune=[...]` knows."""
    return REGISTRY.names


# names that the parts of a file have elsewhere: as parameters of `index.attach`, or in the format
_BY_OTHER_NAMES = {
    "page_index": "column_index",
    "offset_index": "column_index",
    "bloom": "bloom_filter",
}


def mechanisms(chosen: bool | Collection[str]) -> frozenset[str]:
    """The names of the mechanisms that may prune: all, none, or those named."""
    known = REGISTRY.names
    if isinstance(chosen, bool):
        return frozenset(known if chosen else ())
    if not isinstance(chosen, Collection):
        raise TypeError(f"prune={chosen!r}: True, False, or a list of names")
    wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        name = str(unknown[0])
        close = [_BY_OTHER_NAMES[name]] if name in _BY_OTHER_NAMES else nearest(name, known)
        meant = f" did you mean {close[0]!r}?" if close else ""
        raise PredicateError(
            f"prune={unknown[0]!r}:{meant} True, False, or some of {', '.join(known)}"
        )
    return frozenset(wanted)


REGISTRY = _Registry()


def applicable(file: FileMetadata, use: frozenset[str], tested: Iterable[Leaf]) -> list[Pruner]:
    """The pruners for which the footer has anything of a tested column. They are kept with the file, by the tested leaves."""
    every, known = REGISTRY.pruners, file.indexes
    leaves = {}
    for leaf in tested:
        leaves[leaf.key] = leaf
    key = "applicable", use, *leaves
    cached: tuple[tuple[Pruner, ...], list[Pruner]] | None = known.get(key)
    if cached is None or cached[0] is not every:  # others were registered since
        found = []
        for pruner in every:
            if pruner.name in use:
                for leaf in leaves.values():
                    if pruner.applies(file, leaf):
                        found.append(pruner)
                        break
        known[key] = cached = every, found
    return cached[1]
