"""What a failed request means, and when it is tried again."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from pageseek.base import log
from pageseek.base.errors import AccessDeniedError, PageseekError, StoreError
from pageseek.base.records import dataclass

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds
# a busy store gets longer waits: of five retries the first costs next to nothing, and all take half a minute
BUSY_FACTOR, LONGEST_BUSY = 4, 30.0
LONGEST_ASKED = 60.0  # seconds of a Retry-After that are granted
SLOWEST = 64 << 10  # bytes a second at which a body must come
CONNECT = 5.0  # seconds at most until a connection stands
LISTING = 60  # times the timeout of one request
NO_RANGES = "; the server, or a proxy before it, does not answer ranges as asked: download the file"
ODD = 2  # retries after an answer to another question, which a server may repeat for ever

Kind = Literal["again", "busy", "odd", "missing", "denied", "changed", "final"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a store is tried: `retries` after the first attempt, each at most `timeout` seconds without a
    byte.

    `reading` and `listing` limit calls of libraries that do not tell when bytes come.
    """

    retries: int = 5
    timeout: float = 10.0

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}: not negative")
        if not self.timeout > 0:
            raise ValueError(f"timeout={self.timeout}: seconds, above 0")

    @property
    def total(self) -> float:
        """Seconds after which nothing is tried again."""
        return 30 + (self.retries + 1) * self.timeout

    def reading(self, length: int) -> float:
        """Seconds for a body of `length` bytes that comes slowly."""
        return self.timeout + length / SLOWEST

    @property
    def listing(self) -> float:
        """Seconds for the listing of a folder, which is many requests."""
        return LISTING * self.timeout


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request failed, in words without secrets. `after`: seconds until a retry, as the store asks. `advice`: the
    options of its library that would help.
    """

    kind: Kind
    why: str
    after: float = 0.0
    advice: str = ""


class Retries:
    """The number of retries, and the seconds of the waits before them. Safe for threads."""

    __slots__ = ("_lock", "count", "seconds")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count, self.seconds = 0, 0.0

    def add(self, seconds: float) -> None:
        """Count one more, after a wait."""
        with self._lock:
            self.count += 1
            self.seconds += seconds

    def take(self) -> tuple[int, float]:
        """Those since the last call."""
        with self._lock:
            found = self.count, self.seconds
            self.count, self.seconds = 0, 0.0
        return found


class OddAnswerError(Exception):
    """An answer to another question."""


# compiled when first needed
_STATUS = r"(?:status(?: code)?|response code)\W{0,3}([45]\d\d)\b"
_CODE = r"<Code>\s*([^<]{1,80}?)\s*</Code>"
_STATUS_KINDS: dict[int, Kind] = {
    401: "denied", 403: "denied", 407: "denied", 404: "missing", 410: "missing", 412: "changed",
    408: "again", 425: "again", 429: "busy", 503: "busy",
}  # fmt: skip
_WORDS: dict[Kind, str] = {
    "denied": (
        r"access[ _]?denied|permission[ _]?denied|forbidden|unauthori[sz]ed|unauthenticated|invalid[ _]?access[ _]?key"
        r"|signature|authenticationfailed|authorizationfailure|authorizationpermissionmismatch"
    ),
    "missing": r"no[ _]?such[ _]?(?:key|bucket)|(?<!host )not[ _]found|does not exist",
    "busy": r"slow[ _]?down|throttl|too[ _]?many[ _]?requests|server[ _]?(?:is[ _]?)?busy|resource_exhausted",
}


def says(kind: Kind, text: str) -> bool:
    """Whether the text of an error has words for "missing", "denied" or "busy"."""
    return re.search(_WORDS[kind], text, re.IGNORECASE) is not None


def of_status(status: int, why: str, after: float = 0.0, advice: str = "") -> Fault:
    """What an HTTP status means."""
    kind = _STATUS_KINDS.get(status, "again" if status >= 500 else "final")
    return Fault(kind, why, after, advice)


def status_in(text: str) -> int | None:
    """The HTTP status in the text of an error."""
    found = re.search(_STATUS, text, re.IGNORECASE)
    return int(found[1]) if found else None


def code_in(text: str) -> str:
    """The code of S3 in the text of an error, in brackets; "" where it has none."""
    found = re.search(_CODE, text)
    return f" ({found[1]})" if found else ""


class Attempts:
    """The attempts of one request, and how long to wait before the next one.

    Waits have exponential backoff and full jitter. Where the store is busy they are longer, and half of each is drawn.
    `name`, `what`: the file and the purpose of the request, for errors. Other libraries' errors may hold secrets: they are
    neither shown nor chained.
    """

    __slots__ = ("_begun", "_fault_of", "_name", "_odd", "_policy", "_tries", "_what")

    def __init__(
        self,
        fault_of: Callable[[Exception], Fault],
        name: str,
        what: str,
        retry_policy: RetryPolicy,
    ) -> None:
        self._fault_of, self._name, self._what = fault_of, name, what
        self._policy, self._begun = retry_policy, time.monotonic()
        self._tries = self._odd = 0

    def wait_after(self, error: Exception) -> float:
        """Seconds after which a failed attempt is repeated. Raises the error of the caller where that does not help."""
        import random

        self._tries += 1
        fault = self._fault_of(error)
        self._odd += fault.kind == "odd"
        again = fault.kind in ("again", "busy") or (fault.kind == "odd" and self._odd <= ODD)
        doublings = min(self._tries - 1, 16)
        if fault.kind == "busy":
            most = min(FIRST_WAIT * BUSY_FACTOR**doublings, LONGEST_BUSY)
            wait = random.uniform(most / 2, most)
        else:
            wait = random.uniform(0, min(FIRST_WAIT * 2**doublings, LONGEST_WAIT))
        wait = max(wait, min(fault.after, LONGEST_ASKED))
        spent = time.monotonic() - self._begun
        if not again or self._tries > self._policy.retries or spent + wait > self._policy.total:
            raise failed(fault, self._name, self._what, self._tries, spent) from None
        log.again(self._name, self._what, fault.why, wait)
        return wait


def with_retries(
    attempt: Callable[[], T],
    fault_of: Callable[[Exception], Fault],
    name: str,
    what: str,
    retry_policy: RetryPolicy,
    retries: Retries,
    stop: threading.Event,
) -> T:
    """The result of an attempt, which is repeated while that may help (Attempts), and counted by `retries`."""
    attempts = Attempts(fault_of, name, what, retry_policy)
    while True:
        try:
            return attempt()
        except PageseekError:
            raise
        except Exception as error:  # noqa: BLE001 - libraries of stores raise anything
            failure = error
        wait = attempts.wait_after(failure)
        del failure  # its traceback refers to this frame
        if stop.wait(wait):
            raise StoreError(f"{name}: {what}: given up, nobody waits for it any more")
        retries.add(wait)


# servers of HTTP have no credentials of a store: they take a header, or a signature in the address
_OF_HTTP = (
    "give what the server asks for, such as a header of authorization, as storage_options, or an address with a signature, which may "
    "have run out"
)


def failed(fault: Fault, name: str, what: str, tries: int, spent: float) -> Exception:
    """The error that a caller gets for a fault."""
    said = f"{name}: {what}: {fault.why}"
    if fault.kind == "missing":
        return FileNotFoundError(f"{said}; no such file")
    if fault.kind == "denied":
        if name.startswith(("http://", "https://")):
            return AccessDeniedError(f"{said}; {_OF_HTTP}")
        return AccessDeniedError(
            f"{said}; give credentials in the environment or as storage_options{fault.advice}"
        )
    tried = "" if tries == 1 else f"; tried {tries} times in {spent:.1f} seconds"
    remedy = {
        "again": "; try later, or raise retries=, timeout=",
        "busy": "; the store is busy: try later, or raise retries=, timeout=",
    }.get(fault.kind, fault.advice)
    return StoreError(f"{said}{tried}{remedy}")
