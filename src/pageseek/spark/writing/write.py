"""`write`: a DataFrame as Parquet files that are quick to look things up in, or to scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import NoColumnError, PredicateError, UnsupportedError
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.suggest import offered
from pageseek.base.tracebacks import short_traceback
from pageseek.spark.session.progress import progress_of
from pageseek.spark.session.settings import Settings
from pageseek.spark.sources.buckets import reached
from pageseek.spark.writing.commit import STALE_AFTER, begin, one_attempt_each, recover
from pageseek.spark.writing.destination import target_of
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.trial import try_out
from pageseek.spark.writing.write_task import (
    REPORT_DDL,
    StagedReport,
    WriteSpec,
    make_task,
    write_empty,
)
from pageseek.spark.writing.write_types import arrow_schema, is_months

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType

LAYOUTS = "lookup", "scan"
MODES = "append", "overwrite", "error", "errorifexists", "ignore"
GROUP_ROWS = 1 << 20
ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
_CODECS = {"uncompressed": "none", "lz4raw": "lz4", "lz4_raw": "lz4"}
_PARTITION = "__pageseek_partition_"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written. `name`: below the folder."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Written:
    """What `write` did. `removed`: how many old files it deleted. A write that was ignored has no files."""

    path: str
    files: tuple[WrittenFile, ...] = ()
    removed: int = 0

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.bytes for file in self.files)


@short_traceback
def write(
    df: DataFrame,
    path: Any,
    *,
    layout: str = "lookup",
    mode: str = "error",
    sort_by: str | Sequence[str | tuple[str, str]] | None = None,
    cluster_by: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
    files: int | None = None,
    bloom: Sequence[str] | Mapping[str, float] = (),
    index: Mapping[str, Sequence[str]] | None = None,
    dynamic: bool | None = None,
    compression: str | None = None,
    group_rows: int = GROUP_ROWS,
    file_rows: int | None = None,
    stale_after: float = STALE_AFTER,
    progress: bool | Watch | None = None,
    python_path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Written:
    """Write the rows of a DataFrame to Parquet files, which Spark reads back as they were.

    Every task writes its files to a hidden folder. When all tasks are done, the driver takes the files of one attempt for each
    partition and renames them. If a task, an executor or the driver dies, no reader sees a part of a file; what a dead driver
    has left, the next `write` into the folder takes back, or finishes if all files had their names (docs/spark.md).

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Of a Classic or a Connect session.
    path : path, URL, (filesystem, path), deltalake.DeltaTable, or a table of pyiceberg
        The folder. The driver and every executor must see it under the same name. On object stores a rename is a copy. A folder
        that is a Delta Lake table, and tables of both kinds as objects, get the files by one commit of their own.
    layout : {"lookup", "scan"}
        "lookup" ends pages after 1,000 rows, so that one row costs one small read; "scan" ends them after about 1 MB.
        Both have page indexes.
    mode : {"error", "append", "overwrite", "ignore"}
        What to do if there are files: raise FileExistsError, add to them, replace them, or do nothing. With "overwrite" the new
        files appear first, then the old ones go; the DataFrame may read from the same folder. "errorifexists" is "error".
    sort_by : str, or sequence of str and (str, "ascending" | "descending"), optional
        The order of rows in each file, as Spark sorts. By default that of `cluster_by`; else rows stay as they come.
    cluster_by : str or sequence of str
        Divide rows among files by ranges of these columns, by a shuffle, so that a file holds neighbours. `partition_by` goes
        before them.
    partition_by : str or sequence of str
        Columns that become folders, as Spark names them. Those of binary name them by text in UTF-8.
    files : int, optional
        How many tasks write: by as many ranges of `cluster_by`, by default as many as the session's shuffles make. Without
        `cluster_by` rows are dealt to them evenly, by a shuffle; by default the DataFrame's own partitions write.
    bloom : sequence of str, or mapping
        Columns that get Bloom filters, as in `pageseek.index.attach`. Whether case matters in names, here and in all options, says
        the session.
    index : mapping, optional
        By kind, columns that get embedded indexes: {"distinct": ["country"]}. The kinds are those of `pageseek.index.attach`.
    dynamic : bool, optional
        Whether "overwrite" replaces only partitions that get rows. By default what the session says
        (`spark.sql.sources.partitionOverwriteMode`).
    compression : str, optional
        "zstd", "snappy", "gzip", "lz4", "brotli" or "none"; by default the session's codec for Parquet.
    group_rows : int
        Most rows of a row group; it ends at 128 MB of Arrow data, too, all of which its task holds in memory.
    file_rows : int, optional
        Most rows of a file.
    stale_after : float
        Seconds after which another write without a lock is taken to be dead, and is finished or taken back. On local disks
        and NFS there are locks. Object stores have none; 0 does so with all other writes there, if none is at work.
    progress : bool or function, optional
        Show how far it is with giving the files their names, as in `pageseek.scan`; by default where the driver has a terminal or
        a notebook. Spark's own bar shows the tasks.
    python_path : str, optional
        As in `read`.
    storage_options : mapping, optional
        Options of the store, where `path` is a URL, as in `scan`; for S3, those of the session's Hadoop settings unless given.

    Returns
    -------
    Written
        The files, their rows and bytes.

    Raises
    ------
    FileExistsError
        There are files, and the mode is "error".
    UnsupportedError
        A column has a type that Parquet files of Spark do not have, or that has none in common with that of the files that are
        there; or it cannot have an index; or the table has a feature or a column for which nothing
        can be written here; or the folder is an Iceberg table, or lies inside a table; or a value of `partition_by` cannot name a
        folder.
    PredicateError
        There is no column of a name, or two; or the files that are there lie in folders of other columns.
    TypeError
        `df` is no DataFrame of PySpark.
    """
    if not hasattr(df, "mapInArrow"):
        raise TypeError(
            f"write: a DataFrame of PySpark is wanted, not {type(df).__name__}: make one by spark.createDataFrame(...)"
        )
    if mode == "errorifexists":
        mode = "error"
    _check(layout, mode, group_rows, file_rows, files)
    target = target_of(*reached(df.sparkSession, path, storage_options))
    settings = Settings(df.sparkSession)
    df = target.fitted(df, settings)
    columns = Columns(df.columns, settings.case_sensitive)
    partitions = target.partitions(columns.named(partition_by))
    clusters = columns.named(cluster_by)
    sorting = columns.sorted_by(clusters if sort_by is None else sort_by)
    if not isinstance(bloom, Mapping):
        bloom = dict.fromkeys(_listed(bloom), 0.01)
    bloom = {columns.indexed(name, df.schema): share for name, share in bloom.items()}
    indexes = {
        kind: list(dict.fromkeys(columns.indexed(name, df.schema) for name in _listed(given)))
        for kind, given in (index or {}).items()
    }
    kept = [name for name in columns.names if target.keeps or name not in partitions]
    if not kept:
        raise PredicateError("partition_by names all columns: at least one is to be in the files")
    schema = _schema(df, kept)
    if dynamic is None:
        key = "spark.sql.sources.partitionOverwriteMode"
        dynamic = bool(partitions) and settings.get(key, "static").lower() == "dynamic"
    if dynamic and not partitions:
        raise ValueError("dynamic=True replaces partitions: it goes with partition_by")

    types, codec = arrow_schema(schema), _codec(compression, settings)
    rows = _rows(df, schema, target, partitions, clusters, sorting, files)

    recover(target.folder, stale_after)
    if mode in ("error", "ignore") and target.files():
        if mode == "ignore":
            return Written(target.name)
        raise FileExistsError(
            f'{target.name}: there are files in it; say mode="append", "overwrite" or "ignore"'
        )
    version = df.sparkSession.version
    target.check(mode, dynamic)
    beside = target.beside(mode, dynamic)
    with closing(begin(target.folder)) as staging:
        spec = WriteSpec(
            folder=target.folder,
            staging=staging.name,
            job=staging.job,
            schema=types,
            partition_by=partitions,
            layout=layout,
            sorting=_stated(sorting, schema),
            compression=codec,
            metadata={"org.apache.spark.version": version, ROW_METADATA: schema.json()},
            bloom=bloom,
            indexes=indexes,
            group_rows=group_rows,
            file_rows=file_rows,
            statistics=target.states,
        )
        try_out(spec, beside)
        found = rows.mapInArrow(make_task(spec, python_path), REPORT_DDL).collect()
        reports = [StagedReport(*row) for row in found]
        for one in reports:
            if one.refused is not None:
                raise UnsupportedError(one.refused)
        one_attempt_each([(one.partition, one.attempt) for one in reports])
        made = sorted((one for one in reports if one.staged is not None), key=attrgetter("name"))
        if not made and not partitions and target.wants_a_file:  # so that the schema can be read
            made = [StagedReport(*row.values()) for row in write_empty(spec).to_pylist()]
        shown = progress_of(df.sparkSession, progress)
        with watched_steps("files", len(made), shown, Report()) as staging.moved:
            removed = target.publish(staging, made, mode, dynamic)
    if removed is None:
        return Written(target.name)
    return Written(
        target.name, tuple(WrittenFile(one.name, one.rows, one.bytes) for one in made), removed
    )


def _check(
    layout: str, mode: str, group_rows: int, file_rows: int | None, files: int | None
) -> None:
    for name, value, choices in (("layout", layout, LAYOUTS), ("mode", mode, MODES)):
        if value not in choices:
            raise ValueError(f"{name}={value!r}: one of {', '.join(choices)}")
    for name, number in (("group_rows", group_rows), ("file_rows", file_rows), ("files", files)):
        if number is not None and number < 1:
            raise ValueError(f"{name}={number}: at least 1")


class Columns:
    """The columns of a DataFrame, found by the session's rule of case."""

    def __init__(self, names: Sequence[str], case_sensitive: bool) -> None:
        self.names = names
        self._case_sensitive = case_sensitive
        seen = {self._folded(name) for name in names}
        if len(seen) < len(names):
            raise PredicateError(f"two columns have one name, among {', '.join(names)}: rename one")

    def _folded(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()

    def named(self, given: str | Sequence[str]) -> tuple[str, ...]:
        """The names as the DataFrame has them."""
        return tuple(self._found(name) for name in _listed(given))

    def _found(self, name: str) -> str:
        for one in self.names:
            if self._folded(one) == self._folded(name):
                return one
        raise NoColumnError(f"no column {name!r}; {offered(name, self.names)}")

    def sorted_by(
        self, given: str | Sequence[str | tuple[str, str]]
    ) -> tuple[tuple[str, bool], ...]:
        """Columns, and whether they descend."""
        made = []
        for one in [given] if isinstance(given, str) else given:
            name, order = (one, "ascending") if isinstance(one, str) else one
            if order not in ("ascending", "descending"):
                raise ValueError(f'sort_by: {order!r}: "ascending" or "descending"')
            made.append((self._found(name), order == "descending"))
        return tuple(made)

    def indexed(self, name: str, schema: StructType) -> str:
        """A column of an index as the files name it; fields of structs have dots."""
        if any(self._folded(one) == self._folded(name) for one in self.names):
            return self._found(name)
        made: list[str] = []
        inside: SparkType | None = schema
        for part in name.split("."):
            names = getattr(inside, "names", None)
            if names is None:  # below a list or a map, whose levels files name in their own way
                made.append(part)
                continue
            fits = [one for one in names if self._folded(one) == self._folded(part)]
            if part in fits:
                fits = [part]
            if len(fits) != 1:
                if not fits:
                    raise NoColumnError(f"no column {name!r}; {offered(part, list(names))}")
                raise PredicateError(f"index of {name!r}: several columns fit: {', '.join(fits)}")
            made += fits
            assert inside is not None
            inside = inside[fits[0]].dataType
        return ".".join(made)


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _schema(df: DataFrame, kept: Sequence[str]) -> StructType:
    from pyspark.sql.types import StructType

    fields = {field.name: field for field in df.schema.fields}
    return StructType([fields[name] for name in kept])


def _stated(
    sorting: Sequence[tuple[str, bool]], schema: StructType
) -> tuple[tuple[str, bool], ...]:
    """The order that the files state: columns up to the first that readers may order otherwise than Spark."""
    from pyspark.sql.types import StringType

    made = []
    for name, down in sorting:
        field = next((field for field in schema.fields if field.name == name), None)
        if field is None:  # a partition has one value
            continue
        kind = field.dataType
        own = (
            isinstance(kind, StringType)
            and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
        )
        if own or not hasattr(kind, "typeName") or kind.typeName() in ("struct", "array", "map"):
            break
        made.append((name, down))
    return tuple(made)


def _codec(compression: str | None, settings: Settings) -> str:
    key = "spark.sql.parquet.compression.codec"
    name = (settings.get(key, "snappy") if compression is None else compression).lower()
    name = _CODECS.get(name, name)
    if name not in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        raise UnsupportedError(
            f'compression {name!r}: say compression="zstd", "snappy", "gzip", "lz4", "brotli" or "none"'
        )
    return name


def _rows(
    df: DataFrame,
    schema: StructType,
    target: Target,
    partitions: Sequence[str],
    clusters: Sequence[str],
    sorting: Sequence[tuple[str, bool]],
    files: int | None,
) -> DataFrame:
    """The rows as the tasks get them: divided, sorted, with the text of partitions in last columns."""
    from pyspark.sql import functions as f

    if clusters:
        ranges = [f.col(_quoted(name)) for name in dict.fromkeys([*partitions, *clusters])]
        df = df.repartitionByRange(*([files] if files else []), *ranges)
    elif files:
        df = df.repartition(files)
    names = [f"{_PARTITION}{i}" for i in range(len(partitions))]
    for field in (df.schema[name] for name in partitions):
        typed = field.dataType.typeName()
        if typed in ("struct", "array", "map", "variant") or (
            typed == "binary" and not target.has_binary_folders
        ):
            kind = field.dataType.simpleString()
            text = f" of {target.name}: cast it to string" if kind == "binary" else ""
            raise UnsupportedError(
                f"partition_by: column {field.name!r} is {kind}, which names no folder{text}"
            )
    for name, of in zip(names, partitions, strict=True):
        df = df.withColumn(name, target.text(f.col(_quoted(of)), df.schema[of].dataType))
    order = [f.col(name).asc() for name in names]
    order += [f.col(_quoted(c)).desc() if down else f.col(_quoted(c)).asc() for c, down in sorting]
    if order:
        df = df.sortWithinPartitions(*order)
    columns = [f.col(_quoted(field.name)) for field in schema.fields]
    data = [  # by place: Spark does not hand columns whose names have dots to Python
        (_months(column) if is_months(field.dataType) else column).alias(f"c{i}")
        for i, (column, field) in enumerate(zip(columns, schema.fields, strict=True))
    ]
    return df.select(*data, *names)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _months(column: Column) -> Column:
    from pyspark.sql import functions as f

    column = column.cast("interval year to month")
    years = f.extract(f.lit("YEAR"), column)
    return (years * 12 + f.extract(f.lit("MONTH"), column)).cast("int")
