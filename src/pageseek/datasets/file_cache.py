"""Files kept open between scans, with what was parsed of them. Of remote files that had to be closed, their ends."""

from __future__ import annotations

import errno
import importlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pageseek.base.limits import DEFAULT
from pageseek.base.records import NamedTuple, dataclass
from pageseek.base.report import Report
from pageseek.datasets.confirmed import Confirmed, confirmed_now
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.footer import needed
from pageseek.io.tails import TailBatch
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.storage import Begun, Known, RemoteStore, Source, Store, Version
from pageseek.storage.local import LocalStore
from pageseek.storage.store import Buffer

if TYPE_CHECKING:
    from pageseek.datasets.kept_ends import KeptEnds

resource: ModuleType | None
try:
    resource = importlib.import_module("resource")
except ImportError:  # Windows has no such limit
    resource = None

DESCRIPTOR_SHARE = (
    4  # the cache holds at most one in this many of the descriptors that the process may have
)
MAX_BYTES = 256 << 20
END_RECORD_BYTES = 400  # bytes of a kept end, beside its own
MAX_RESULTS = (
    8  # results that are kept with one batch: one for each schema group, and each set of leaves
)
GROWING = 8  # files after which the sizes of the last ones, twice as many, are taken again: their indexes are parsed when needed


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What the cache of footers and indexes holds, and how it has served since it was cleared.

    Attributes
    ----------
    files : int
        Files that are open, or whose ends are kept.
    bytes, max_bytes : int
        About the memory that they take, and may take.
    hits, misses : int
        Files that were opened with what was kept of them, and without.
    evictions : int
        Files that were dropped.
    """

    files: int
    bytes: int
    max_bytes: int
    hits: int
    misses: int
    evictions: int


def _is_at(store: LocalStore, source: Source) -> bool:
    """Whether a file lies where it was opened. One that is missing is told by who opens it."""
    try:
        return store.is_at(source.path)
    except FileNotFoundError:
        return False


def _is_of(held: FileMetadata, source: Source, limit: int) -> bool:
    """Whether a held file was opened from a source with a limit. Two filesystems may each have a file of one key."""
    return held.max_metadata_bytes == limit and held.source == source


class _Kept(NamedTuple):
    """The end of a file that is not open. `source`: the file, where others may have its key."""

    known: Known
    source: Source | None


_LASTING = r"[a-z0-9]+://"  # the beginning of keys that mean the same in every process


class FileCache:
    """Open files by source and version, the least recently used dropped first. Safe for threads.

    It holds at most `capacity` of them, and takes at most a quarter of the descriptors that the process may have. When a
    remote file is closed, its end is kept, with footer and page index, to be parsed again. All take `max_bytes` at most.
    """

    def __init__(self, capacity: int = 256, max_bytes: int = MAX_BYTES) -> None:
        self._files: OrderedDict[str, FileMetadata] = OrderedDict()
        self._ends: OrderedDict[str, _Kept] = OrderedDict()
        self._batches: OrderedDict[tuple[str, ...], TailBatch] = OrderedDict()
        self._sizes: dict[str | tuple[str, ...], int] = {}  # of all these, as last taken
        self._lock = threading.Lock()
        self.capacity = capacity
        self.max_bytes = max_bytes
        self._bytes = self._hits = self._misses = self._evictions = self._added = 0

    def __getstate__(self) -> dict[str, Any]:
        """Its limits, and the ends of files that every process can open."""
        ends = {key: Known(known.version, bytes(known.tail)) for key, known in self.ends().items()}
        return {"capacity": self.capacity, "max_bytes": self.max_bytes, "ends": ends}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["capacity"], state["max_bytes"])  # type: ignore[misc]
        self.adopt(state["ends"])

    def open(
        self,
        source: Source,
        report: Report,
        limit: int = DEFAULT.max_metadata_bytes,
        end: Known | None = None,
        unconfirmed: UnconfirmedVersions | None = None,
        begun: Begun | None = None,
        tail_bytes: int = 0,
    ) -> FileMetadata:
        """The file, with what was already parsed of it if its version is the same.

        A version without a date does not tell that: such a file is read again each time. `limit`: bytes that
        its footer, and an index of it, may have. `end`: the last bytes of a local file, read a moment ago.
        `unconfirmed`: a remote file is taken in the version that the cache has, and added there to be confirmed.
        `begun`: the file, if its opening has begun. `tail_bytes`: of the end of a local file, to read at once with its footer.
        """
        if source.data is not None:
            return FileMetadata(source, source.open(), report, limit)
        self._recall(source)
        if unconfirmed is not None and source.far:
            assumed = self._assumed(source, report, limit)
            if assumed is not None:
                assert isinstance(assumed.store, RemoteStore)
                unconfirmed.add(assumed.store)
                return assumed
        key, confirmed = source.key, confirmed_now() if source.far else None
        if confirmed is not None and begun is None and key in confirmed.versions:
            assumed = self.assumed(source, report, limit, confirmed.versions[key])
            if assumed is not None:
                return assumed
        with self._lock:
            held = self._files.get(key)
        if (
            held is not None
            and isinstance(held.store, LocalStore)
            and _is_of(held, source, limit)
            and _is_at(held.store, source)
        ):
            self._use(key, held)
            return held
        try:
            store = self._open(source, self._known(source, held)) if begun is None else begun()
        except FileNotFoundError as error:
            if begun is None or not source.table:
                raise
            raise source.missing() from error
        if not store.version.dated:
            return FileMetadata(source, store, report, limit)
        if confirmed is not None:
            confirmed.versions[key] = store.version
        with self._lock:
            held = self._files.get(key)
        if held is not None and held.store.version == store.version and _is_of(held, source, limit):
            self._use(key, held)
            if isinstance(store, RemoteStore):
                report.requests += store.requests
                report.waves += store.requests
                report.retried(*store.retries.take())
            store.close()
            return held
        renewed = isinstance(store, RemoteStore) and store.renewed
        tail = end.tail if end is not None and end.version == store.version else None
        if tail is None and tail_bytes and isinstance(store, LocalStore):
            length = min(store.size, tail_bytes)
            tail = memoryview(store.read([(store.size - length, length)])[0])
        file = FileMetadata(source, store, report, limit, tail)
        self._add(key, file, renewed)
        kept = None if renewed else _kept(source)
        if kept is not None and _lasts(file):
            kept.put(key, Known(store.version, file.end))
        return file

    def holds(self, source: Source, file: FileMetadata) -> bool:
        """Whether the next `open` gives this very file unless it changes."""
        return self._files.get(source.key) is file

    def is_current(self, source: Source, file: FileMetadata) -> bool:
        """Whether `open` would give this very file: it is local, held, and unchanged under its name. OSError: there is none."""
        if self._files.get(source.key) is not file:
            return False
        store = file.store
        if not (isinstance(store, LocalStore) and store.is_at(source.path)):
            return False
        self._use(source.key, file)
        return True

    def _recall(self, source: Source) -> None:
        """Take the end of a remote file from the folder that the environment names, if nothing else is known of it."""
        kept = _kept(source)
        if kept is None:
            return
        with self._lock:
            if source.key in self._files or source.key in self._ends:
                return
        known = kept.get(source.key)
        if known is not None:
            self.adopt({source.key: known})

    def begin(
        self, source: Source, limit: int, may_take: Callable[[int], bool] = bool
    ) -> Begun | None:
        """Begin to open a remote file; None where its library cannot. `may_take`: whether a number of bytes of its end may be
        read ahead; what is missing is read when the file is opened.
        """
        self._recall(source)
        with self._lock:
            held = self._files.get(source.key)
        return source.begin(self._known(source, held), partial(_wanted, limit, may_take))

    def is_confirmed(self, source: Source, limit: int) -> bool:
        """Whether `open` sends no request for a remote file, because the store was asked for its version before (`asked_once`)."""
        confirmed = confirmed_now()
        return (
            confirmed is not None
            and source.key in confirmed.versions
            and self.assumes(source, limit)
        )

    def confirm_listed(self, sources: Iterable[Source], limit: int, report: Report) -> None:
        """Confirm the versions that the cache has of many remote files by listings (`asked_once`)."""
        confirmed = confirmed_now()
        if confirmed is not None:
            known = ((one, self._tied_version(one, limit)) for one in sources if one.far)
            pairs = [(one, version) for one, version in known if version is not None]
            confirmed.add_listed(pairs, report)

    def ask_ahead(
        self, sources: Iterable[Source], limit: int, confirmed: Confirmed
    ) -> UnconfirmedVersions:
        """Begin to ask for the versions that the cache has of remote files, which count as confirmed until the store answers.

        Whoever calls waits for the answers, with `confirm_all`, before anything is told of these files.
        """
        asked = UnconfirmedVersions()
        for source in sources:
            file = self._assumed(source, asked.report, limit) if source.far else None
            if file is not None:
                assert isinstance(file.store, RemoteStore)
                confirmed.versions[source.key] = file.store.version
                asked.add(file.store)
                asked.ask(file.store)
        return asked

    def assumes(self, source: Source, limit: int) -> bool:
        """Whether `open` with `unconfirmed` sends no request for a file."""
        return self._tied_version(source, limit) is not None

    def _tied_version(self, source: Source, limit: int) -> Version | None:
        """The version that is known of a file, if its reads tell when it is another one."""
        self._recall(source)
        with self._lock:
            held, end = self._files.get(source.key), self._end(source)
        if held is not None:
            tied = _tied(held.store) and _is_of(held, source, limit)
            return held.store.version if tied else None
        return end.version if end is not None and end.version.strong else None

    def assumed(
        self, source: Source, report: Report, limit: int, version: Version
    ) -> FileMetadata | None:
        """A remote file without a request, if the cache has this version and its reads tell when it is another one."""
        self._recall(source)
        found = self._assumed(source, report, limit)
        return found if found is not None and found.store.version == version else None

    def _assumed(self, source: Source, report: Report, limit: int) -> FileMetadata | None:
        """A file whose reads tell when it is another one, in the version that the cache has."""
        key = source.key
        with self._lock:
            held, end = self._files.get(key), self._end(source)
        if held is not None:
            if not _tied(held.store) or not _is_of(held, source, limit):
                return None
            self._use(key, held)
            return held
        store = None if end is None else source.assumed(end)
        if store is None:
            return None
        file = FileMetadata(source, store, report, limit)
        self._add(key, file, True)
        return file

    def _use(self, key: str, file: FileMetadata) -> None:
        """Count a hit, and make a file the one that was used last, unless it was dropped meanwhile."""
        with self._lock:
            self._hits += 1
            if self._files.get(key) is file:
                self._files.move_to_end(key)

    def _add(self, key: str, file: FileMetadata, hit: bool) -> None:
        with self._lock:
            self._hits += hit
            self._misses += not hit
            self._forget(key)
            self._files[key] = file
            self._measure(key)
            if len(self._files) > 1:
                self._drop(len(self._files) - self._most())
            self._added += 1
            if self._added % GROWING == 0 or 2 * self._bytes > self.max_bytes:
                for last in islice(reversed(self._files), 2 * GROWING):
                    self._measure(last)
            self._shrink()

    def batch(self, paths: tuple[str, ...], limit: int, threads: int = 1) -> TailBatch | None:
        """The ends of these local files, if they were read together, with this limit, and none has changed since."""
        with self._lock:
            batch = self._batches.get(paths)
        if batch is None or batch.limit != limit or not batch.is_current(threads):
            return None
        with self._lock:
            if paths in self._batches:
                self._batches.move_to_end(paths)
        return batch

    def add_batch(self, batch: TailBatch) -> None:
        """Keep the ends of files that were read."""
        with self._lock:
            self._forget_batch(batch.paths)
            self._batches[batch.paths] = batch
            self._measure_batch(batch)

    def keep_made(self, batch: TailBatch, key: Hashable, made: Any) -> None:
        """Keep a result with the batch that it was made of."""
        with self._lock:
            while len(batch.made) >= MAX_RESULTS:
                del batch.made[next(iter(batch.made))]
            batch.made[key] = made
            self._measure_batch(batch)

    def measure_batch(self, batch: TailBatch) -> None:
        """Take the size of a batch again: what was made of it has grown."""
        with self._lock:
            self._measure_batch(batch)

    def info(self) -> CacheInfo:
        """What the cache holds, and how it has served."""
        with self._lock:
            for key in self._files:
                self._measure(key)
            self._shrink()
            files = len(self._files.keys() | self._ends.keys())
            files += sum([len(batch.places) for batch in self._batches.values()])
            return CacheInfo(
                files, self._bytes, self.max_bytes, self._hits, self._misses, self._evictions
            )

    def resize(self, max_bytes: int) -> None:
        """Hold no more than `max_bytes` from here on."""
        if max_bytes < 0:
            raise ValueError(f"max_bytes={max_bytes}: not negative")
        with self._lock:
            self.max_bytes = max_bytes
            for key in self._files:
                self._measure(key)
            self._shrink()

    def ends(self) -> dict[str, Known]:
        """The ends of remote files that every process can open by their keys."""
        with self._lock:
            files, kept = list(self._files.items()), list(self._ends.items())
        found = {key: one.known for key, one in kept if one.source is None}
        return found | {
            key: Known(file.store.version, file.end)
            for key, file in files
            if _lasts(file) and file.source.lasting
        }

    def adopt(self, ends: Mapping[str, Known]) -> None:
        """Keep ends that another process has read. Each is used once the store has confirmed its version."""
        with self._lock:
            for key, known in ends.items():
                if key not in self._files and re.match(_LASTING, key):
                    self._keep(key, _Kept(known, None))
            self._shrink()

    def unlock(self) -> None:
        """Replace the lock in a forked process, where its holder may be missing."""
        self._lock = threading.Lock()

    def _known(self, source: Source, held: FileMetadata | None) -> Known | None:
        if not source.far:
            return None
        if held is not None:
            return Known(held.store.version)
        with self._lock:
            return self._end(source)

    def _open(self, source: Source, known: Known | None) -> Store:
        try:
            return source.open(known)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            with self._lock:
                dropped = self._drop((len(self._files) + 1) // 2)
            if not dropped:
                raise
        return source.open(known)

    def _most(self) -> int:
        if resource is None:
            return self.capacity
        limit: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY:
            return self.capacity
        return max(1, min(self.capacity, limit // DESCRIPTOR_SHARE))

    # ---- with the lock held

    def _end(self, source: Source) -> Known | None:
        kept = self._ends.get(source.key)
        return None if kept is None or kept.source not in (None, source) else kept.known

    def _resize(self, key: str | tuple[str, ...], size: int) -> None:
        """Count the bytes of what is held under a key."""
        self._bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    def _measure(self, key: str) -> None:
        self._resize(key, self._files[key].nbytes)

    def _forget(self, key: str) -> FileMetadata | None:
        """Drop what is held under a key: an open file, which is returned, or an end."""
        self._bytes -= self._sizes.pop(key, 0)
        self._ends.pop(key, None)
        return self._files.pop(key, None)

    def _keep(self, key: str, kept: _Kept) -> None:
        self._forget(key)
        self._ends[key] = kept
        self._resize(key, END_RECORD_BYTES + len(kept.known.tail))

    def _measure_batch(self, batch: TailBatch) -> None:
        if self._batches.get(batch.paths) is batch:
            self._resize(batch.paths, batch.nbytes)
            self._shrink()

    def _forget_batch(self, paths: tuple[str, ...]) -> int:
        """Drop the ends of files that were read together; returns how many."""
        self._bytes -= self._sizes.pop(paths, 0)
        batch = self._batches.pop(paths, None)
        return 0 if batch is None else len(batch.places)

    def _drop(self, n: int) -> int:
        """Drop the n least recently used files: they close when no scan holds them any more."""
        n = max(n, 0)
        for _ in range(n):
            key = next(iter(self._files))
            file = self._forget(key)
            if file is not None and _lasts(file):
                source = None if file.source.lasting else file.source
                self._keep(key, _Kept(Known(file.store.version, file.end), source))
            else:
                self._evictions += 1
        return n

    def _shrink(self) -> None:
        while self._bytes > self.max_bytes and self._batches:  # they are read again most quickly
            self._evictions += self._forget_batch(next(iter(self._batches)))
        while self._bytes > self.max_bytes and len(self._files) > 1:
            self._drop(1)
        while self._bytes > self.max_bytes and self._ends:
            self._forget(next(iter(self._ends)))
            self._evictions += 1
        if self._bytes > self.max_bytes and self._files:
            self._forget(next(iter(self._files)))
            self._evictions += 1

    def clear(self) -> None:
        """Forget every file, and the counts."""
        with self._lock:
            self._files.clear()
            self._sizes.clear()
            self._ends.clear()
            self._batches.clear()
            self._bytes = self._hits = self._misses = self._evictions = 0


def _wanted(limit: int, may_take: Callable[[int], bool], tail: Buffer, size: int) -> int:
    wanted = needed(tail, size, limit)
    return wanted if wanted <= memoryview(tail).nbytes or may_take(wanted) else 0


def _tied(store: Store) -> bool:
    """Whether every read is refused where the file is another version."""
    return isinstance(store, RemoteStore) and store.version.strong


def _kept(source: Source) -> KeptEnds | None:
    """The folder that keeps the end of a file for other processes, if the environment names one."""
    if not source.far or not source.lasting:
        return None
    from pageseek.datasets.kept_ends import kept_ends  # late: local files have none

    return kept_ends()


def _lasts(file: FileMetadata) -> bool:
    """Whether the end of a file is kept when the file is closed: it is remote, and its version can be confirmed later."""
    source, store = file.source, file.store
    return (
        isinstance(store, RemoteStore) and source.far and store.version.dated and not source.bound
    )


cache = FileCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cache.unlock)
