"""A table of Spark's DataSource V2 interfaces, in Java, whose scans Python plans and reads.

The classes lie beside this file in `pageseek-spark.jar`, which `make jar` builds. They are loaded into the driver's JVM
when they are first needed; executors need none of them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pageseek.base.errors import PageseekError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ERROR = "\0"  # begins a text that is an error
JAR = Path(__file__).with_name("pageseek-spark.jar")
_TABLE = "io.pageseek.spark.PageseekTable"
_V2 = "org.apache.spark.sql.execution.datasources.v2"


class Answers(Protocol):
    """What the classes call: an object of Python that answers questions, passed as a function of two arguments."""

    def apply(self, question: str, about: str) -> Any:
        """The answer to a question: a text, a number, bytes, an object of Java, or another one that answers."""


class Proxy:
    """An object of Python that the JVM sees as a `java.util.function.BiFunction`."""

    class Java:
        """The interface, by the convention of py4j."""

        implements = ("java.util.function.BiFunction",)

    gone = ""  # what to do about a file that is not there, as the end of the error

    def apply(self, question: str, about: Any) -> Any:
        """Answer by the method of this name. An error of this package is passed on as a text, without Python's stack."""
        try:
            return getattr(self, "on_" + question)(about)
        except FileNotFoundError as error:
            return f"{_ERROR}{type(error).__name__}: {error}{self.gone}"
        except (PageseekError, OSError) as error:
            return f"{_ERROR}{type(error).__name__}: {error}"

    def toString(self) -> str:  # noqa: N802 (Java's names)
        """Its name in Java's messages."""
        return type(self).__name__

    def hashCode(self) -> int:  # noqa: N802
        """As Java wants it: 31 bits."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """Whether Java has been given this object."""
        return self is other


def fits(spark: SparkSession) -> bool:
    """Whether a session can have the table: it is Classic, and its release has what the classes are made of."""
    if "connect" in type(spark).__module__ or int(spark.version.split(".")[0]) < 4:
        return False
    return _loaded(spark.sparkContext._gateway, spark._jvm)


def table_of(
    spark: SparkSession, name: str, schema: StructType, planner: Answers, raw: bool = False
) -> Any:
    """A table whose scans the planner plans, as an object of Java. The session must fit.

    `raw`: char and varchar are types of its columns, as Spark wants it of a table that it has defined.
    """
    session = spark._jsparkSession
    parsed = session.parseDataType(schema.json())
    if raw:
        parsed = char_types(spark).getRawSchema(parsed)
    table = java_class(spark._jvm, _TABLE)
    return table(name, parsed, session, planner, python_of(spark))


def char_types(spark: SparkSession) -> Any:
    """What Spark has to tell char and varchar, which it has as strings with metadata."""
    return java_class(spark._jvm, "org.apache.spark.sql.catalyst.util.CharVarcharUtils")


def table_frame(spark: SparkSession, table: Any) -> DataFrame:
    """A DataFrame of a table."""
    from pyspark.sql import DataFrame

    jvm = spark._jvm
    none = _singleton(jvm, "scala.None")
    relation = _singleton(jvm, f"{_V2}.DataSourceV2Relation").create(table, none, none)
    datasets = _singleton(jvm, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, relation), spark)


def python_of(spark: SparkSession, carried: Any = Proxy) -> Any:
    """The Python of a session's executors: its command, environment, and the accumulators of the driver.

    `carried`: a class of a Python Data Source that it takes along.
    """
    context = spark.sparkContext
    around = tuple(context._python_includes), tuple(context.environment.items())
    return _python(context, spark._jvm, carried, around)


@lru_cache(maxsize=4)
def _python(context: Any, jvm: Any, carried: Any, around: Any) -> Any:
    """`around`: what of the context may change. All else of it stays, and asking it takes 17 calls of the JVM."""
    from pyspark.sql.udf import _wrap_function

    made = java_class(jvm, f"{_V2}.python.UserDefinedPythonDataSource")
    return made(_wrap_function(context, carried))


@cache
def java_class(jvm: Any, name: str) -> Any:
    """A class of Java. Each part of its name is a call of the JVM, so that it is looked for once."""
    for part in name.split("."):
        jvm = getattr(jvm, part)
    return jvm


@cache
def _singleton(jvm: Any, name: str) -> Any:
    """An object of Scala."""
    return getattr(getattr(jvm, name + "$"), "MODULE$")


@cache
def _loaded(gateway: Any, jvm: Any) -> bool:
    """Whether one JVM has the classes; not if this release of Spark lacks one that they need.

    Spark looks up formats and catalogs by the class loader of the driver's threads, so that they are put there.
    """
    from py4j.protocol import Py4JError
    from pyspark.java_gateway import ensure_callback_server_started

    try:
        ensure_callback_server_started(gateway)
        jvm.PythonSQLUtils.addJarToCurrentClassLoader(str(JAR))
        loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        loader.loadClass(_TABLE).getConstructors()
    except (Py4JError, OSError):
        return False
    return True
