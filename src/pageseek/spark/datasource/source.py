"""The format "pageseek" as a Python Data Source: for Connect, for streams, and where Spark lacks what the Java table needs.

Spark pickles the class, and plans with it in Python workers of the driver. It pushes filters, but no limits or aggregations.

Spark keeps one plan for all scans of such a source, so that a query would get the rows of another that has other filters.
A table in Java gives each scan a plan of its own, and tells it the columns of the query. Its jar is an artifact of the session.
Where a server takes no artifacts, Spark pushes nothing, and all scans have the same plan rightly.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError
from pageseek.base.version import __version__
from pageseek.spark.columns.row_metadata import quoted
from pageseek.spark.filters.sparks import is_sparks, named_in
from pageseek.spark.session.hadoop import Hadoop
from pageseek.spark.session.settings import ToldSession
from pageseek.spark.sources.buckets import SETTINGS as S3
from pageseek.spark.sources.options import as_text
from pageseek.spark.tasks.sizing import parallelism_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        Filter,
        InputPartition,
    )
    from pyspark.sql.types import StructType

    from pageseek.spark.datasource.growing import Listed, Offset
    from pageseek.spark.datasource.planning import Planning

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
FORMAT, PYTHON = "pageseek", "pageseek_python"  # of the table, and of the source behind it
SESSION = "session"  # the option with what `load` tells of its session
HINT = "hint"  # SQL that Spark applies behind the scan
GIVEN = "given_schema"  # the option with the schema of a user, where Java asks for the columns of its table
STORES = "stores"  # what the class alone is told, since it may have secrets
_CORES = "spark.sql.leafNodeDefaultParallelism"


def told(spark: SparkSession) -> dict[str, Any]:
    """What the planning needs to know of a session."""
    known = ToldSession.of(spark)
    settings = {**known.settings, _CORES: str(parallelism_of(spark))}
    pushes = str(spark.conf.get(PUSHDOWN, None) or "false").lower() == "true"
    stores = Hadoop(spark).told(S3)
    return {"spark": known.version, "settings": settings, "pushes": pushes, STORES: stores}


def register_source(spark: SparkSession, jar: Path) -> dict[str, Any]:
    """Make the source a format of a Connect session, and let Spark push filters into Python Data Sources.

    `jar`: the classes in Java. Returns what was told of the session.
    """
    from pyspark.errors import PySparkException

    with suppress(PySparkException):  # what holds then is seen by `told`
        spark.conf.set(PUSHDOWN, "true")
    known = told(spark)
    if _has_classes(spark, jar):
        spark.dataSource.register(source_class(known, PYTHON))
    else:
        known["pushes"] = False
        spark.dataSource.register(source_class(known, FORMAT))
    return known


def _has_classes(spark: SparkSession, jar: Path) -> bool:
    """Whether a session has the classes of the jar. It gets them once: a setting remembers it."""
    import grpc
    from pyspark.errors import PySparkException

    key = "spark.pageseek.classes"
    if spark.conf.get(key, None) == __version__:
        return True
    try:
        spark.addArtifacts(str(jar))
    except (PySparkException, grpc.RpcError) as error:
        warnings.warn(
            f"this server of Spark Connect takes no artifacts ({type(error).__name__}), so that filters that follow `load` rule "
            "out nothing: name them by `filter=`, or use pageseek.spark.read",
            stacklevel=4,
        )
        return False
    spark.conf.set(key, __version__)
    return True


def source_frame(
    spark: SparkSession,
    source: Any,
    jar: Path,
    columns: Sequence[str] | None,
    filter: Any,
    options: dict[str, Any],
) -> DataFrame:
    """`load` where the driver's Python is far. Spark applies filters of its own, and pushes parts of them; of SQL the source is told."""
    behind, own = (filter, None) if is_sparks(filter) else (None, filter)
    hint = behind if isinstance(behind, str) else None
    session = session_option({**register_source(spark, jar), HINT: hint})

    def made(columns: Sequence[str] | None) -> DataFrame:
        texts = as_text(source, {**options, "columns": columns, "filter": own})
        return spark.read.format(FORMAT).options(**{SESSION: session, **texts}).load()

    frame = made(columns or None)
    if columns is None:
        return frame if behind is None else frame.where(behind)
    wanted = frame.columns if columns else []
    if behind is not None:
        named = named_in(behind, made(None).columns)
        more = [name for name in named if name not in wanted]
        frame = (made([*columns, *more]) if more else frame).where(behind)
        frame = frame.select(*map(quoted, wanted)) if more else frame
    if not columns:
        return frame.select()
    told = {name.lower(): name for name in columns}  # as the caller spells them
    names = [told.get(name.lower(), name) for name in wanted]
    return frame if names == wanted else frame.toDF(*names)


def session_option(known: dict[str, Any]) -> str:
    """What is told of a session, as the option of one query. Options may be shown, so that the settings of stores are not in it."""
    return json.dumps({name: value for name, value in known.items() if name != STORES})


