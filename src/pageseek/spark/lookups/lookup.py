"""`lookup`: the rows of files that have given keys."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pageseek.base.errors import PredicateError, UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.confirmed import asked_once
from pageseek.spark.columns.plan_schema import empty_frame
from pageseek.spark.columns.types import OF_SPARK, spark_schema, wire_field, wire_type
from pageseek.spark.lookups.listed_keys import Wanted, is_number, misfit, table_of
from pageseek.spark.lookups.lookup_files import Files
from pageseek.spark.lookups.lookup_keys import cast_exactly, spelled_values, without_nulls
from pageseek.spark.lookups.lookup_ranges import key_ranges, partition_ids
from pageseek.spark.lookups.lookup_task import Probe, pack, pack_keys
from pageseek.spark.session.settings import Settings, check_session
from pageseek.spark.tasks.described import described
from pageseek.spark.tasks.expected import expected_rows
from pageseek.spark.tasks.metrics import Run
from pageseek.spark.tasks.shipping import Task, shipped
from pageseek.spark.tasks.sizing import calendars_of, parallelism_of, range_of, task_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType

    from pageseek.scanning.plans.scan_plan import ScanPlan

How = Literal["inner", "left", "semi"]
BROADCAST_LIMIT = 1_000_000
BROADCAST_BYTES = 64 << 20  # of keys: over Connect a message has at most 128 MB
_MOST_LIMIT = (1 << 31) - 2  # of Spark's limit, which is an int
_NO_KEYS = ("NullType", "TimeType", "DayTimeIntervalType")
_KEY_TYPES = {name: kind for name, kind in OF_SPARK.items() if name not in _NO_KEYS}


@short_traceback
@asked_once()
def lookup(
    spark: SparkSession,
    source: Any,
    keys: Any,
    on: str | Sequence[str] | Mapping[str, str],
    columns: Sequence[str] | None = None,
    how: How = "inner",
    *,
    filter: Any = None,
    broadcast_limit: int = BROADCAST_LIMIT,
    tasks: int | None = None,
    python_path: str | None = None,
    **options: Any,
) -> DataFrame:
    """The rows of files that have given keys, as a join of Spark gives them, read with all that rules out row groups and pages.

    Few keys are collected, and sent to all tasks: the driver plans with them. More keys are shuffled: each task gets some row
    groups and the keys in their range, and plans by itself. Of the keys only the columns of `on` go to the tasks. Where there
    are others, or with "left", Spark joins the keys with the rows that were found, so that it evaluates `keys` twice: cache
    what is expensive or random.

    Planning happens here, at once, as in `read`.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or Connect.
    source : str, path, sequence of them, or (pyarrow filesystem, path)
        The files, as in `read`.
    keys : pyspark.sql.DataFrame, pyarrow.Table, pandas.DataFrame, or sequence
        The keys. A sequence has a value for each key, or a tuple if there are several columns. Duplicates and nulls are as
        in a join: each duplicate has its own rows, and a null equals nothing.
    on : str, sequence of str, or mapping
        The columns that have to be equal, by their common names, or from names in the keys to names in the files.
        They have the same type on both sides; integers may differ in width. Numbers of a list or table get the files' type
        where it has all of them.
    columns : sequence of str, optional
        The columns of the files that come out; None is all.
    how : {"inner", "left", "semi"}
        "inner": each key with each of its rows. "left": also the keys without rows, with nulls. "semi": the rows of the files
        that have a key, each once, and no column of the keys.
    filter : Expression, str, pyarrow.compute.Expression or list, optional
        A condition on the rows of the files, as in `read`.
    broadcast_limit : int
        The greatest number of keys that are collected, at most 64 MB of them.
    tasks : int, optional
        The greatest number of tasks that read, as in `read`.
    python_path : str, optional
        As in `read`.
    **options
        Further options of `pageseek.scan`, as in `read`.

    Returns
    -------
    pyspark.sql.DataFrame
        With "inner" and "left" what `keys.join(files, on, how)` has: the columns of `on`, the other columns of the keys, then
        `columns` without those that equal keys. With "semi" `columns`. In no order.

    Raises
    ------
    PredicateError
        A column of `on` is not there, or has another type in the files.
    UnsupportedError
        Keys of this type are not supported, or as in `read`.
    """
    check_session(spark)
    if how not in ("inner", "left", "semi"):
        raise ValueError(f"how={how!r}: 'inner', 'left' or 'semi'")
    for name, least, number in (("tasks", 1, tasks), ("broadcast_limit", 0, broadcast_limit)):
        if number is not None and number < least:
            raise ValueError(f"{name}={number}: at least {least}")
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: a list of names")
    pairs = _pairs(on)
    files = Files.of(
        spark, source, [file for _, file in pairs], columns, how == "semi", filter, options
    )
    given = _Keys.of(spark, keys, [key for key, _ in pairs], files)
    makes_pairs = how == "inner" and len(given.names) == len(given.on)
    direct = makes_pairs or how == "semi"
    found = _Lookup(
        spark,
        files,
        given,
        files.probe(files.output if direct else (*files.on, *files.output), makes_pairs),
        tasks,
        python_path,
    ).frame(broadcast_limit)
    if direct:
        names = [*([given.names[i] for i in given.on] if makes_pairs else []), *files.names]
        return found.toDF(*names) if names else found.drop(*found.columns)
    return _joined(given, found, files, how)


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    """The names of each column in the keys and in the files."""
    if isinstance(on, str):
        return [(on, on)]
    made = list(on.items()) if isinstance(on, Mapping) else [(name, name) for name in on]
    if not made or len({key for key, _ in made}) < len(made):
        raise ValueError(f"on={on!r}: at least one column, and each once")
    return made


def _joined(keys: _Keys, found: DataFrame, files: Files, how: str) -> DataFrame:
    """The join of all columns of the keys with the rows that were found: their columns of `on`, then what comes out."""
    from pyspark.sql.functions import col

    left = [f"k{i}" for i in range(len(keys.names))]
    right = [f"f{i}" for i in range(len(files.on) + len(files.output))]
    same = [col(left[at]) == col(right[i]) for i, at in enumerate(keys.on)]
    rest = [i for i in range(len(left)) if i not in keys.on]
    order = [*keys.on, *rest]
    names = [*(keys.names[i] for i in order), *files.names]
    wanted = [*(left[i] for i in order), *right[len(files.on) :]]
    both = keys.frame().toDF(*left).join(found.toDF(*right), same, how)
    return both.select(*wanted).toDF(*names)


# -- keys ---------------------------------------------------------------------------------------


class _Keys(NamedTuple):
    """The keys. `names`: all columns. `on`: the places of those that equal columns of the files. `kinds`: their Arrow types.

    A column of the files that has only nulls, and so no type, makes the type of its keys null. `given`: a DataFrame of Spark or a table.
    """

    spark: SparkSession
    given: Any
    names: list[str]
    on: list[int]
    kinds: list[pa.DataType]
    types: list[SparkType]

    @classmethod
    def of(cls, spark: SparkSession, keys: Any, on: Sequence[str], files: Files) -> _Keys:
        """The keys that a caller gives, checked."""
        table = table_of(keys, on, [_wanted(files, name) for name in files.on])
        names = list(keys.columns if table is None else table.column_names)
        places = [_place(name, names, files.settings) for name in on]
        if table is None:
            types = [keys.schema[i].dataType for i in places]
        else:
            keys = table = _settled(table, places, files)
            fields = [pa.field(names[i], table.schema.field(i).type) for i in places]
            types = [field.dataType for field in spark_schema(pa.schema(fields), "keys", spark)]
        kinds = []
        for i, kind, name in zip(places, types, files.on, strict=True):
            if pa.types.is_null(files.wire.field(name).type):  # which no key equals
                kinds.append(pa.null())
                continue
            _check(names[i], None if table is None else table.column(i), kind, name, files)
            kinds.append(_key_type(kind, names[i]))
        return cls(spark, keys, names, places, kinds, types)

    def frame(self) -> DataFrame:
        """The keys as a DataFrame."""
        if not isinstance(self.given, pa.Table):
            made: DataFrame = self.given
            return made
        wire = pa.schema([wire_field(field, "keys") for field in self.given.schema])
        table, schema = self.given.cast(wire), spark_schema(wire, "keys", self.spark)
        if Settings(self.spark).major < 4:
            return self.spark.createDataFrame(table.to_pandas(), schema)
        return self.spark.createDataFrame(table, schema)

    def present(self) -> DataFrame:
        """The columns that equal those of the files, as `k0` and so on, without nulls."""
        from functools import reduce

        from pyspark.sql.functions import col

        every = self.frame().toDF(*(f"k{i}" for i in range(len(self.names))))
        made = every.select(*(col(f"k{at}").alias(f"k{i}") for i, at in enumerate(self.on)))
        there = [col(f"k{i}").isNotNull() for i in range(len(self.on))]
        return made.where(reduce(lambda a, b: a & b, there))

    def table(self, limit: int) -> pa.Table | None:
        """The columns that equal those of the files, without nulls; None if there are too many."""
        names = [f"k{i}" for i in range(len(self.on))]
        if isinstance(self.given, pa.Table):
            found = self.given.select(self.on).rename_columns(names)
        else:
            frame = self.frame()
            if not hasattr(frame, "toArrow"):
                return None
            if self._may_be_large() or self.on != list(range(len(self.names))):
                frame = self.present()
                if self._may_be_large() and not self._is_small(frame):
                    return None
            # nulls of keys that need no other step count here, which costs less than to filter them in Spark
            if not _are_few(frame, limit):
                frame = frame.limit(min(limit, _MOST_LIMIT) + 1)
            found = frame.toArrow().rename_columns(names)
        if found.num_rows > limit or found.nbytes > BROADCAST_BYTES:
            return None
        return without_nulls(found.cast(pa.schema(list(zip(names, self.kinds, strict=True)))))

    def _may_be_large(self) -> bool:
        """Whether single keys may be of any size."""
        return any(pa.types.is_string(kind) or pa.types.is_binary(kind) for kind in self.kinds)

    def _is_small(self, frame: DataFrame) -> bool:
        """Whether the texts of the keys are small together."""
        from pyspark.sql.functions import col, lit, octet_length
        from pyspark.sql.functions import sum as total

        size = lit(0)
        for i, kind in enumerate(self.kinds):
            if pa.types.is_string(kind) or pa.types.is_binary(kind):
                size = size + octet_length(col(f"k{i}")).cast("bigint")
        found = frame.select(total(size)).collect()[0][0]
        return found is None or int(found) <= BROADCAST_BYTES


def _are_few(frame: DataFrame, limit: int) -> bool:
    """Whether Spark knows that a frame has at most so many rows: one that is cached, or made of values. A limit shuffles them.
    Of other frames it may have a guess.
    """
    made = getattr(frame, "_jdf", None)
    if made is None:  # over Connect
        return False
    plan = made.queryExecution().optimizedPlan()
    if plan.getClass().getSimpleName() not in ("InMemoryRelation", "LocalRelation", "Range"):
        return False
    told = plan.stats().rowCount()
    return bool(told.isDefined()) and int(str(told.get())) <= limit


def _place(name: str, names: Sequence[str], settings: Settings) -> int:
    """The place of a column of the keys."""
    fits = [
        i
        for i, one in enumerate(names)
        if one == name or (not settings.case_sensitive and one.lower() == name.lower())
    ]
    if len(fits) == 1:
        return fits[0]
    why = "several columns" if fits else "no column"
    raise PredicateError(f"keys: {why} {name!r} among {', '.join(map(repr, names))}; see on=")


def _wanted(files: Files, name: str) -> Wanted:
    """What keys have to equal: a column of the files."""
    kind = files.schema[files.wire.get_field_index(name)].dataType.simpleString()
    return Wanted(files.wire.field(name).type, f"{files.name}: column {name!r} is {kind}")


def _settled(table: pa.Table, places: Sequence[int], files: Files) -> pa.Table:
    """A table whose columns of keys have wire types: the files' type where that changes no value, and for nulls of no type."""
    for i, name in zip(places, files.on, strict=True):
        field, wanted = table.schema.field(i), files.wire.field(name).type
        kind = wire_type(field.type)
        if pa.types.is_large_string(kind or field.type):
            kind = pa.string()
        elif pa.types.is_large_binary(kind or field.type):
            kind = pa.binary()
        if pa.types.is_null(field.type) or (
            pa.types.is_decimal(field.type) and pa.types.is_decimal(wanted)
        ):
            kind = wanted
        try:
            column = table.column(i) if kind is None else table.column(i).cast(kind)
        except pa.ArrowInvalid as error:
            value = None
            if is_number(field.type) and is_number(wanted):
                value = misfit(table.column(i).to_pylist(), wanted)
            if value is not None:
                raise _wanted(files, name).lacks(field.name, value) from error
            raise PredicateError(
                f"keys: column {field.name!r}: {error}: make them as {spelled_values(kind)}"
            ) from error
        column = cast_exactly(column, wanted)
        table = table.set_column(i, pa.field(field.name, column.type), column)
    return table


