"""What one file has of the columns of its dataset: for filters, and to be read.

Filters are bound to what the file has, and answer as they do for the columns of the dataset. Nothing is read for a column
that the file lacks, or that its folders have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import pyarrow as pa

from pageseek.base.errors import NoColumnError, UnsupportedError
from pageseek.base.suggest import Offer
from pageseek.datasets.dataset_schema import (
    DatasetSchema,
    Path,
    SchemaAdapter,
    has_path,
    parts_of,
    too_narrow,
    top_of,
)
from pageseek.datasets.field_ids import (
    Mapped,
    by_ids,
    columns_in_partitions,
    names_by_case,
    names_by_ids,
    nested,
)
from pageseek.datasets.folder_columns import Fill, FolderNames
from pageseek.datasets.nested_defaults import NestedDefaults
from pageseek.datasets.presence import Presence, in_dataset, needed, presence, without
from pageseek.datasets.spelling import (
    ByCase,
    FieldNames,
    ambiguous,
    own_path,
    respelled_node,
    undecided,
    undecided_fields,
)
from pageseek.datasets.told_types import Told, as_the_table_says, leaves_of
from pageseek.datasets.variants import is_shredded
from pageseek.datasets.widening import holds, widened
from pageseek.format.columns import Column, Names, output
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import Node
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    BYTE_ARRAY,
    FIXED,
    FLOAT_KINDS,
    LeafType,
    Options,
)
from pageseek.predicate.constant_column import NULL_LEAF_TYPE, ConstantColumn, constant_leaf_type
from pageseek.predicate.schema_names import WholeColumn
from pageseek.storage.hive import Partitions


class SchemaMapping:
    """What one file has of the columns of its dataset: names for filters, and columns to read.

    `absent`: paths that were looked up, and that the file lacks. Those that are `strict` are an error.
    """

    def __init__(
        self,
        file: FileMetadata,
        dataset_schema: DatasetSchema,
        options: Options,
        partitions: Partitions,
        strict: Collection[Path] = (),
    ) -> None:
        self.absent: dict[Path, None] = {}
        self._file, self._dataset_schema = file, dataset_schema
        self._options, self._strict = options, strict
        self._of_table = dataset_schema.of_table
        self._names = Names(file, options)
        self.defaults: dict[str, pa.Scalar] = {}  # of columns that the file lacks
        self._own, self._undecided = None, dict[str, list[str]]()
        spelled: dict[str, FieldNames] = {
            name: ByCase(kind) for name, kind in dataset_schema.spelled_types
        }
        if dataset_schema.fields:
            self._own = names_by_ids(file, dataset_schema)
            ids, said = by_ids(file, dataset_schema), dict(partitions)
            for field in dataset_schema.fields:
                lacks = not self._own[field.name] and field.name not in said
                if lacks and field.default is not None:
                    self.defaults[field.name] = field.default
            spelled = {field.name: Mapped(field, ids) for field in nested(dataset_schema.fields)}
        elif dataset_schema.spelling:
            self._own = names_by_case(file, dataset_schema.spelling)
            self._undecided = undecided(_names(file), dataset_schema.spelling)
        self._folders = FolderNames(dataset_schema, (*partitions, *self.defaults.items()))
        self._kinds = self._spelled_here(spelled)
        self._in_partitions = columns_in_partitions(file, dataset_schema)
        self._nested = NestedDefaults(dataset_schema.fields, self._has)

    # -- names of filters ------------------------------------------------------------------------

    def __call__(self, path: Path) -> tuple[Leaf, LeafType]:
        """The leaf that is tested for a path."""
        return self._find(path, self._names)

    def element(self, path: Path) -> tuple[Leaf, LeafType]:
        """The leaf of the elements at a path through lists."""
        return self._find(path, self._names.element)

    def _find(
        self, path: Path, look: Callable[[Path], tuple[Leaf, LeafType]]
    ) -> tuple[Leaf, LeafType]:
        self._dataset_schema.refuse_unread(path, self._file.name, whole=False)
        found = self._folders.of(path)
        if found is not None:
            return found
        given = self._given(path)
        try:
            leaf, leaf_type = look(self._own_path(path))
        except NoColumnError:
            if path in self._strict or (given is not None and not has_path(given, path)):
                raise
            if given is None:
                self.absent[path] = None
            self._refuse_default(path)
            return ConstantColumn(path, None), NULL_LEAF_TYPE
        if leaf_type.is_null:  # null in all rows, like a column that is missing
            return ConstantColumn(path, None), NULL_LEAF_TYPE
        if given is not None and leaf.flat and not leaf.group and given.type != leaf_type.type:
            pair = [(leaf.path, leaf_type.type, given.type)]
            options = as_the_table_says(self._options, pair) if self._of_table else None
            if options is not None:
                leaf_type = self._file.leaf_type(leaf, options)
            as_told = options is not None and options.is_told(leaf.path)
            if not as_told and not holds(given.type, leaf_type.type, self._dataset_schema.any_unit):
                raise too_narrow(self._file.name, given, leaf_type.type)
        elif self._of_table and given is not None and not leaf.flat:
            leaf_type = self._told_inside(leaf, leaf_type, given)
        return leaf, leaf_type

    def _told_inside(self, leaf: Leaf, leaf_type: LeafType, given: pa.Field) -> LeafType:
        """How a leaf of a nested column is decoded, as text, as bytes, as a UUID, or as timestamps of another kind."""
        is_time = pa.types.is_timestamp(leaf_type.type)
        if leaf.group or not (is_time or leaf.element.type in (BYTE_ARRAY, FIXED)):
            return leaf_type
        node = self._respelled(given.name, self._file.node(leaf.top, self._options))
        options = as_the_table_says(self._options, leaves_of(node, given.type))
        path = leaf.path
        if options is None or not (options.is_told(path) or options.timestamp_of(path)):
            return leaf_type
        inside = self._file.node(leaf.top, options).leaf_nodes()
        found = next(one.leaf_type for one in inside if one.first_leaf == leaf.index)
        assert found is not None
        return found

    def _respelled(self, name: str, node: Node) -> Node:
        """A nested field of the file, by the names of the table."""
        spelled = self._kinds.get(name)
        return node if spelled is None else respelled_node(node, spelled[1])

    def _refuse_default(self, path: Path) -> None:
        if self._nested.may_have(path):
            raise UnsupportedError(
                f"{self._file.name}: {'.'.join(path)!r} is not in the file and has a default, which no such condition takes inside "
                "of a struct: filter the rows that are read, or rewrite the file (rewrite_data_files)"
            )

    def has_default_inside(self, path: Path) -> bool:
        """Whether the file lacks a field inside of a column that may have another value than null nevertheless."""
        inside = any(field.has_defaults_inside for field in self._dataset_schema.fields)
        return inside and self._nested.may_have(path) and not self._has(path)

    def _has(self, path: Path) -> bool:
        try:
            self._names(self._own_path(path))
        except NoColumnError:
            return False
        return True

    def in_struct(self, path: Path) -> tuple[Leaf, LeafType] | None:
        """A field that this file lacks, with its default; None where the file has it, or null for it."""
        if not self._dataset_schema.fields or (found := self._nested.of(path)) is None:
            return None
        struct, default = found
        leaf_type = constant_leaf_type(default.type)
        if leaf_type is None:
            return None
        values = widened(pa.array([default.as_py()], default.type), leaf_type.storage)
        around = self._names(self._own_path(struct))
        return ConstantColumn((*struct, path[-1]), values, around), leaf_type

    def default_in_list(self, path: Path) -> WholeColumn | None:
        """A field inside of lists that this file lacks, and that may have another value than null; None for others."""
        if not any(field.has_defaults_inside for field in self._dataset_schema.fields):
            return None
        names = self._nested.in_list(path)
        if names is None:
            return None
        try:
            self._names.element(self._own_path(path))
        except NoColumnError:
            pass
        else:
            return None
        target = self._dataset_schema.tested
        assert target is not None
        field = target.field(names[0])
        leaf_type = constant_leaf_type(_element_type(field.type, names[1:]))
        if leaf_type is None:
            return None
        columns, leaves, own = self.whole([(names[0],)])
        told = self._dataset_schema.fields
        fill = SchemaAdapter([field], list(own), self._folders.values, self._file.name, told)
        return WholeColumn(
            columns, leaves, lambda a, n: fill.chunked(a, n)[0], names[1:], leaf_type
        )

    def _given(self, path: Path) -> pa.Field | None:
        """The column that a path leads into, among those that were given; NoColumnError where it is none of them."""
        given = self._dataset_schema.given
        if given is None:
            return None
        top = top_of(path, given.names)
        if top is None:
            wanted = ".".join(path)
            raise NoColumnError(
                f"no column {wanted!r} in the schema", Offer(wanted, lambda: given.names)
            )
        if top in self._dataset_schema.variants:
            self._refuse_shredded(given.field(top), path)
        return given.field(top)

    def _refuse_shredded(self, given: pa.Field, path: Path) -> None:
        """Refuse variants whose values this file has in further columns."""
        own = given.name if self._own is None else self._own.get(given.name)
        if own is None or own not in _names(self._file):
            return
        top = self._file.schema_tree.field_index(own)
        node = self._respelled(given.name, self._file.node(top, self._options))
        if is_shredded(node, given.type, parts_of(path, [given.name])[1:]):
            raise UnsupportedError(
                f"{self._where(given.name)}: its variants are shredded (typed_value), and nothing here puts them together: name the "
                "columns to read without it"
            )

    def _spelled_here(self, spelled: dict[str, FieldNames]) -> dict[str, tuple[Node, FieldNames]]:
        """The columns in which this file calls fields of structs in another way, by their names in the dataset."""
        if not spelled:
            return {}
        file, tree, found = self._file, self._file.schema_tree, {}
        counts = Counter(_names(file))
        for name, inside in spelled.items():
            own = name if self._own is None else self._own.get(name)
            if own is None or counts[own] != 1:
                continue
            index = tree.field_index(own)
            if tree.flat_leaf(index) is not None:
                continue
            node = file.node(index, self._options)
            if any(undecided_fields(node, inside)) or respelled_node(node, inside) is not node:
                found[name] = node, inside
        return found

    def _where(self, name: str) -> str:
        """What errors call a column of the dataset."""
        return f"{self._file.name}: column {name!r}"

    def _own_path(self, path: Path) -> Path:
        """A path as this file spells it."""
        top = top_of(path, self._tops) if self._kinds else None
        if top in self._kinds:
            node, spelled = self._kinds[top]
            if path[0] == top:
                path = (top, *own_path(node, spelled, path[1:], self._where(top)))
            else:
                inside = path[0][len(top) + 1 :].split(".")
                own = own_path(node, spelled, inside, self._where(top))
                path = (".".join((top, *own)), *path[1:])
        return self._own_top(path)

    def _own_top(self, path: Path) -> Path:
        """A path whose first name is as this file spells it."""
        if self._undecided and (top := top_of(path, self._undecided)) is not None:
            raise ambiguous(self._where(top), self._undecided[top])
        if self._own is None:
            if len(path) == 1 and "." in path[0] and self._lacks_dotted(path[0]):
                raise self._no_column(path[0])
            return path
        top = top_of(path, self._own)
        if top in self._in_partitions:
            raise UnsupportedError(
                f"{self._file.name}: the values of {self._in_partitions[top]!r} are not in the file but in the partitions of "
                "the table, which is not supported inside of a struct: read other columns, or rewrite the file "
                "(rewrite_data_files)"
            )
        own = None if top is None else self._own[top]
        if top is None or own is None:
            raise self._no_column(".".join(path))
        if path[0] == top:
            return (own, *path[1:])
        return (own + path[0][len(top) :], *path[1:])

    @cached_property
    def _tops(self) -> set[str]:
        """The names of columns: one of a name with dots comes before a field of a struct."""
        return {*(_names(self._file) if self._own is None else self._own), *self._kinds}

    def _lacks_dotted(self, name: str) -> bool:
        """Whether a name leads into a column of the dataset with dots in its own name that the file lacks; the file may have a
        field of that path.
        """
        given = self._dataset_schema.given
        names = self._dataset_schema.dotted if given is None else given.names
        top = top_of((name,), names)
        return top is not None and "." in top and top not in self._tops

    def target(self, path: Path) -> LeafType | None:
        """How values of a column are compared once they have the type of all files."""
        kind = None if any("." in name for name in path) else _type_at(self._dataset_schema, path)
        if kind is not None:
            return constant_leaf_type(kind)
        leaf, leaf_type = self(path)
        return None if leaf.group or isinstance(leaf, ConstantColumn) else leaf_type

    def as_float(self, path: Path) -> bool:
        """Whether a column of integers in this file is one of floats in all files."""
        kind = _type_at(self._dataset_schema, path)
        if kind is None or not pa.types.is_floating(kind):
            return False
        return self(path)[1].kind not in FLOAT_KINDS

    def whole(
        self, paths: list[Path] | None
    ) -> tuple[tuple[Column, ...], list[tuple[Leaf, LeafType]], pa.Schema]:
        """Whole columns, their leaves, and their schema."""
        names = None
        if paths is not None:
            inside = [path for path in paths if not self._folders.has(path)]
            wanted = dict.fromkeys(map(self._column, inside))
            names = tuple([name for name in wanted if not self._is_part(name, wanted)])
        columns, schema = self.output(names)
        return columns, [(p.leaf, p.leaf_type) for c in columns for p in c.parts], schema

    def _is_part(self, name: str, others: Collection[str]) -> bool:
        """Whether a dotted name leads into another column that is read whole."""
        parts = name.split(".")
        if not any(".".join(parts[:n]) in others for n in range(1, len(parts))):
            return False
        try:
            self._file.schema_tree.field_index(name)
        except NoColumnError:
            return True
        return False  # a column is called so

    def _column(self, path: Path) -> str:
        """A path as a dotted name, where that means the same; else the field that it begins with."""
        if (
            self._dataset_schema.given is not None
            or any("." in part for part in path)
            or len(path) == 1
        ):
            return path[0]
        try:
            own = self._own_path(path)
        except NoColumnError:
            return path[0]
        index = self._file.schema_tree.path_index(".".join(own))
        return path[0] if index is None else ".".join(path)

    def complete(
        self, paths: list[Path] | None
    ) -> tuple[tuple[Column, ...], list[tuple[Leaf, LeafType]], pa.Schema, Fill]:
        """As `whole`, with the schema of all files, and a function that makes columns of it from those of this file."""
        columns, leaves, own = self.whole(paths)
        target = self._dataset_schema.tested
        assert target is not None
        told = self._dataset_schema.fields
        fill = SchemaAdapter(list(target), list(own), self._folders.values, self._file.name, told)
        return columns, leaves, target, fill.chunked

    def check_dictionaries(self) -> None:
        """Refuse dictionary columns of another kind than text or binary, as far as this file has them."""
        tree, options = self._file.schema_tree, self._options
        for name in options.dictionary_columns:
            if not self._folders.has((name,)):
                try:
                    tree.check(options._replace(dictionary_columns=(name,)))
                except NoColumnError:
                    self._lacks(name)

    # -- columns to read ---------------------------------------------------------------------------

    def output(self, names: tuple[str, ...] | None) -> tuple[tuple[Column, ...], pa.Schema]:
        """The columns of these names (None: all) that are in this file, and their schema by the names of the dataset."""
        dataset_schema, file, options = self._dataset_schema, self._file, self._options
        if names is None and dataset_schema.given is None:
            return self._but_folders(*self._renamed(*output(file, None, options), strict=False))
        if names is None:
            assert dataset_schema.given is not None
            names = tuple(dict.fromkeys(dataset_schema.given.names))
        for name in names:  # also of those that partitions have
            dataset_schema.refuse_unread((name,), file.name)
        asked = [name for name in names if not self._folders.has((name,))]
        own: list[tuple[str, str]] = []  # names in the file, and in the request
        for name in asked:
            self._given((name,))
            try:
                own.append((".".join(self._own_path((name,))), name))
            except NoColumnError:
                self._lacks(name)
        try:
            there = tuple([name for name, _ in own])
            columns, schema = output(file, there, options)
            other = self._as_the_table_says(columns, schema) if self._of_table else None
            if other is not None:
                columns, schema = output(file, there, other)
            read: list[Presence] = []
        except NoColumnError:
            columns, schema, read = self._those_there(own)
        return self._renamed(columns, schema, read)

    def _as_the_table_says(self, columns: Sequence[Column], schema: pa.Schema) -> Options | None:
        """Options for columns whose bytes are text in the table, or the other way round. `columns`, `schema`: as in the file."""
        given = self._dataset_schema.given
        assert given is not None
        types, leaves = given.types, list[Told]()
        for column, field in zip(columns, schema, strict=True):
            name = self._dataset_name(field.name)
            at = given.get_field_index(name)
            if at < 0 or field.type == types[at]:
                continue
            if column.node is None:
                leaves.append((column.leaf.path, field.type, types[at]))
            else:
                leaves += leaves_of(self._respelled(name, column.node), types[at])
        return as_the_table_says(self._options, leaves)

    def _renamed(
        self,
        columns: tuple[Column, ...],
        schema: pa.Schema,
        read: Sequence[Presence] = (),
        strict: bool = True,
    ) -> tuple[tuple[Column, ...], pa.Schema]:
        """Columns and their schema by the names of the dataset. `read`: what is read in place of fields, and is not in the schema.
        `strict`: whether a field that may be one of several is an error; else they keep their names.
        """
        if self._own is None and not self._kinds and not read:
            return columns, schema
        made, fields = [], []
        for column, field in zip(columns, schema, strict=True):
            name = self._dataset_name(field.name)
            spelled, inside = self._kinds.get(name), [one for one in read if one.struct[0] == field.name]  # fmt: skip
            if spelled is not None and column.node is not None:
                for inner, several in undecided_fields(column.node, spelled[1]) if strict else ():
                    raise ambiguous(f"{self._where(name)}, field {inner!r}", several)
                node = respelled_node(column.node, spelled[1])
                inside = [in_dataset(one, column.node, node) for one in inside]
                column, field = Column(column.name, column.parts, node), node.field
            for one in inside:
                field = field.with_type(without(field.type, one))
            made.append(column)
            fields.append(field.with_name(name))
        return tuple(made), pa.schema(fields, schema.metadata)

    def _lacks(self, name: str, error: NoColumnError | None = None) -> None:
        strict = (name,) in self._strict
        given = None if strict else self._given((name,))
        if strict or (given is not None and not has_path(given, (name,))):
            raise error or self._no_column(name)
        if given is None:
            self.absent[name,] = None

    def _no_column(self, name: str) -> NoColumnError:
        offer = self._file.schema_tree.offer(name)
        return NoColumnError(f"{self._file.name}: no column {name!r}", offer)

    def _but_folders(
        self, columns: tuple[Column, ...], schema: pa.Schema
    ) -> tuple[tuple[Column, ...], pa.Schema]:
        """The columns without those of partitions, which take the place of columns of the file."""
        folders = self._folders.values
        if not any(name in folders for name in schema.names):
            return columns, schema
        kept = [i for i, name in enumerate(schema.names) if name not in folders]
        fields = [schema.field(i) for i in kept]
        return tuple([columns[i] for i in kept]), pa.schema(fields, schema.metadata)

    def _those_there(
        self, own: Sequence[tuple[str, str]]
    ) -> tuple[tuple[Column, ...], pa.Schema, list[Presence]]:
        """The columns of those names that the file has, and their schema.

        Where a field has nothing at a path, as much of it is read as tells the nulls of the structs on the path. This comes last.
        """
        file, options, tree = self._file, self._options, self._file.schema_tree
        there: list[str] = []
        found: list[Presence] = []
        for name, asked in own:
            try:
                output(file, (name,), options)
            except NoColumnError as error:
                self._lacks(asked, error)
                index = tree.path_index(name)
                if index is not None:
                    root = file.node(index, options)
                    found.append(presence(root, name[len(root.name) + 1 :].split(".")))
                continue
            there.append(name)
        read = needed(found, [self._parts(name) for name in there])
        if self._of_table:
            options = self._as_the_table_says(*output(file, tuple(there), options)) or options
        extra = [".".join(one.read) for one in read]
        return *output(file, (*there, *extra), options), read

    @cached_property
    def _dataset_names(self) -> dict[str | None, str]:
        """Names of this file -> names of the dataset, where they may differ."""
        return {} if self._own is None else {own: name for name, own in self._own.items()}

    def _dataset_name(self, own: str) -> str:
        """What the dataset calls a column of this file."""
        return self._dataset_names.get(own) or own

    def _parts(self, name: str) -> Path:
        """A dotted name as the names on the path in this file."""
        index = self._file.schema_tree.path_index(name)
        if index is None:
            return (name,)
        top = self._file.schema_tree.field(index).name
        return (top, *name[len(top) + 1 :].split("."))


def _names(file: FileMetadata) -> list[str]:
    """The names of the columns of a file."""
    tree = file.schema_tree
    return [tree.field(i).name for i in range(tree.num_fields)]


def _element_type(kind: pa.DataType, path: Path) -> pa.DataType:
    """The type at a path from a type on, through structs, lists and maps. A path may leave out `element`."""
    t = pa.types
    if not path:
        return kind
    if t.is_struct(kind):
        return _element_type(kind.field(kind.get_field_index(path[0])).type, path[1:])
    if t.is_map(kind):
        return _element_type(kind.key_type if path[0] == "key" else kind.item_type, path[1:])
    return _element_type(kind.value_type, path[1:] if path[0] == "element" else path)


def _type_at(dataset_schema: DatasetSchema, path: Path) -> pa.DataType | None:
    """The type of a path through structs among all files, where it is known."""
    for schema in (dataset_schema.tested, dataset_schema.given, dataset_schema.folders):
        if schema is None or path[0] not in schema.names:
            continue
        kind = schema.field(path[0]).type
        for name in path[1:]:
            if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                return None
            kind = kind.field(name).type
        return kind
    return None
