"""The package's quick dataclasses and named tuples equal those of the standard library: both make the same classes, which are compared."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
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


def tuples(base: Any) -> tuple[Any, Any]:
    class Pair(base):  # type: ignore[misc]
        """Two values."""

        first: int
        second: list[int] | None = None
        third: str = "three"

        @property
        def double(self) -> int:
            return int(2 * self.first)

    plain = base("Plain", [("one", int), ("two", int)])
    Pair.__qualname__ = Pair.__name__
    return Pair, plain


@pytest.mark.parametrize(
    "how",
    [
        lambda cls: cls(1, 2),
        lambda cls: cls(1),
        lambda cls: cls(),
        lambda cls: cls(1, 2, 3, 4),
        lambda cls: cls(1, nonsense=2),
        lambda cls: cls(**dict.fromkeys(cls._fields, 5)),
        lambda cls: cls._make([1, 2, 3][: len(cls._fields)]),
        lambda cls: cls._make([1]),
        lambda cls: cls(1, 2)._replace(**{cls._fields[0]: 7}),
        lambda cls: cls(1, 2)._replace(nonsense=7),
        lambda cls: cls(1, 2)._asdict(),
        lambda cls: (cls._fields, cls._field_defaults, cls.__match_args__),
        lambda cls: (cls.__mro__[1:], type(cls), cls.__slots__, hasattr(cls(1, 2), "__dict__")),
        lambda cls: [getattr(cls(1, 2), name) for name in cls._fields],
        lambda cls: getattr(cls, cls._fields[1]).__doc__,
        lambda cls: str(inspect.signature(cls)).count(","),
        lambda cls: list(inspect.signature(cls.__new__).parameters)[1:],
        lambda cls: copy.copy(cls(1, [2])),
        lambda cls: copy.deepcopy(cls(1, [2])),
        lambda cls: cls(1, 2) == (1, 2, "three"),
        lambda cls: hash(cls(1, 2)) == hash(tuple(cls(1, 2))),
        lambda cls: cls(3, 2).double,
        lambda cls: setattr(cls(1, 2), cls._fields[0], 2),
        lambda cls: list(cls.__annotations__),
        lambda cls: (cls.__module__, cls.__doc__ if cls.__doc__ == "Two values." else None),
    ],
)
def test_named_tuples_do_the_same(how: Callable[[Any], Any]) -> None:
    for place in (0, 1):
        found = []
        for base in (NamedTuple, records.NamedTuple):
            try:
                found.append(repr(how(tuples(base)[place])))
            except Exception as error:
                found.append(type(error).__name__)
        assert found[0] == found[1]


class Sub(records.NamedTuple):
    """One that travels."""

    name: str
    parts: tuple[Any, ...] = ()


class SubSub(Sub):
    """One whose constructor calls that of its base."""

    __slots__ = ()

    def __new__(cls, name: str) -> SubSub:
        return super().__new__(cls, name.upper())


Made = records.NamedTuple("Made", [("one", int)])


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_named_tuples_travel(protocol: int) -> None:
    for sent in (Sub("a", (Sub("b"),)), Made(1)):
        found = pickle.loads(pickle.dumps(sent, protocol))
        assert (type(found), found) == (type(sent), sent)
    assert SubSub("a") == ("A", ())


def test_a_class_without_fields_is_no_named_tuple() -> None:
    with pytest.raises(TypeError, match="Nothing: without fields"):

        class Nothing(records.NamedTuple):
            pass


def test_classes_know_their_fields_before_and_after_the_first_instance() -> None:
    for first in (dataclasses.fields, lambda cls: cls(1), lambda cls: cls.__match_args__):

        @records.dataclass(frozen=True)
        class Base:
            one: int
            two: list[int] = field(default_factory=list)

        @records.dataclass(frozen=True)
        class Derived(Base):
            three: int = 3

        first(Derived)
        assert dataclasses.is_dataclass(Derived)
        assert [f.name for f in dataclasses.fields(Derived)] == ["one", "two", "three"]
        assert Derived(1) == Derived(1, [], 3) != Derived(1, [], 4)
        assert (Base.__match_args__, Derived.__match_args__) == (
            ("one", "two"), ("one", "two", "three"),
        )  # fmt: skip


def test_what_a_plain_lookup_imports(tmp_path: Path) -> None:
    """Modules that take long to import, and those of a scan, are not imported for a row of a small file."""
    path = str(tmp_path / "one.parquet")
    n = range(30_000)
    pq.write_table(
        pa.table({"id": n, "text": [f"text {i}" for i in n]}), path, write_page_index=True
    )
    code = f"""
import sys, pageseek as ps
assert ps.read_table({path!r}, filter=ps.col("id") == 5).num_rows == 1
print(*sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    slow = {"numpy.typing", "fractions", "mmap", "pyarrow.compute", "pyarrow.fs", "pyarrow.parquet", "pageseek.scanning.planner"}  # fmt: skip
    assert not slow & set(run.stdout.split())
