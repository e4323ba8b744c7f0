"""Dataclasses with slots that are made quickly, since most of them are made when pageseek is imported.

The standard library compiles up to seven functions for each frozen class, which takes the better part of a millisecond.
Here only `__init__` is compiled, when the first instance is made: few of the classes have one in a first lookup. All other
methods are closures that do the same.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen=False, slots=True, eq=True, repr=True, unsafe_hash=False):
        """As `dataclasses.dataclass`, with these options alone. There are always slots."""
        if not slots:
            raise TypeError("without slots: take dataclasses.dataclass")

        def make(cls):
            given = set(vars(cls))
            if not cls.__doc__:  # else its signature would be put together for it
                cls.__doc__ = cls.__name__
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
            fields = dataclasses.fields(made)
            methods = {"__init__": _LateInit(made, fields, frozen)}
            if repr:
                methods["__repr__"] = _repr
            if eq:
                methods |= _comparing([field.name for field in fields if field.compare])
                if not (frozen or unsafe_hash):
                    methods["__hash__"] = None
            if frozen:
                methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
                methods |= _travelling(made, [field.name for field in fields])
            for name, method in methods.items():
                if name not in given:
                    setattr(made, name, method)
            return made

        return make


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


class _LateInit:
    """Takes the place of `__init__` in a class until that is looked up."""

    def __init__(
        self, made: type, fields: tuple[dataclasses.Field[object], ...], frozen: bool
    ) -> None:
        self._given = made, fields, frozen

    def __get__(self, instance: object, owner: type) -> object:
        made = self._given[0]
        init: Any = _init(*self._given)
        if made.__dict__.get("__init__") is self:
            type.__setattr__(made, "__init__", init)
        return init.__get__(instance, owner)


def _init(made: type, fields: tuple[dataclasses.Field[object], ...], frozen: bool) -> object:
    """The function that sets the slots. In a frozen class it uses their descriptors, since `__setattr__` refuses."""
    missing = object()
    known: dict[str, object] = {"_missing": missing}
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