def source_class(known: dict[str, Any], called: str = FORMAT) -> type[DataSource]:
    """The Python Data Source. It is pickled by value, so that it can say what is wrong where pageseek is missing.

    `known`: what `told` says of the session. `called`: the name of the format.
    """
    from pyspark.sql.datasource import DataSource

    version = __version__

    class PageseekSource(DataSource):  # type: ignore[misc]
        """Parquet files, pruned by what Spark pushes."""

        @classmethod
        def name(cls) -> str:
            return called

        def _made(self) -> Any:
            """The planning, in this process."""
            import json
            import sys

            options = dict(self.options)
            path = {k.lower(): v for k, v in options.items()}.get("python_path")
            if path is not None and path not in sys.path:
                sys.path.insert(0, path)
            try:
                from pageseek.spark.datasource import source
            except ImportError as error:
                raise ImportError(
                    f"Spark's Python on the driver, {sys.executable}, cannot import pageseek ({error}): install it there and on "
                    "every node, or use pageseek.spark.read"
                ) from error
            telling = next((k for k in options if k.lower() == "session"), None)
            session = known
            if telling is not None:
                session = {"stores": known["stores"], **json.loads(options.pop(telling))}
            return source.planning_of(session, options, version)

        def schema(self) -> StructType:
            made: StructType = self._made().schema()
            return made

        def reader(self, schema: StructType) -> DataSourceReader:
            from pageseek.spark.datasource import source

            planning = self._made()
            return source.reader_of(planning, schema)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            from pageseek.spark.datasource import source

            planning = self._made()
            return source.stream_reader_of(planning, schema)

    return PageseekSource


def planning_of(known: dict[str, Any], options: dict[str, str], version: str) -> Planning:
    """The planning of a query, where Spark has called the source."""
    if version != __version__:
        raise PageseekError(
            f"the client has pageseek {version}, Spark's driver {__version__}: install the same on both"
        )
    from pyspark.sql.types import StructType

    from pageseek.spark.datasource.planning import Planning

    session = ToldSession(known["spark"], {**known["settings"], **known[STORES]})
    text = options.pop(GIVEN, None)
    given = None if text is None else StructType.fromJson(json.loads(text))
    return Planning.of(session, options, known["pushes"], known.get(HINT), given)


def reader_of(planning: Planning, schema: StructType) -> DataSourceReader:
    """A reader of the columns of a schema."""
    from pyspark.sql.datasource import DataSourceReader, InputPartition

    carried = _carried(planning)

    class Reader(DataSourceReader):  # type: ignore[misc]
        """Plans when Spark asks for partitions, with the filters that it has pushed before."""

        def __init__(self) -> None:
            self._scan = planning.scan(schema)

        def __reduce__(self) -> Any:
            return carried

        def partitions(self) -> Sequence[InputPartition]:
            return [InputPartition(part) for part in planning.parts(self._scan, schema)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            raise NotImplementedError  # tasks have what it is pickled as

    class PushingReader(Reader):
        """One that Spark may push filters into: it refuses such a reader where the setting is off."""

        def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
            self._scan, left = planning.pushed(self._scan, filters)
            return left

    return PushingReader() if planning.pushes else Reader()


def stream_reader_of(planning: Planning, schema: StructType) -> DataSourceStreamReader:
    """A reader of the files that appear, with the columns of a schema."""
    from pyspark.sql import datasource

    carried = _carried(planning)
    bases: tuple[type, ...] = (datasource.DataSourceStreamReader,)
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadMaxFiles,
            SupportsTriggerAvailableNow,
        )

        bases += (SupportsTriggerAvailableNow,)
    except ImportError:  # before 4.2: each batch has all files
        pass

    class StreamReader(*bases):  # type: ignore[misc]
        """Its offsets are those of `growing`."""

        def __init__(self) -> None:
            self._growing = planning.growing()
            self._last: Offset = {}
            self._until: dict[bytes, Listed] | None = None

        def __reduce__(self) -> Any:
            return carried

        def initialOffset(self) -> Offset:  # noqa: N802
            return {}

        def getDefaultReadLimit(self) -> Any:  # noqa: N802
            most = self._growing.most
            return ReadAllAvailable() if most is None else ReadMaxFiles(most)

        def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802
            most = getattr(limit, "max_files", None)
            return self._growing.latest(self._last if start is None else start, most, self._until)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._until = self._growing.listed()

        def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
            self._last = self._growing.joined(start, end)
            files = self._growing.between(start, end)
            if not files:
                return []
            parts = planning.parts(planning.scan(schema, files), schema)
            return [datasource.InputPartition(part) for part in parts]

        def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
            raise NotImplementedError  # tasks have what it is pickled as

    made: DataSourceStreamReader = StreamReader()
    return made


def _carried(planning: Planning) -> Any:
    """What the readers are pickled as for tasks: by value, so that a path can be set before pageseek is imported."""
    version = __version__
    path = planning.wanted.table.get("python_path")

    def made() -> Any:
        from types import SimpleNamespace

        def read(partition: Any) -> Any:
            import sys

            if path is not None and path not in sys.path:
                sys.path.insert(0, path)
            try:
                from pageseek.spark.tasks.task import run
            except ImportError as error:
                raise ImportError(
                    f"this executor's Python, {sys.executable}, cannot import pageseek ({error}): install it on every node"
                ) from error
            return iter(()) if partition.value is None else run(partition.value, version)

        return SimpleNamespace(read=read)

    return made, ()
