"""What a failed request means, and when it is tried again."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from pageseek.base.errors import PageseekError, StoreError
from pageseek.base.records import dataclass

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds
# a store that is busy is given longer each time: of five tries more the first costs next to nothing, all take half a minute
BUSY_FACTOR, LONGEST_BUSY = 4, 30.0
LONGEST_ASKED = 60.0  # that a Retry-After may ask for
SLOWEST = 64 << 10  # bytes a second of a body that is waited for
CONNECT = 5.0  # seconds at most until a connection stands
LISTING = 60  # times the timeout of one request
NO_RANGES = "; the server, or a proxy before it, does not answer ranges as asked: download the file"
ODD = 2  # tries after an answer to another question, which a server may repeat for ever

Kind = Literal["again", "busy", "odd", "missing", "denied", "changed", "final"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a store is tried: `retries` after the first attempt, each at most `timeout` seconds without a byte.

    Of calls of libraries that do not tell when bytes come, `reading` and `listing` say when they are given up.
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
        """Seconds for a body of so many bytes, however slowly it flows."""
        return self.timeout + length / SLOWEST

    @property
    def listing(self) -> float:
        """Seconds for all that a folder holds, which is many requests."""
        return LISTING * self.timeout


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request failed, in words without secrets. `after`: seconds that the store asked to be left alone;
    `advice`: how its library takes what would help.
    """

    kind: Kind
    why: str
    after: float = 0.0
    advice: str = ""


class Retries:
    """How often requests were tried again, and the seconds of waiting before that. Safe for threads."""

    __slots__ = ("_lock", "count", "seconds")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count, self.seconds = 0, 0.0

    def add(self, seconds: float) -> None:
        """One more, after a wait."""
        with self._lock:
            self.count += 1
            self.seconds += seconds

    def take(self) -> tuple[int, float]:
        """What there was since it was last asked."""
        with self._lock:
            found = self.count, self.seconds
            self.count, self.seconds = 0, 0.0
        return found


class OddAnswerError(Exception):
    """An answer that is not to what was asked."""


# compiled when first needed
_STATUS = r"(?:status(?: code)?|response code)\W{0,3}([45]\d\d)\b"
_CODE = r"<Code>\s*([^<]{1,80}?)\s*</Code>"
_DENIED = (
    r"access[ _]?denied|permission[ _]?denied|forbidden|unauthori[sz]ed|unauthenticated|invalid[ _]?access[ _]?key"
    r"|signature|authenticationfailed|authorizationfailure|authorizationpermissionmismatch"
)
_MISSING = r"no[ _]?such[ _]?(?:key|bucket)|(?<!host )not[ _]found|does not exist"
_BUSY = r"slow[ _]?down|throttl|too[ _]?many[ _]?requests|server[ _]?(?:is[ _]?)?busy|resource_exhausted"


def says_denied(text: str) -> bool:
    """Whether an error tells that one is not let in."""
    return re.search(_DENIED, text, re.IGNORECASE) is not None


def says_missing(text: str) -> bool:
    """Whether an error tells that nothing is there."""
    return re.search(_MISSING, text, re.IGNORECASE) is not None


def says_busy(text: str) -> bool:
    """Whether an error tells that the store has too much to do."""
    return re.search(_BUSY, text, re.IGNORECASE) is not None


def of_status(status: int, why: str, after: float = 0.0, advice: str = "") -> Fault:
    """What a status of HTTP means."""
    kind: Kind = "final"
    if status in (429, 503):
        kind = "busy"
    elif status in (408, 425) or status >= 500:
        kind = "again"
    elif status in (404, 410):
        kind = "missing"
    elif status in (401, 403, 407):
        kind = "denied"
    elif status == 412:
        kind = "changed"
    return Fault(kind, why, after, advice)


def status_in(text: str) -> int | None:
    """The status of an error answer that a message tells of."""
    found = re.search(_STATUS, text, re.IGNORECASE)
    return int(found[1]) if found else None


def code_in(text: str) -> str:
    """The word of S3 for an error, in brackets, where a message has one."""
    found = re.search(_CODE, text)
    return f" ({found[1]})" if found else ""


def with_retries(
    attempt: Callable[[], T],
    fault_of: Callable[[Exception], Fault],
    name: str,
    what: str,
    retry_policy: RetryPolicy,
    retries: Retries,
    stop: threading.Event,
) -> T:
    """The result of an attempt, repeated with exponential backoff and full jitter while that may help; where the store is
    busy with longer waits, of which half is drawn. `retries` counts that.

    `name`, `what`: the file and what is asked, for errors. Other libraries' errors may hold secrets, and are
    neither shown nor chained.
    """
    import random

    begun, tries, odd = time.monotonic(), 0, 0
    while True:
        tries += 1
        try:
            return attempt()
        except PageseekError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a library of a store raises
            fault = fault_of(error)
        odd += fault.kind == "odd"
        again = fault.kind in ("again", "busy") or (fault.kind == "odd" and odd <= ODD)
        if fault.kind == "busy":
            most = min(FIRST_WAIT * BUSY_FACTOR ** min(tries - 1, 16), LONGEST_BUSY)
            wait = random.uniform(most / 2, most)
        else:
            wait = random.uniform(0, min(FIRST_WAIT * 2 ** min(tries - 1, 16), LONGEST_WAIT))
        wait = max(wait, min(fault.after, LONGEST_ASKED))
        spent = time.monotonic() - begun
        if not again or tries > retry_policy.retries or spent + wait > retry_policy.total:
            raise failed(fault, name, what, tries, spent)
        if stop.wait(wait):
            raise StoreError(f"{name}: {what}: given up, nobody waits for it any more")
        retries.add(wait)


def failed(fault: Fault, name: str, what: str, tries: int, spent: float) -> Exception:
    """The error of the user for a fault."""
    said = f"{name}: {what}: {fault.why}"
    if fault.kind == "missing":
        return FileNotFoundError(f"{said}; no such file")
    if fault.kind == "denied":
        return PermissionError(
            f"{said}; give credentials in the environment or as storage_options{fault.advice}"
        )
    tried = "" if tries == 1 else f"; tried {tries} times in {spent:.1f} seconds"
    remedy = {
        "again": "; try later, or with more patience: retries=, timeout=",
        "busy": "; the store is busy: try later, or with more patience: retries=, timeout=",
        "odd": fault.advice,
    }.get(fault.kind, "")
    return StoreError(f"{said}{tried}{remedy}")
