"""The package's quick dataclasses and named tuples equal those of the standard library: both make the same classes, which are compared."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek
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
        lambda cls: cls.__dataclass_params__,
        lambda cls: [(f.name, f.init, f.repr, f.compare) for f in dataclasses.fields(cls)],
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


T = TypeVar("T")


@records.dataclass(frozen=True)
class Box(Generic[T]):
    """One of a kind."""

    held: T
    counted: ClassVar[int] = 7


@records.dataclass(frozen=True)
class Marked(Box[int]):
    """One below it."""

    mark: str = ""


def test_generic_ones_are_dataclasses() -> None:
    box, marked = Box("a"), Marked(1, "b")
    assert (repr(box), repr(marked)) == ("Box(held='a')", "Marked(held=1, mark='b')")
    assert (dataclasses.replace(box, held=2), Box[int](2).counted) == (Box(2), 7)
    assert dataclasses.is_dataclass(Box)
    assert [f.name for f in dataclasses.fields(Marked)] == ["held", "mark"]
    with pytest.raises(TypeError, match="non-frozen"):  # as of any frozen dataclass

        @dataclasses.dataclass
        class _Below(Box[int]):
            pass


def records_of_the_package() -> list[Any]:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(pageseek.__path__, "pageseek.")
        if not module.name.endswith("__main__")
    ]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and not vars(kind).keys().isdisjoint({"__dataclass_fields__", "_fields"})
    ]


def test_all_records_of_the_package_are_known_to_the_standard_library() -> None:
    kinds = records_of_the_package()
    assert len(kinds) > 200
    unknown = {}
    for kind in kinds:
        hints = {}
        try:
            hints = get_type_hints(kind)
        except NameError as error:  # of a type that is imported for type checkers alone
            unknown[kind] = error.name
        names = kind._fields if issubclass(kind, tuple) else [f.name for f in fields(kind)]
        assert not hints or set(names) <= set(hints)
        if kind.__repr__ is records._shown:
            shown = ", ".join(f"{name}={name!r}" for name in names)
            assert repr(kind._make(names)) == f"{kind.__name__}({shown})"
        assert issubclass(kind, tuple) or dataclasses.is_dataclass(kind)
        if kind.__repr__ is records._repr:
            empty = object.__new__(kind)
            for name in names:
                object.__setattr__(empty, name, 5)
            shown = ", ".join(f"{f.name}=5" for f in fields(kind) if f.repr)
            assert repr(empty) == f"{kind.__qualname__}({shown})"
    for kind, name in unknown.items():
        late = inspect.getsource(sys.modules[kind.__module__]).partition("if TYPE_CHECKING:")
        assert re.search(rf"^    .*import .*\b{name}\b", late[2], re.MULTILINE)


def test_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="slots"):
        records.dataclass(slots=False)


def test_none_of_a_plain_import_is_made_the_slow_way() -> None:
    """A class of ours that hashes by a compiled function was made by the standard library."""
    code = """
import dataclasses, sys, pageseek
print(*{
    f"{name}.{kind.__name__}"
    for name, module in list(sys.modules.items())
    if name.startswith("pageseek.") and not name.startswith("pageseek.storage.obstore")
    for kind in vars(module).values()
    if isinstance(kind, type)
    and kind.__module__ == name
    and "__dataclass_fields__" in vars(kind)
    and vars(kind).get("__replace__") is not dataclasses.replace
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
    slow = {"numpy.typing", "fractions", "mmap", "pyarrow.compute", "pyarrow.fs", "pyarrow.parquet", "pageseek.scanning.plans.planner"}  # fmt: skip
    assert not slow & set(run.stdout.split())
