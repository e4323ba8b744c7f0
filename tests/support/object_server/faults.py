"""What goes wrong, and when: faults, and the rules that choose them."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from support.object_server.messages import Request

Kind = Literal[
    "status",  # an error answer: `status`, and `retry_after` as a header
    "close",  # the connection ends before the answer
    "reset",  # so, by RST in place of FIN
    "hang",  # no answer, ever
    "lost",  # what was asked is done, and the connection ends before the answer
    "cut",  # the connection ends after `after` bytes of the body
    "stall",  # nothing more comes after `after` bytes of the body
    "wrong_range",  # Content-Range names the bytes one further on
    "whole",  # 200 and the whole object for a range
    "short",  # 206 with `after` of the bytes asked, and a header that says so
    "replaced",  # the object is replaced just before it is read; If-Match sees that
    "other_version",  # other bytes under another ETag, once, whatever If-Match says
]
_codes = {403: "AccessDenied", 404: "NoSuchKey", 429: "TooManyRequests", 503: "SlowDown"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    ``after`` counts bytes of the body, None is half of them. ``hang`` and ``stall`` last until the
    client leaves or the server stops.
    """

    kind: Kind
    status: int = 503
    retry_after: float | None = None
    after: int | None = None

    @property
    def name(self) -> str:
        """How the log calls it: the kind, or the status."""
        return str(self.status) if self.kind == "status" else self.kind

    @property
    def code(self) -> str:
        """The word of S3 for the status."""
        return _codes.get(self.status, "InternalError")

    def limit(self, length: int) -> int:
        """How many of the bytes of a body come."""
        return length // 2 if self.after is None else min(self.after, length)


Chooser = Callable[[Request], Fault | None]


def status(code: int, retry_after: float | None = None) -> Fault:
    """An error answer: 503, 500, 429, 403, 404."""
    return Fault("status", status=code, retry_after=retry_after)


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault for some of the requests that fit.

    Of the requests with this method and a path like the pattern, the first ``skip`` pass, the next
    ``times`` (None: all) are at stake, and each is hit with the probability. ``ranged`` False hits
    only requests without a range, True only those with one.
    """

    fault: Fault
    method: str = "*"
    path: str = "*"
    ranged: bool | None = None
    skip: int = 0
    times: int | None = None
    probability: float = 1.0

    def fits(self, request: Request) -> bool:
        if self.ranged is not None and self.ranged != (request.range is not None):
            return False
        return fnmatchcase(request.method, self.method) and fnmatchcase(request.path, self.path)


@dataclass
class Rules:
    """Chooses by the first rule that hits.

    Chance depends on the seed, what is asked, and how often that was asked before, not on the order
    in which threads come: the same requests meet the same faults.
    """

    rules: list[Rule]
    seed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _fitting: Counter[int] = field(default_factory=Counter, repr=False)
    _asked: Counter[str] = field(default_factory=Counter, repr=False)

    def __call__(self, request: Request) -> Fault | None:
        what = f"{request.method} {request.path} {request.range}"
        with self._lock:
            self._asked[what] += 1
            again = self._asked[what]
            for place, rule in enumerate(self.rules):
                if not rule.fits(request):
                    continue
                self._fitting[place] += 1
                count = self._fitting[place] - rule.skip
                if count < 1 or (rule.times is not None and count > rule.times):
                    continue
                if self._chance(f"{place} {again} {what}") < rule.probability:
                    return rule.fault
        return None

    def _chance(self, what: str) -> float:
        digest = hashlib.blake2b(f"{self.seed} {what}".encode(), digest_size=7).digest()
        return int.from_bytes(digest) / 2**56

    def to_json(self) -> dict[str, Any]:
        return {"seed": self.seed, "rules": [asdict(rule) for rule in self.rules]}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Rules:
        rules = [Rule(**{**rule, "fault": Fault(**rule["fault"])}) for rule in said["rules"]]
        return cls(rules, said["seed"])


Faults = Chooser | Rule | Fault | Iterable[Rule] | None


def chooser(faults: Faults, seed: int = 0) -> Chooser | None:
    """A callable from whatever names faults; a fault alone hits every request."""
    if faults is None or callable(faults):
        return faults
    if isinstance(faults, Fault):
        faults = Rule(faults)
    return Rules([faults] if isinstance(faults, Rule) else list(faults), seed)