def _check(
    key: str, values: pa.ChunkedArray | None, kind: SparkType, name: str, files: Files
) -> None:
    """Refuse keys of another type than the column of the files. `values`: the keys, if they are no DataFrame."""
    wire = files.wire.field(name).type
    wanted = files.schema[files.wire.get_field_index(name)].dataType
    if pa.types.is_nested(wire) or not _joins(wanted):
        raise UnsupportedError(
            f"{files.name}: column {name!r} is {wanted.simpleString()}, by which lookup does not join: use read(...).join(...)"
        )
    integers = ("ByteType", "ShortType", "IntegerType", "LongType")
    if kind == wanted or all(type(one).__name__ in integers for one in (kind, wanted)):
        return
    wide, t = wanted.simpleString(), pa.types
    if values is None:
        how = (
            f"use read(...).join(...); or cast the keys if that changes none of them, as in "
            f"keys.withColumn({key!r}, col({key!r}).cast({wide!r}))"
        )
    else:
        how = f"make them as {spelled_values(wire)}"
        real = t.is_floating(values.type)
        if is_number(values.type) and is_number(wire) and not (real and t.is_decimal(wire)):
            value = misfit(values.to_pylist(), wire)
            if value is not None and not (real and t.is_floating(wire)):
                raise _wanted(files, name).lacks(key, value)
            how += "" if value is None else f", which rounds {value}, or use read(...).join(...)"
    raise PredicateError(
        f"{files.name}: column {name!r} is {wide}, and the keys' {key!r} is {kind.simpleString()}: {how}"
    )


