"""The package's quick dataclasses equal those of the standard library: both make the same classes, which are compared."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from pageseek.base import records

Make = Callable[..., Any]
KINDS: list[dict[str, bool]] = [
    {"frozen": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "eq": False, "repr": False},
    {"frozen": False},
    {"frozen": False, "unsafe_hash": True},
]


def made(make: Make, kind: dict[str, bool]) -> tuple[Any, Any, Any]:
    @make(slots=True, **kind)
    class Made:
        """A record with every kind of field."""

        first: int
        second: str = "two"
        shown: list[int] = field(default_factory=list, compare=False)
        hidden: float = field(default=1.5, repr=False)
        inner: dict[str, int] = field(default_factory=dict, init=False, compare=False)
        counted: int = field(default=7, init=False)

    @make(slots=True, **kind)
    class More(Made):
        extra: int = 0

        def double(self) -> int:
            return 2 * self.extra

    @make(slots=True, **{name: on for name, on in kind.items() if name != "unsafe_hash"})
    class One:
        only: Any

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 4

        def __repr__(self) -> str:
            return "mine"

    for one in (Made, More, One):
        one.__qualname__ = one.__name__  # type: ignore[attr-defined]
    return Made, More, One


@pytest.fixture(params=KINDS, ids=str)
def both(request: pytest.FixtureRequest) -> list[tuple[Any, Any, Any]]:
    return [made(dataclasses.dataclass, request.param), made(records.dataclass, request.param)]


@pytest.mark.parametrize(
    "how",
    [
        lambda cls: cls(1),
        lambda cls: cls(1, "b", [2], 0.5),
        lambda cls: cls(hidden=2.5, first=3),
        lambda cls: cls(),
        lambda cls: cls(1, 2, 3, 4, 5),
        lambda cls: cls(1, inner={}),
        lambda cls: cls(1, nonsense=2),
        lambda cls: dataclasses.replace(cls(1, "b"), first=5),
        lambda cls: dataclasses.asdict(cls(1)),
        lambda cls: cls(1, "a") == cls(1, "a"),
        lambda cls: cls(1, "a", [1]) == cls(1, "a", [2]),
        lambda cls: cls(1, "a") == cls(1, "b"),
        lambda cls: cls(1) == (1, "two", 1.5),
        lambda cls: len({hash(one) for one in [cls(1), cls(1, "two", [5])]}),
        lambda cls: len({cls(1), cls(1), cls(2)}),
        lambda cls: copy.copy(cls(1, "b")).second,
        lambda cls: copy.deepcopy(cls(1, shown=[[1]])).shown,
        lambda cls: cls.__match_args__,
        lambda cls: (cls.__slots__, hasattr(cls(1), "__dict__")),
        lambda cls: list(inspect.signature(cls).parameters),
        lambda cls: setattr(cls(1), "first", 2),
        lambda cls: delattr(cls(1), "first"),
        lambda cls: cls(1).shown is cls(1).shown,
        lambda cls: cls(1).counted,
    ],
)
def test_they_do_the_same(both: list[tuple[Any, Any, Any]], how: Callable[[Any], Any]) -> None:
    for place in (0, 1):
        found = []
        for classes in both:
            try:
                value = how(classes[place])
            except Exception as error:
                value = type(error).__name__
            default = type(value).__repr__ is object.__repr__  # which tells its address
            found.append(type(value).__name__ if default else repr(value))
        assert found[0] == found[1]


def test_what_a_class_has_itself_stays(both: list[tuple[Any, Any, Any]]) -> None:
    for _, more, one in both:
        assert more(1, extra=4).double() == 8
        assert (repr(one(1)), hash(one(1)), one(1) == one(2)) == ("mine", 4, True)


@records.dataclass(frozen=True, slots=True)
class Sent:
    """One that travels."""

    name: str
    parts: tuple[Any, ...] = ()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_frozen_one_travels(protocol: int) -> None:
    sent = Sent("a", (Sent("b"),))
    found = pickle.loads(pickle.dumps(sent, protocol))
    assert found == sent and hash(found) == hash(sent) and found is not sent
    for name in ("name", "other"):
        with pytest.raises(
            dataclasses.FrozenInstanceError, match=rf"Sent\.{name} cannot be changed"
        ):
            setattr(found, name, "c")


def test_one_that_holds_itself_is_shown() -> None:
    parts: list[Any] = []
    sent = Sent("a", (parts,))
    parts.append(sent)
    assert repr(sent) == "Sent(name='a', parts=([...],))"


def test_values_that_are_the_same_object_are_equal() -> None:
    nan = float("nan")
    assert Sent(nan, ()) == Sent(nan, ())  # type: ignore[arg-type]

    @records.dataclass(frozen=True)
    class Alone:
        value: float

    assert Alone(nan) == Alone(nan) != Alone(-nan)


def test_after_init_comes_what_the_class_wants() -> None:
    @records.dataclass(frozen=True)
    class Checked:
        value: int

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError("negative")

    assert Checked(1).value == 1
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="slots"):
        records.dataclass(slots=False)


def test_none_of_a_plain_import_is_made_the_slow_way() -> None:
    """A class of ours that hashes by a compiled function was made by the standard library."""
    code = """
import sys, pageseek
print(*{
    f"{name}.{kind.__name__}"
    for name, module in list(sys.modules.items())
    if name.startswith("pageseek.") and not name.startswith("pageseek.storage.obstore")
    for kind in vars(module).values()
    if isinstance(kind, type)
    and kind.__module__ == name
    and "__dataclass_fields__" in vars(kind)
    and kind.__dataclass_params__.init
})
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    slow = set(run.stdout.split())
    assert not slow
