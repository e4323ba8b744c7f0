"""`register`: the format "pageseek" of a session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.tracebacks import short_traceback
from pageseek.spark.datasource.growing import OPTIONS, Growing
from pageseek.spark.datasource.source import register_source, source_class, told
from pageseek.spark.loader import table
from pageseek.spark.session.settings import check_session
from pageseek.spark.sources.options import parsed
from pageseek.spark.table.shim import JAR, Proxy, char_types, fits, python_of
from pageseek.spark.table.table import Choices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = "io.pageseek.spark.PageseekCatalog"


@short_traceback
def register(spark: SparkSession, *, catalog: str | None = "pageseek") -> None:
    """Make "pageseek" a format of a session: `spark.read.format("pageseek").load(path).where(...)`, and the same in SQL.

    Options have the names of the parameters of `load`, and text as values: `.option("local", "false")`; further, `columns` and
    `filter`, which all queries of the DataFrame have. Lists and mappings are JSON. Streams of folders that grow are read by
    `spark.readStream.format("pageseek")`.

    Over Connect, the format is a Python Data Source. Spark pushes filters into those only if
    `spark.sql.python.filterPushdown.enabled` is true, so that it is set. The source has the session's settings of the time of
    this call.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Of Spark 4.
    catalog : str, optional
        The name by which SQL reads paths: ``select * from pageseek.`/lake/events` ``. A database of this name would be
        hidden: choose another name then, or None for no such name. Of Classic sessions: over Connect, SQL reads temporary views.

    Raises
    ------
    UnsupportedError
        The session is of Spark 3.
    """
    check_session(spark)
    if int(spark.version.split(".")[0]) < 4:
        raise UnsupportedError(
            f"register needs Spark 4, and this is Spark {spark.version}: use pageseek.spark.read"
        )
    if not fits(spark):
        register_source(spark, JAR)
        return
    spark._jvm.io.pageseek.spark.PageseekProvider.register(Factory(spark))
    if catalog is not None:
        spark.conf.set(f"spark.sql.catalog.{catalog}", _CATALOG)


class Factory(Proxy):
    """Makes tables from options. The JVM has one of it, for all its sessions."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def on_table(self, about: Any) -> Any:
        """A table, as an object of Java. `about`: options and schema as JSON, and the session."""
        from pyspark.sql.types import StructType

        asked, spark = json.loads(about[0]), self._session(about[1])
        wanted = parsed(asked["options"], OPTIONS)
        Growing.of(wanted.source, None, wanted.other)  # a stream has begun with a table, too
        # a table of a catalog has the columns of its definition
        is_defined = any(name.lower() == "provider" for name in asked["options"])
        schema = None
        if asked["schema"] is not None:
            schema = StructType.fromJson(json.loads(_without_char(spark, asked["schema"])))
        chosen = {k: v for k, v in wanted.table.items() if k in Choices.__annotations__}
        rest = {k: v for k, v in wanted.table.items() if k not in chosen}
        try:
            choices = Choices(**chosen)
            return table(
                spark,
                wanted.source,
                choices,
                schema=schema,
                folders_last=not is_defined,
                **rest,
                **wanted.scan,
            )
        except (ValueError, TypeError) as error:  # of the value of an option
            raise UnsupportedError(str(error)) from error
        except FileNotFoundError as error:  # Spark asks for the columns of what it is to write, too
            raise FileNotFoundError(
                f"{error}; the format only reads: pageseek.spark.write writes"
            ) from error

    def on_stream(self, about: Any) -> Any:
        """The Python Data Source that reads streams. `about`: the session."""
        spark = self._session(about)
        return python_of(spark, source_class(told(spark)))

    def _session(self, session: Any) -> SparkSession:
        """The session of a query: the one that registered, or another of the same application."""
        from pyspark.sql import SparkSession

        if session.equals(self.spark._jsparkSession):
            return self.spark
        return SparkSession(self.spark.sparkContext, session)


def _without_char(spark: SparkSession, schema: str) -> str:
    """A schema, as JSON, whose char and varchar are strings, as Spark has them: their lengths are in the metadata of the columns."""
    if "char(" not in schema:
        return schema
    parsed = spark._jsparkSession.parseDataType(schema)
    return str(char_types(spark).replaceCharVarcharWithStringInSchema(parsed).json())