def _joins(kind: SparkType) -> bool:
    """Whether lookup joins by a type of Spark."""
    known = type(kind).__name__ in ("DecimalType", *_KEY_TYPES)
    return known and getattr(kind, "collation", "UTF8_BINARY") == "UTF8_BINARY"


def _key_type(kind: SparkType, name: str) -> pa.DataType:
    """The Arrow type of keys of a type of Spark."""
    if not _joins(kind):
        raise UnsupportedError(
            f"keys: column {name!r} is {kind.simpleString()}, by which lookup does not join: use read(...).join(...)"
        )
    if type(kind).__name__ == "DecimalType":
        return pa.decimal128(kind.precision, kind.scale)
    return _KEY_TYPES[type(kind).__name__]


# -- the rows that are found ----------------------------------------------------------------------


class _Lookup(NamedTuple):
    """A lookup that is ready to be planned."""

    spark: SparkSession
    files: Files
    keys: _Keys
    probe: Probe
    tasks: int | None
    python_path: str | None

    def frame(self, broadcast_limit: int) -> DataFrame:
        """What the probe gives, under the names 0, 1 and so on."""
        if any(pa.types.is_null(kind) for kind in self.keys.kinds):
            return empty_frame(self.spark, self._schema())
        table = self.keys.table(broadcast_limit)
        return self._shuffled() if table is None else self._broadcast(table)

    def _broadcast(self, table: pa.Table) -> DataFrame:
        files = self.files
        plan = files.scan.filter(self.probe.condition(table)).plan()
        if not plan.files:
            return empty_frame(self.spark, self._schema())
        most = self._most_tasks(plan, expected_rows(plan, files.columns))
        parts = plan.divide(most).split(most)
        ids, step = range_of(self.spark, plan, len(parts))
        packed = tuple(map(pack, parts))
        run = Run.of_function(plan, packed, source=files.source)
        probe, reports = pickle.dumps(self._probe(plan)), run.accumulator(self.spark)
        task = self._task("probe_parts", probe, pack_keys(table), packed, step, reports)
        task = run.named(
            task, f"lookup of {table.num_rows:,} keys in {files.source}; {described(plan)}"
        )
        return ids.mapInArrow(task, self._schema())

    def _shuffled(self) -> DataFrame:
        from pyspark.sql.functions import lit
        from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

        files, schema = self.files, self._schema()
        plan = files.scan.plan()
        most = self._most_tasks(plan, plan.num_rows)
        parts = key_ranges(plan, files.columns, files.on, files.wire, most) if plan.files else []
        if not parts:
            return empty_frame(self.spark, schema)
        ids, present = partition_ids(len(parts)), self.keys.present()
        ranges = pickle.dumps(([key_range for key_range, _ in parts], ids))
        fields = [StructField(f"k{i}", kind) for i, kind in enumerate(self.keys.types)]
        told = StructType([StructField("part", IntegerType()), *fields])
        numbered = present.mapInArrow(self._task("assign", ranges), told)
        sent = numbered.repartition(len(parts), "part").sortWithinPartitions(*told.names)
        # Spark takes the output to be as large as the input: a column of nulls makes rows as wide as those that come out
        padded = sent.select("*", lit(None).cast(ArrayType(schema)).alias("width"))
        names = [f"k{i}" for i in range(len(self.keys.on))]
        about = self._probe(plan), pa.schema(list(zip(names, self.keys.kinds, strict=True)))
        packed = tuple((number, pack(part)) for number, (_, part) in zip(ids, parts, strict=True))
        run = Run.of_function(
            plan,
            [part for _, part in packed],
            source=files.source,
            missing="others have no keys, were stopped early, failed, or go on",
            keys=True,
        )
        reports = run.accumulator(self.spark)
        task = self._task("probe_partition", pickle.dumps(about), packed, reports)
        told = described(plan, "tasks, which rule out rows by their keys, get")
        task = run.named(task, f"lookup of shuffled keys in {files.source}; {told}")
        return padded.mapInArrow(task, schema)

    def _probe(self, plan: ScanPlan) -> Probe:
        return replace(self.probe, calendars=calendars_of(self.spark, plan, self.files.wire))

    def _most_tasks(self, plan: ScanPlan, expected: int) -> int:
        if self.tasks is not None:
            return self.tasks
        return task_count(plan, expected, lambda: parallelism_of(self.spark))

    def _task(self, name: str, *arguments: Any) -> Task:
        module = "pageseek.spark.lookups.lookup_task"
        return shipped(module, name, self.python_path, *arguments)

    def _schema(self) -> StructType:
        """The types of what comes out. A column of nulls stands for none."""
        from pyspark.sql.types import NullType, StructField, StructType

        types = list(self.keys.types) if self.probe.with_keys else []
        schema, wire = self.files.schema, self.files.wire
        types += [schema[wire.get_field_index(name)].dataType for name in self.probe.output]
        return StructType([StructField(str(i), one) for i, one in enumerate(types or [NullType()])])
