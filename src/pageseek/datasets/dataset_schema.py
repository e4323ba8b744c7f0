"""The schema of all files of a dataset, and arrays of it from those of one file.

Columns are matched by name, at every level of structs. A column that a file lacks is null in its rows. A column of its
folders has one value in all rows. A column that is narrower than in other files is widened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass
from pageseek.datasets.table_fields import TableField
from pageseek.datasets.widening import holds, joined_fields, keyed, widened
from pageseek.format.null_arrays import nulls
from pageseek.predicate import expression as ex
from pageseek.predicate import pyarrow_filter as arrow
from pageseek.predicate.literal import Number

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DatasetSchema:
    """The columns that the files of a dataset are read as."""

    folders: pa.Schema = field(default_factory=lambda: pa.schema([]))  # columns of partitions
    given: pa.Schema | None = None  # all columns that there are; None: those of the files
    # columns of a filter whose meaning depends on their types in all files
    tested: pa.Schema | None = None
    fields: tuple[TableField, ...] = ()  # of a table whose files may call its columns otherwise
    # top-level columns that files may spell in another case
    spelling: tuple[str, ...] = ()
    # the types of those that have structs, whose fields may be spelled so, too
    spelled_types: tuple[tuple[str, pa.DataType], ...] = ()
    # by the name of a file the fields inside of columns whose values a partition has: path, field id
    inside: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict, compare=False)
    # columns with dots in their names that some file has, of those that a request may mean
    dotted: frozenset[str] = frozenset()
    # the columns are those of a table of Delta Lake or Iceberg: timestamps are local, or instants, as it says, whatever a file says
    of_table: bool = False
    # of Delta Lake: files may count nanoseconds, whatever unit the table has
    any_unit: bool = False
    # columns of Delta Lake that are variants, or have one in them
    variants: frozenset[str] = frozenset()
    # paths of fields of a table that are not read, and their types there
    unread: tuple[tuple[Path, str], ...] = ()

    def gives(self, path: Path) -> bool:
        """Whether the columns that were given have a path, as far as it leads through structs."""
        top = None if self.given is None else top_of(path, self.given.names)
        return top is not None and self.given is not None and has_path(self.given.field(top), path)

    def refuse_unread(self, path: Path, where: str, whole: bool = True) -> None:
        """UnsupportedError if a path leads to a field that is not read. `whole`: or is around one."""
        if not self.unread or self.given is None:
            return
        top, *asked = parts_of(path, self.given.names)
        for (column, *unread), kind in self.unread:
            if column != top:  # which another may begin with, up to a dot
                continue
            ours, theirs = ("".join([f"{name}." for name in names]) for names in (asked, unread))
            if ours.startswith(theirs) or (whole and theirs.startswith(ours)):
                name = ".".join((column, *unread))
                raise UnsupportedError(
                    f"{where}: column {name!r} is {kind} in the table, which is not supported: name other columns (columns=[...])"
                )


def has_path(given: pa.Field, path: Path) -> bool:
    """Whether a column has a field at a path, as far as that leads through structs."""
    kind, rest = given.type, path[1:]
    if not rest and path[0] != given.name:
        rest = tuple(path[0][len(given.name) + 1 :].split("."))
    for name in rest:
        if not pa.types.is_struct(kind):
            return True
        if kind.get_field_index(name) < 0:
            return False
        kind = kind.field(name).type
    return True


def top_of(path: Path, names: Iterable[str]) -> str | None:
    """The column that a path leads into, if there is one: that of its first name, or of that name up to a dot."""
    there = set(names)
    first = path[0]
    if first in there:
        return first
    if len(path) == 1:
        parts = first.split(".")
        for n in range(len(parts) - 1, 0, -1):
            top = ".".join(parts[:n])
            if top in there:
                return top
    return None


def parts_of(path: Path, names: Iterable[str]) -> Path:
    """A path as the name of the column that it leads into, and the names below; as it is if it leads into none."""
    top = top_of(path, names)
    if top is None or path[0] == top:
        return path
    return top, *path[0][len(top) + 1 :].split(".")


def names_with_dots(path: Path) -> set[str]:
    """The columns with dots in their names that a path may lead into, if it is one name; it may be that of a field as well."""
    parts = path[0].split(".") if len(path) == 1 else []
    return {".".join(parts[:n]) for n in range(2, len(parts) + 1)}


class Union:
    """The schema of all files, as they are opened one after the other."""

    def __init__(self, dataset_schema: DatasetSchema, names: tuple[str, ...] | None) -> None:
        self._dataset_schema, self._names = dataset_schema, names
        self._fields: list[pa.Field] | None = None
        self._seen: pa.Schema | None = None  # the last one that was joined
        self._metadata: dict[bytes, bytes] | None = None
        self.unknown: set[Path] | None = None  # paths that no file so far has had

    def add(self, schema: pa.Schema, absent: Collection[Path], name: str) -> None:
        """Add a file. `schema`: the columns that it has; `absent`: the paths that it lacks; `name`: its name, for errors.

        Raises
        ------
        UnsupportedError
            A column of it and of those before have no type in common.
        """
        if self.unknown is None:
            self.unknown = set(absent)
        elif self.unknown:
            self.unknown &= set(absent)
        if schema is self._seen or (self._seen is not None and schema.equals(self._seen)):
            return
        self._seen, theirs = schema, list(schema)
        if self._fields is None:
            self._fields, self._metadata = theirs, schema.metadata
        if self._dataset_schema.given is not None:
            for ours in theirs:
                given = self._dataset_schema.given.field(ours.name)
                if not holds(given.type, ours.type, self._dataset_schema.any_unit):
                    raise too_narrow(name, given, ours.type)
        elif theirs is not self._fields:
            joined = joined_fields(self._fields, theirs)
            if isinstance(joined, tuple):
                ours, other = joined
                raise UnsupportedError(
                    f"{name}: column {ours.name!r} is {other.type}, in the files before {ours.type}: no type holds "
                    "the values of both exactly; name the columns to read without it"
                )
            self._fields = joined

    def schema(self) -> pa.Schema:
        """The columns in the order of the names; without names those of partitions come last."""
        given = self._dataset_schema.given
        if given is not None:
            fields = [f.with_nullable(True) for f in given]
        else:
            fields = [*(self._fields or ()), *self._dataset_schema.folders]
        if self._names is not None:
            fields = _asked(fields, self._names, given is not None)
        return pa.schema(fields, self._metadata)


def _asked(fields: Sequence[pa.Field], names: Sequence[str], narrow: bool) -> list[pa.Field]:
    """The fields in the order in which they, or fields inside, are named first. `narrow`: only those inside that are named."""
    made: list[pa.Field] = []
    left = keyed(list(fields))
    for name in names:
        exact = next((key for key in left if key[0] == name), None)
        if exact is not None:
            made.append(left.pop(exact))
            continue
        again = next((f for f in made if f.name == name), None)
        top = top_of((name,), [key[0] for key in left])
        if again is not None and not pa.types.is_nested(again.type):
            made.append(again)
        elif top is not None:
            one = left.pop((top, 0))
            inside = [n[len(top) + 1 :] for n in names if n.startswith(f"{top}.")]
            made.append(_projected(one, inside) if narrow and top not in names else one)
    return made


def _projected(one: pa.Field, paths: Sequence[str]) -> pa.Field:
    """A field with only the fields at dotted paths in it."""
    if not pa.types.is_struct(one.type):
        return one
    kept = []
    for child in one.type:
        inside = [p[len(child.name) + 1 :] for p in paths if p.startswith(f"{child.name}.")]
        if child.name in paths:
            kept.append(child)
        elif inside:
            kept.append(_projected(child, inside))
    return one.with_type(pa.struct(kept))


def too_narrow(name: str, given: pa.Field, kind: pa.DataType) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: column {given.name!r} is {kind}, and {given.type}, which the schema gives it, does not hold "
        "all its values exactly; name the columns to read without it"
    )


class SchemaAdapter:
    """Makes the columns of a dataset from those of one of its files."""

    def __init__(
        self,
        target: Sequence[pa.Field],
        own: Sequence[pa.Field],
        values: dict[str, pa.Scalar],
        name: str,
        fields: Sequence[TableField] = (),
    ) -> None:
        self._target, self._name = target, name
        told = {field.name: field.children for field in fields if field.has_defaults_inside}
        self._inside = [told.get(field.name, ()) for field in target]
        there = {key: i for i, key in enumerate(keyed(list(own)))}
        keys = keyed(list(target))
        self._from = [there.get(key) if key[0] not in values else None for key in keys]
        self._constants = [values.get(key[0]) for key in keys]
        self.none = [f.type for f in own] == [f.type for f in target] and self._from == list(
            range(len(own))
        )

    def __call__(self, arrays: Sequence[Sequence[pa.Array]], n: int) -> list[list[pa.Array]]:
        """The columns of n rows."""
        if self.none:
            return [list(column) for column in arrays]
        made: list[list[pa.Array]] = []
        for field_, at, value, inside in zip(
            self._target, self._from, self._constants, self._inside, strict=True
        ):
            kind = field_.type
            if at is not None:
                try:
                    made.append([widened(array, kind, inside) for array in arrays[at]])
                except pa.ArrowException as error:
                    raise UnsupportedError(
                        f"{self._name}: column {field_.name!r}: a value does not fit {kind}, its type among all files: "
                        f"{error}; name the columns to read without it"
                    ) from error
            elif value is not None and value.is_valid:
                made.append([widened(pa.repeat(value, n), kind)])
            else:
                made.append([nulls(n, kind, f"{self._name}: column {field_.name!r}")])
        return made

    def chunked(self, columns: Sequence[pa.ChunkedArray], n: int) -> list[pa.ChunkedArray]:
        """As a call, with chunked arrays."""
        made = self([column.chunks for column in columns], n)
        return [pa.chunked_array(m, f.type) for m, f in zip(made, self._target, strict=True)]


def depends_on_types(condition: ex.Expression) -> bool:
    """Whether a filter may answer differently for a value in a wider type.

    pyarrow's arithmetic does, and so does a number of SQL that is no double and whose nearest double is an integer.
    """

    def depends(e: ex.Expression) -> bool:
        if isinstance(e, ex.IsIn) and isinstance(e.values, tuple):
            return any(map(_is_tricky, e.values))
        return isinstance(e, ex.ArrowFilter) or (isinstance(e, ex.Compare) and _is_tricky(e.value))

    return any(map(depends, ex.walk(condition)))


def _is_tricky(value: Any) -> bool:
    return isinstance(value, Number) and float(value).is_integer() and float(value) != value


def tested_paths(condition: ex.Expression) -> list[Path] | None:
    """The columns of a filter; None: it may test any."""
    found: dict[Path, None] = {}
    for e in ex.walk(condition):
        if isinstance(e, ex.ArrowFilter):
            paths = arrow.fields(arrow.read(e.expression))
            if not paths:
                return None
            found |= dict.fromkeys(paths)
        for name in ("column", "other"):
            column = getattr(e, name, None)
            if column is not None:
                found[column.path] = None
    return arrow.outermost(found)
