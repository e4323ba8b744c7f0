"""What a failed request means, and when it is tried again."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from pageseek.errors import PageseekError, StoreError
from pageseek.records import dataclass

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds
LONGEST_ASKED = 60.0  # that a Retry-After may ask for
ODD = 2  # tries after an answer to another question, which a server may repeat for ever

Kind = Literal["again", "odd", "missing", "denied", "changed", "final"]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a store is tried: `retries` after the first attempt, each at most `timeout` seconds without a byte."""

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


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request failed, in words without secrets. `after`: seconds that the store asked to be left alone."""

    kind: Kind
    why: str
    after: float = 0.0


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
_DENIED = r"access[ _]?denied|forbidden|unauthori[sz]ed|invalid[ _]?access[ _]?key|signature"
_MISSING = r"no[ _]?such[ _]?(?:key|bucket)|not[ _]found|does not exist"


def says_denied(text: str) -> bool:
    """Whether an error tells that one is not let in."""
    return re.search(_DENIED, text, re.IGNORECASE) is not None


def says_missing(text: str) -> bool:
    """Whether an error tells that nothing is there."""
    return re.search(_MISSING, text, re.IGNORECASE) is not None


def of_status(status: int, why: str, after: float = 0.0) -> Fault:
    """What a status of HTTP means."""
    kind: Kind = "final"
    if status in (408, 425, 429) or status >= 500:
        kind = "again"
    elif status in (404, 410):
        kind = "missing"
    elif status in (401, 403, 407):
        kind = "denied"
    elif status == 412:
        kind = "changed"
    return Fault(kind, why, after)


def status_in(text: str) -> int | None:
    """The status of an error answer that a message tells of."""
    found = re.search(_STATUS, text, re.IGNORECASE)
    return int(found[1]) if found else None


def code_in(text: str) -> str:
    """The word of S3 for an error, in brackets, where a message has one."""
    found = re.search(_CODE, text)
    return f" ({found[1]})" if found else ""


def persist(
    attempt: Callable[[], T],
    fault_of: Callable[[Exception], Fault],
    name: str,
    what: str,
    patience: Patience,
    retries: Retries,
    stop: threading.Event,
) -> T:
    """The result of an attempt, repeated with exponential backoff and full jitter while that may help. `retries`
    counts that.

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
        again = fault.kind == "again" or (fault.kind == "odd" and odd <= ODD)
        wait = random.uniform(0, min(FIRST_WAIT * 2 ** min(tries - 1, 16), LONGEST_WAIT))
        wait = max(wait, min(fault.after, LONGEST_ASKED))
        spent = time.monotonic() - begun
        if not again or tries > patience.retries or spent + wait > patience.total:
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
            f"{said}; give credentials in the environment or as storage_options, or for a public "
            'bucket storage_options={"skip_signature": True}'
        )
    tried = "" if tries == 1 else f"; tried {tries} times in {spent:.1f} seconds"
    remedy = {
        "again": "; try later, or with more patience: retries=, timeout=",
        "odd": "; the server, or a proxy before it, does not answer ranges as asked: download the file",
    }.get(fault.kind, "")
    return StoreError(f"{said}{tried}{remedy}")
