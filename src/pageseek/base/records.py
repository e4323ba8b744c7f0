"""Dataclasses with slots and named tuples that are made quickly, since most of them are made when pageseek is imported.

The standard library compiles up to seven functions for each frozen dataclass, and one for each named tuple and each of its
annotations: a tenth to a whole millisecond a class. Here a class is made with its slots alone. What its fields decide (`__init__`,
`__eq__`, `__dataclass_fields__` ...) is made when one of these is first used: few of the classes have an instance in a first lookup.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import attrgetter, itemgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

from pageseek.base.late_modules import dataclasses

__all__ = ["NamedTuple", "dataclass"]

try:  # fields of named tuples are read by C, as those of the standard library
    from collections import _tuplegetter  # type: ignore[attr-defined]
except ImportError:

    def _tuplegetter(index: int, doc: str) -> property:
        return property(itemgetter(index), doc=doc)


if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:

    def dataclass(*, frozen=False, slots=True, eq=True, repr=True, unsafe_hash=False):
        """As `dataclasses.dataclass`, with these options alone. There are always slots."""
        if not slots:
            raise TypeError("without slots: take dataclasses.dataclass")

        def make(cls):
            own = [name for name, kind in cls.__annotations__.items() if "ClassVar" not in kind]
            given = {name: value for name, value in vars(cls).items() if name not in _OF_INSTANCES}
            values = {name: given.pop(name) for name in own if name in given}
            inherited = {
                slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())
            }

            def methods(made):
                return _methods(made, _fields(made, values), frozen)

            params = {"repr": repr, "eq": eq, "unsafe_hash": unsafe_hash, "frozen": frozen}
            late = ["__init__", "__match_args__"]
            members = {"__slots__": tuple(name for name in own if name not in inherited)}
            members["__replace__"] = dataclasses.replace
            if repr:
                members["__repr__"] = _repr
            if eq:
                late += ["__eq__", "__hash__"]
            if frozen:
                members |= {"__setattr__": _refuse, "__delattr__": _refuse}
                late += ["__getstate__", "__setstate__"]
            members |= {name: _Late(methods) for name in late}
            for name in ("__dataclass_fields__", "__dataclass_params__"):
                members[name] = _Late(lambda _: _standard(cls, values, params))
            if eq and not (frozen or unsafe_hash):
                members["__hash__"] = None
            members |= given
            members["__doc__"] = cls.__doc__ or cls.__name__
            return type(cls)(cls.__name__, cls.__bases__, members)

        return make

    class _NamedTuples(type):
        """The metaclass of `NamedTuple` alone: the classes that it makes are plain ones below `tuple`."""

        def __new__(cls, name, bases, members):
            if "__annotations__" not in members:
                raise TypeError(f"{name}: without fields, or without postponed annotations")
            names = tuple(members["__annotations__"])
            members["_field_defaults"] = {name: members[name] for name in names if name in members}
            members |= {
                field: _tuplegetter(place, f"Alias for field number {place}")
                for place, field in enumerate(names)
            }
            members |= {"__slots__": (), "_fields": names, "__match_args__": names}
            members |= {"__new__": _Late(_with_new), "_make": _maker(len(names))}
            return type(name, (tuple,), _OF_TUPLES | members)

        def __call__(cls, name, fields):
            """The class, as the call of `typing.NamedTuple` makes it, in the module of the caller."""
            module = sys._getframe(1).f_globals["__name__"]
            return _NamedTuples(name, (), {"__annotations__": dict(fields), "__module__": module})

    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
    NamedTuple.__doc__ = "As `typing.NamedTuple`."


_OF_INSTANCES = ("__dict__", "__weakref__")  # what a class without slots adds


class _Late:
    """Takes the place of an attribute of a class until that is looked up.

    `complete` gives this attribute and others of the class, which take their places from then on.
    """

    def __init__(self, complete: Callable[[type], dict[str, Any]]) -> None:
        self._complete = complete

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> object:
        members = self._complete(self._owner)
        for name, member in members.items():
            if isinstance(vars(self._owner).get(name), _Late):  # else the class has its own
                type.__setattr__(self._owner, name, member)
        found = members[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def _standard(cls: type, values: dict[str, Any], params: dict[str, bool]) -> dict[str, Any]:
    """What the functions of the standard library know a dataclass by. `cls`: the class as it was written.

    `values`: what its fields were set to. `params`: the options of the dataclass.
    """
    written = {"__annotations__": cls.__annotations__, "__module__": cls.__module__, "__doc__": "-"}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(  # compiles nothing
        type(cls.__name__, (), written | values)  # without bases, which may be generic or frozen
    )
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= getattr(base, "__dataclass_fields__", {})
    fields |= made.__dataclass_fields__
    for name, on in {"init": True, "slots": True, **params}.items():
        if hasattr(made.__dataclass_params__, name):  # `slots` is told from Python 3.12 on
            setattr(made.__dataclass_params__, name, on)
    return {"__dataclass_fields__": fields, "__dataclass_params__": made.__dataclass_params__}


def _fields(made: type, values: dict[str, Any]) -> list[dataclasses.Field[object]]:
    """The fields of a dataclass, those of its bases first."""
    fields: dict[str, dataclasses.Field[object]] = {}
    for base in reversed(made.__mro__[1:]):
        if dataclasses.is_dataclass(base):
            fields |= {field.name: field for field in dataclasses.fields(base)}  # no ClassVar
    for name, kind in made.__annotations__.items():
        if "ClassVar" not in kind:
            value = values.get(name, dataclasses.MISSING)
            if not isinstance(value, dataclasses.Field):
                value = dataclasses.field(default=value)
            value.name, value.type = name, kind
            fields[name] = value
    return list(fields.values())


def _methods(made: type, fields: list[dataclasses.Field[object]], frozen: bool) -> dict[str, Any]:
    """What the fields of a dataclass decide."""
    return {
        "__match_args__": tuple(field.name for field in fields if field.init),
        "__init__": _init(made, fields, frozen),
        **_comparing([field.name for field in fields if field.compare]),
        **_travelling(made, [field.name for field in fields]),
    }


@recursive_repr()
def _repr(self: object) -> str:
    shown = [
        f"{field.name}={getattr(self, field.name)!r}"
        for field in dataclasses.fields(self)  # type: ignore[arg-type]
        if field.repr
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: object, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _comparing(names: list[str]) -> dict[str, object]:
    def few(self: object) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in names])

    values = attrgetter(*names) if len(names) > 1 else few  # the former is quicker

    def equal(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return {"__eq__": equal, "__hash__": lambda self: hash(values(self))}


def _travelling(made: type, names: list[str]) -> dict[str, object]:
    """The methods that `pickle` and `copy` need of a class whose attributes cannot be set."""
    setters = [getattr(made, name).__set__ for name in names]

    def state(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def restore(self: object, values: list[object]) -> None:
        for setter, value in zip(setters, values, strict=True):
            setter(self, value)

    return {"__getstate__": state, "__setstate__": restore}


def _init(made: type, fields: list[dataclasses.Field[object]], frozen: bool) -> object:
    """The function that sets the slots. In a frozen class it uses their descriptors, since `__setattr__` refuses."""
    missing = object()
    # with a module, the frame of the function counts as one of pageseek (tracebacks.py)
    known: dict[str, object] = {"_missing": missing, "__name__": made.__module__}
    taken, body = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        if field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}()"
            if field.init:
                taken.append(f"{name}=_missing")
                value += f" if {name} is _missing else {name}"
        elif field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            if field.init:
                taken.append(f"{name}=_default_{name}")
            else:
                value = f"_default_{name}"
        elif field.init:
            taken.append(name)
        else:
            continue
        if frozen:
            known[f"_set_{name}"] = getattr(made, name).__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    lines = "\n ".join(body or ["pass"])
    exec(f"def __init__({', '.join(taken)}):\n {lines}", known)
    init = known["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"  # type: ignore[attr-defined]
    init.__annotations__ = {field.name: field.type for field in fields if field.init}
    return init


def _with_new(made: Any) -> dict[str, Any]:
    """The `__new__` of a named tuple."""
    names = made._fields
    known = {f"_default_{name}": value for name, value in made._field_defaults.items()}
    taken = ["_class"] + [
        f"{name}=_default_{name}" if f"_default_{name}" in known else name for name in names
    ]
    known |= {"_tuple_new": _new_tuple, "__name__": f"namedtuple_{made.__name__}"}
    values = "".join(f"{name}, " for name in names)
    new = eval(f"lambda {', '.join(taken)}: _tuple_new(_class, ({values}))", known)
    new.__name__, new.__qualname__ = "__new__", f"{made.__qualname__}.__new__"
    new.__annotations__ = made.__annotations__
    return {"__new__": staticmethod(new)}


_new_tuple = tuple.__new__


def _maker(num_fields: int) -> Any:
    """The `_make` of a named tuple."""

    def _make(cls: Any, values: Any) -> Any:
        made = _new_tuple(cls, values)
        if len(made) != num_fields:
            raise TypeError(f"Expected {num_fields} arguments, got {len(made)}")
        return made

    return classmethod(_make)


def _replace(self: Any, /, **changes: Any) -> Any:
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return made


def _shown(self: Any) -> str:
    values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"{type(self).__name__}({values})"


def _as_dict(self: Any) -> dict[str, Any]:
    return dict(zip(self._fields, self, strict=True))


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(self)


_OF_TUPLES = {
    "__getnewargs__": _values,
    "__replace__": _replace,
    "__repr__": _shown,
    "_asdict": _as_dict,
    "_replace": _replace,
}
