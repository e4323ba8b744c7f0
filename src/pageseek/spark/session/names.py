"""The columns of a source in a Spark session: their types, and names whose case may not matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from pageseek.base.errors import PageseekError, PredicateError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.datasets.evolution import SchemaMapping
from pageseek.datasets.file_cache import cache
from pageseek.format.columns import Names
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import INT96, LeafType
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.session.one_spelling import names_of_first, unified_scan
from pageseek.spark.session.settings import Settings
from pageseek.storage import Source

Path = tuple[str, ...]


class Kind(NamedTuple):
    """The column of a condition: how its values are compared, and the leaf of the first file that has the column.

    `has_nanos`: it is of times, and some file may have nanoseconds, of which Spark makes microseconds.
    """

    leaf_type: LeafType
    leaf: Leaf
    has_nanos: bool = False

    @property
    def is_int96(self) -> bool:
        """Whether it is INT96 in the first file that has it."""
        return self.leaf.element.type == INT96

    @property
    def is_instant(self) -> bool:
        """Whether it is a TIMESTAMP of Spark, not a TIMESTAMP_NTZ."""
        made = self.leaf_type.storage
        return bool(pa.types.is_timestamp(made) and made.tz is not None)


class Columns:
    """Names and types of the columns of a scan. Files are opened only as far as they are needed for that."""

    def __init__(self, scan: Scan, settings: Settings, known: pa.Schema | None = None) -> None:
        """`scan`: a scan of all columns and all rows. `known`: the types of columns over all files, as far as they are known."""
        self.scan, self._settings, self._known = scan, settings, known
        self.request = scan._request
        self._paths: dict[tuple[Path, bool], Path] = {}

    @property
    def are_respelled(self) -> bool:
        """Whether the scan gives names in another case than files, and the session now takes them for others."""
        schema = self.request.dataset_schema
        return bool(schema is not None and schema.spelling) and self._settings.case_sensitive

    # -- types ------------------------------------------------------------------------------------

    def files(self) -> Iterator[tuple[Source, FileMetadata]]:
        """The files of the source, each opened as it is reached."""
        for source in self.scan.sources:
            yield source, self.open(source)

    def open(self, source: Source) -> FileMetadata:
        """A file. The cache keeps its footer for the plan."""
        return cache.open(source, Report(), self.request.limits.max_metadata_bytes)

    def names_of(self, file: FileMetadata, source: Source) -> Names | SchemaMapping:
        """The columns that the names of a filter stand for in one file."""
        dataset_schema, options = self.request.dataset_schema, self.request.options
        if dataset_schema is None:
            return Names(file, options)
        return SchemaMapping(file, dataset_schema, options, source.partitions)

    def kind(self, path: Path, element: bool = False) -> Kind | None:
        """The column at a path; None if no file has one that can be compared. `element`: the path goes through lists."""
        for source, file in self.files():
            names = self.names_of(file, source)
            try:
                leaf, leaf_type = names.element(path) if element else names(path)
            except PageseekError:  # the plan raises it, with the place in the text
                continue
            if (
                leaf.group
                or (isinstance(leaf, ConstantColumn) and leaf.values is None)
                or leaf_type.is_null
            ):
                continue
            return Kind(leaf_type, leaf, self._has_nanos(path, leaf_type.storage))
        return None

    def _has_nanos(self, path: Path, first: pa.DataType) -> bool:
        """Whether some file may have nanoseconds at a path. `first`: its type in the first file that has it."""
        if not pa.types.is_timestamp(first):
            return False
        if first.unit == "ns":
            return True
        if self._known is None or path[0] not in self._known.names:
            return _is_nanos(self.scan.select(path[0]).schema)
        return _is_nanos(self._known.field(path[0]).type)

    # -- names ------------------------------------------------------------------------------------

    def resolved(self, path: Path, exact: bool = False) -> Path:
        """A path as the files spell it; the path itself if they have no such column.

        A single name may be a path with dots, unless it is `exact`.

        Raises
        ------
        PredicateError
            Case does not matter to the session, and several columns fit.
        """
        if not path or (self._settings.case_sensitive and not exact):
            return path
        key = path, exact
        if key not in self._paths:
            found = None if self._given else self._found(path, exact, False)
            found = found or self._found(path, exact, True)
            if exact and not found and len(path) == 1 and "." in path[0]:
                raise PredicateError(
                    f"no column {path[0]!r}: without backticks it would be {' of '.join(reversed(path[0].split('.')))}"
                )
            self._paths[key] = found or path
        return self._paths[key]

    def output(self, name: str) -> str:
        """A name of `columns` as the files spell it: a top-level column, or a dotted path."""
        return ".".join(self.resolved((name,)))

    def of_schema(self, name: str) -> str:
        """A name of a given schema as the files spell it: as `output`, but a column of just this name comes first."""
        return name if name in self._shown(self._first) else self.output(name)

    def is_column(self, name: str) -> bool:
        """Whether a name as the files spell it is that of a top-level column, dots included."""
        return name in self._first or name in self._everything.names

    def _found(self, path: Path, exact: bool, everywhere: bool) -> Path | None:
        """The only path that fits, among the columns of the first file, or `everywhere`; None if there is none."""
        every = self._everything.names if everywhere and not self._given else self._first
        tops = self._shown(every)
        ways = [path]
        if len(path) == 1 and not exact:
            parts = path[0].split(".")
            ways += [(".".join(parts[:n]), *parts[n:]) for n in range(len(parts) - 1, 0, -1)]
        for way in ways:
            fits = [top for top in tops if self._same(top, way[0])]
            if not fits:
                continue
            if len(fits) > 1:
                self._refuse(way, fits)
            if len(way) == 1:
                return (fits[0],)
            made, is_there = self._inside(self._type(fits[0], everywhere), (fits[0],), way[1:])
            if not is_there and not everywhere:  # later files may have it
                return None
            return made if exact or len(path) > 1 else (".".join(made),)
        return None

    def _shown(self, tops: Sequence[str]) -> list[str]:
        """Top-level columns without those that a column of folders stands for."""
        schema = self.request.dataset_schema
        folders = [] if schema is None else schema.folders.names
        if not folders:
            return list(tops)
        hidden = set(map(self._settings.folded, folders))
        return [n for n in tops if n in folders or self._settings.folded(n) not in hidden]

    def _same(self, one: str, other: str) -> bool:
        return one == other or self._settings.folded(one) == self._settings.folded(other)

    def _inside(self, kind: pa.DataType | None, above: Path, rest: Path) -> tuple[Path, bool]:
        """The path with the names below the top as the fields of structs spell them, as far as there are structs; and whether
        these have the fields.
        """
        t = pa.types
        if not rest or kind is None:
            return above + rest, True
        while t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
            kind = kind.value_type
        if not t.is_struct(kind):
            return above + rest, True
        names = [field.name for field in kind]
        fits = [i for i, name in enumerate(names) if self._same(name, rest[0])]
        if len(fits) > 1:
            self._refuse((*above, rest[0]), [".".join((*above, names[i])) for i in fits])
        if not fits:
            return above + rest, False
        field = kind.field(fits[0])
        return self._inside(field.type, (*above, field.name), rest[1:])

    def _refuse(self, path: Path, fits: Sequence[str]) -> None:
        raise PredicateError(
            f"{'.'.join(path)!r} is ambiguous: {', '.join(map(repr, fits))}; the session has "
            "spark.sql.caseSensitive=false; set it to true, and write the name as the file does"
        )

    @cached_property
    def _first(self) -> list[str]:
        """The names of the first file and of folders, or of the schema that was given."""
        dataset_schema, given = self.request.dataset_schema, self._given
        tops: list[str] = []
        if given is not None:
            tops = given.names
        elif self.scan.sources:
            tops = names_of_first(self.scan)
        folders = [] if dataset_schema is None else dataset_schema.folders.names
        return list(dict.fromkeys([*tops, *folders]))

    def _type(self, top: str, everywhere: bool) -> pa.DataType | None:
        """The type of a top-level column."""
        given, schema = self._given, self.request.dataset_schema
        if given is not None:
            return given.field(top).type if top in given.names else None
        if everywhere:
            return self._everything.field(top).type
        source, options = self.scan.sources[0], self.request.options
        file = self.open(source)
        try:
            if schema is None or not schema.spelling:
                return file.node(file.schema_tree.field_index(top), options).field.type
            found = SchemaMapping(file, schema, options, source.partitions).output((top,))[1]
        except PageseekError:  # a column of folders, or two of this name
            return None
        return found.field(0).type if found.names == [top] else None

    @property
    def _given(self) -> pa.Schema | None:
        """The schema of the scan, where it has one that is not of its files."""
        schema = self.request.dataset_schema
        return None if schema is None else schema.given

    @cached_property
    def _everything(self) -> pa.Schema:
        """The columns of all files, which are opened for it."""
        schema = self.scan.schema
        made = unified_scan(self.scan, schema)
        if made is self.scan:
            return schema
        self.scan, self.request = made, made._request
        return made.schema

    def respelled(self, scan: Scan) -> Scan:
        """A scan of the same source with the names as they are spelled here, now that some were looked for in all files."""
        mine, schema = self.request.dataset_schema, scan._request.dataset_schema
        if mine is None or schema is None or mine.spelling is schema.spelling:
            return scan
        schema = replace(schema, spelling=mine.spelling, spelled_types=mine.spelled_types)
        return replace(scan, _request=replace(scan._request, dataset_schema=schema))


def _is_nanos(kind: pa.DataType | pa.Schema) -> bool:
    """Whether there are times of nanoseconds in a type, at any depth. A type over all files has the finest unit of these."""
    t = pa.types
    if isinstance(kind, pa.Schema) or t.is_struct(kind) or t.is_union(kind):
        return any(_is_nanos(field.type) for field in kind)
    if t.is_map(kind):
        return _is_nanos(kind.key_type) or _is_nanos(kind.item_type)
    if t.is_nested(kind):
        return _is_nanos(kind.value_type)
    return bool(t.is_timestamp(kind) and kind.unit == "ns")
