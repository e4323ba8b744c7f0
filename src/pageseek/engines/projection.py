"""The columns that an engine asks for: names, or new names with expressions of pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import NoColumnError, PredicateError, UnsupportedError
from pageseek.base.records import dataclass
from pageseek.base.suggest import Offer
from pageseek.predicate import pyarrow_filter as arrow

SPECIAL = ("__filename", "__fragment_index", "__batch_index", "__last_in_fragment")  # of pyarrow


@dataclass(frozen=True, slots=True)
class Projection:
    """Columns made of those that are read.

    `read`: the names for `Scan.select`; None: all columns. `names`, `expressions`: of the result; no expressions: it is what
    was read.
    """

    read: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
    expressions: tuple[Any, ...] = ()

    def schema(self, read: pa.Schema) -> pa.Schema:
        """The schema of the result, by that of the columns read."""
        return self(read.empty_table()).schema if self.expressions else read

    def __call__(self, table: pa.Table) -> pa.Table:
        """The result for rows that were read, in their order."""
        if not self.expressions:
            return table
        from pyarrow import acero  # late: few need it

        try:
            source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
            node = acero.ProjectNodeOptions(list(self.expressions), list(self.names))
            return acero.Declaration("project", node, [source]).to_table(use_threads=False)
        except (pa.ArrowException, ValueError, TypeError, LookupError) as error:
            shown = ", ".join(
                f"{name!r}: {expression}"
                for name, expression in zip(self.names, self.expressions, strict=True)
            )
            raise PredicateError(f"columns {{{shown}}}: pyarrow: {error}") from error


def projection_of(columns: Any, schema: pa.Schema) -> Projection:
    """What is read, and what is computed from it, for the columns that a scanner of pyarrow takes.

    Parameters
    ----------
    columns : list of str, dict, or None
        Names of columns, or paths of fields of structs with dots, which are called as the field is. Or new names with expressions.
        None: all columns.
    schema : pyarrow.Schema
        The columns that there are.

    Raises
    ------
    NoColumnError
        A column does not exist.
    UnsupportedError
        A column of pyarrow's own, such as `__filename`, is asked for.
    """
    if columns is None:
        return Projection()
    if isinstance(columns, Mapping):
        return _computed(list(columns), list(columns.values()), schema)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(
            f"columns={columns!r}: a list of names such as ['id'], or a dict of expressions"
        )
    there = set(schema.names)
    if all(isinstance(name, str) and name in there for name in columns):
        return Projection(tuple(columns))
    paths = [_path(name, schema) for name in columns]
    return _computed([path[-1] for path in paths], [pc.field(*path) for path in paths], schema)


def _computed(names: list[Any], expressions: list[Any], schema: pa.Schema) -> Projection:
    for name, expression in zip(names, expressions, strict=True):
        if not isinstance(name, str) or not isinstance(expression, pc.Expression):
            raise TypeError(
                f"columns={{{name!r}: {expression!r}}}: names with expressions of pyarrow.compute, such as "
                "{'key': pyarrow.compute.field('id')}"
            )
    if not names:
        return Projection(())
    read: dict[str, None] = {}
    for expression in expressions:
        paths = arrow.fields(arrow.read(expression))
        if paths is None:  # an expression of unknown form may need any column
            return Projection(None, tuple(names), tuple(expressions))
        for path in paths:
            _exists(path, schema)
            read[_readable(path, schema)] = None
    # of a struct that is read whole no field need be named
    whole = [name for name in read if name in schema.names]
    kept = [name for name in read if name in whole or name.partition(".")[0] not in whole]
    if not kept and len(schema):  # an expression without columns has a value for each row, too
        kept = schema.names[:1]
    return Projection(tuple(kept), tuple(names), tuple(expressions))


def _readable(path: tuple[str, ...], schema: pa.Schema) -> str:
    """The name by which a scan reads a path: of one with dots, or that is called as another column is, all of the column."""
    others = (".".join(path[:n]) for n in range(2, len(path) + 1))
    if any("." in name for name in path) or any(name in schema.names for name in others):
        return path[0]
    return ".".join(path)


def _path(name: Any, schema: pa.Schema) -> tuple[str, ...]:
    """A name as a path: that of a top-level column if there is one, else split at its dots."""
    if not isinstance(name, str):
        raise TypeError(f"columns={name!r}: a name is a str")
    path = (name,) if name in schema.names else tuple(name.split("."))
    _exists(path, schema)
    return path


def _exists(path: tuple[str, ...], schema: pa.Schema) -> None:
    if path[0] in SPECIAL:
        raise UnsupportedError(
            f"column {path[0]!r} is of pyarrow's own scanner alone; get_fragments() gives the files one by one, with their paths"
        )
    names, found = schema.names, pa.struct(list(schema))
    for i, name in enumerate(path):
        at = found.get_field_index(name) if pa.types.is_struct(found) else -1
        if at < 0 and names.count(name) > 1:
            raise PredicateError(
                f"{names.count(name)} columns have the name {name!r}: none can be named alone"
            )
        if at < 0:
            inside = f" in {'.'.join(path[:i])!r}" if i else ""
            raise NoColumnError(f"no column {name!r}{inside}", Offer(name, list(names).copy))
        found = found.field(at).type
        names = [one.name for one in found] if pa.types.is_struct(found) else []
