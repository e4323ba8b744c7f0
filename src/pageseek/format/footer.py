"""The end of a file: its footer, found by the length behind it (README.md of the format, "File format")."""

from __future__ import annotations

from pageseek.base.errors import CorruptFileError, LimitError, UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format import sparse_footer
from pageseek.format.footer_form import find_entry
from pageseek.format.sparse_footer import TAIL_SHARE, Opened, is_large, open_sparse
from pageseek.io.fetch import Fetcher
from pageseek.storage import RemoteStore, Store
from pageseek.storage.store import Buffer

TAIL_BYTES = 64 << 10  # bytes read at open: footer, and usually the page index with it
NEAR = 1e-4  # seconds of latency below which a second read is cheaper than a long tail


class Footer(NamedTuple):
    """The footer of a file, and the last bytes that were read for it. `opened`: if only parts of the footer were read."""

    data: memoryview
    tail: memoryview
    opened: Opened | None = None


def read_footer(
    store: Store, report: Report, max_metadata_bytes: int, known: bytes | memoryview | None = None
) -> Footer:
    """The footer of a file. `known`: its last bytes, if they are in memory."""
    size = store.size
    fetcher = Fetcher(store, report)
    if size < 12:
        said = "the file is empty: 0" if size == 0 else f"{size}"
        # what lies in memory has no name of its own: a caller may have meant one
        of = (
            "" if store.name != "<memory>" else "; bytes are the content of a file: a path is a str"
        )
        raise CorruptFileError(f"{store.name}: {said} bytes are too few for a Parquet file{of}")
    tail = memoryview(known) if known is not None and len(known) >= 12 else _brought(store, report)
    guess = TAIL_BYTES
    if tail is None:
        guess = min(size, _worth(store))
        (tail,) = fetcher.read([(size - guess, guess)], "metadata")
    magic = bytes(tail[-4:])
    if magic == b"PARE":
        raise UnsupportedError(
            f"{store.name}: the footer is encrypted, and encrypted files are not supported; pyarrow reads them with the keys"
        )
    if magic != b"PAR1":
        raise CorruptFileError(
            f"{store.name}: ends in {magic!r}, not in b'PAR1': not a Parquet file, or cut short{_kind(bytes(tail))}"
        )
    length = int.from_bytes(tail[-8:-4], "little")
    if length > size - 12:
        raise CorruptFileError(
            f"{store.name}: the footer claims {length} bytes, the file has {size}"
        )
    if length > max_metadata_bytes:
        raise LimitError(
            f"{store.name}: the footer has {length} bytes, beyond the limit of "
            f"{max_metadata_bytes}; raise it with max_metadata_bytes"
        )
    if length + 8 <= tail.nbytes:
        return Footer(tail[tail.nbytes - 8 - length : tail.nbytes - 8], tail)
    if is_large(store, length):
        if not isinstance(store, RemoteStore):
            more = max(TAIL_BYTES, length // TAIL_SHARE)
            (tail,) = fetcher.read([(size - more, more)], "metadata")
        opened = open_sparse(store, tail, length, max_metadata_bytes, report)
        if opened is not None:
            return Footer(opened.sparse.data, tail, opened)
    if guess < TAIL_BYTES:
        (tail,) = fetcher.read([(size - 8 - length, length + 8)], "metadata")
        return Footer(tail[:length], tail)
    (footer,) = fetcher.read([(size - 8 - length, length)], "metadata")
    return Footer(footer, tail)


def needed(tail: Buffer, size: int, limit: int) -> int:
    """The number of last bytes that hold the footer of a remote file, by a few of them; 0 if these cannot end a Parquet file. Of a
    large footer with an index parts are read later.
    """
    tail = memoryview(tail).cast("B")
    end = bytes(tail[-8:])
    length = int.from_bytes(end[:4], "little")
    if length >= sparse_footer.LARGE_FAR and end[4:] == b"PAR1" and find_entry(tail) is not None:
        return tail.nbytes
    return length + 8 if end[4:] == b"PAR1" and length <= min(size - 12, limit) else 0


def _worth(store: Store) -> int:
    """The number of last bytes to read first."""
    if isinstance(store, RemoteStore):
        return store.tail_bytes
    return 8 if store.latency < NEAR else TAIL_BYTES


def _brought(store: Store, report: Report) -> memoryview | None:
    """The last bytes if opening a remote store has brought them. They are counted as read here."""
    if not isinstance(store, RemoteStore):
        return None
    tail, store.tail = store.tail, None
    report.requests += store.requests
    report.waves += store.requests
    store.requests = 0
    report.retried(*store.retries.take())
    if tail is None or tail.nbytes < 12:
        return None
    if not store.renewed:
        report.bytes["metadata"] += tail.nbytes
    return tail


def _kind(tail: bytes) -> str:
    """What a file that is not of Parquet may be, by its last bytes."""
    if tail.endswith(b"ARROW1"):
        return "; it is a file of Arrow (Feather): pyarrow.feather.read_table reads it"
    if b"ORC" in tail[-5:]:
        return "; it is a file of ORC: pyarrow.orc.read_table reads it"
    if all(byte >= 0x20 or byte in b"\t\r\n" for byte in tail[-64:]):
        return "; it ends in text, as CSV and JSON do: pyarrow.csv and pyarrow.json read these"
    return ""
