"""The settings of a Spark session that reading depends on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from pageseek.base.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NO_DEFAULT = object()
INFER_NTZ = "spark.sql.parquet.inferTimestampNTZ.enabled"
BINARY_AS_STRING = "spark.sql.parquet.binaryAsString"
INT96_CONVERSION = "spark.sql.parquet.int96TimestampConversion"
KEYS = (
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.ansi.enabled",
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.timestampType",
    "spark.sql.sources.partitionColumnTypeInference.enabled",
    "spark.sql.timeType.enabled",
    "spark.sql.legacy.consecutiveStringLiterals.enabled",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    INFER_NTZ,
    BINARY_AS_STRING,
    INT96_CONVERSION,
)


def as_java(name: str) -> str:
    """A name, so that names are equal for which Java's `equalsIgnoreCase` is true: it takes `ſ` for `s`, and `µ` for `μ`."""
    if name.isascii():
        return name.lower()
    return "".join(map(_sign, name))


def _sign(sign: str) -> str:
    upper = sign.upper()
    return (upper if len(upper) == 1 else sign).lower()[0]


def check_session(given: Any) -> None:
    """TypeError: something else stands where the session is wanted."""
    if type(given).__name__ == "DataFrame" or not hasattr(given, "conf"):
        raise TypeError(
            f"a session of Spark is wanted first, not {type(given).__name__}, such as "
            "SparkSession.builder.getOrCreate()"
        )


class ToldSession:
    """What a process that has no session is told of one: its release and settings. It stands for the session there.

    Attributes
    ----------
    version : str
        The release of Spark.
    conf : ToldSession
        Itself.
    """

    def __init__(self, version: str, settings: Mapping[str, str]) -> None:
        self.version, self.settings = version, dict(settings)

    @classmethod
    def of(cls, spark: SparkSession) -> ToldSession:
        """What to tell of a session."""
        known = ((key, spark.conf.get(key, None)) for key in KEYS)
        return cls(spark.version, {key: value for key, value in known if value is not None})

    @property
    def conf(self) -> ToldSession:
        """The settings."""
        return self

    def get(self, key: str, default: Any = _NO_DEFAULT) -> Any:
        """The value of a setting. PySparkException: it is not known, and no default is given; None is one."""
        if key in self.settings or default is not _NO_DEFAULT:
            return self.settings.get(key, default)
        from pyspark.errors import PySparkException

        raise PySparkException(f"{key} is not known here")

    def sql(self, text: str) -> NoReturn:
        """There is nobody to compute it."""
        raise UnsupportedError(
            f"this is planned in a Python worker, which cannot ask Spark {text[:60]!r}: write times in the filter with their "
            "zone, or use pageseek.spark.read, which plans in the client"
        )


class Settings:
    """The settings of one session. Each is asked for once, when it is first needed: over Connect that is a request."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[str, str] = {}

    def get(self, key: str, default: str) -> str:
        """The value in force; `default` where this Spark does not know the setting."""
        if key not in self._known:
            from pyspark.errors import PySparkException

            try:
                self._known[key] = str(self._spark.conf.get(key))
            except PySparkException:
                self._known[key] = default
        return self._known[key]

    def is_true(self, key: str, default: str = "false") -> bool:
        """Whether a setting is on."""
        return self.get(key, default).lower() == "true"

    @property
    def case_sensitive(self) -> bool:
        """Whether names that differ in case are different names."""
        return self.is_true("spark.sql.caseSensitive")

    def folded(self, name: str) -> str:
        """A name, so that names that are the same to the session are equal."""
        return name if self.case_sensitive else name.lower()

    @property
    def ansi(self) -> bool:
        """Whether types are coerced by the rules of the SQL standard."""
        return self.is_true("spark.sql.ansi.enabled", "true" if self.major >= 4 else "false")

    @property
    def time_zone(self) -> str:
        """The zone of times that are written without one."""
        return self.get("spark.sql.session.timeZone", "")

    @cached_property
    def version(self) -> str:
        """Spark's version."""
        return str(self._spark.version)

    @property
    def major(self) -> int:
        """The first number of Spark's version."""
        return int(self.version.split(".")[0])

    def rows(self, query: str) -> list[Any]:
        """The answer of Spark to a small query."""
        return list(self._spark.sql(query).collect())

    def instant(self, text: str) -> dt.datetime:
        """The instant of a local time, computed by Spark: Java knows every zone that a session can have."""
        row = self.rows(f"select unix_micros(timestamp_ltz '{text}')")[0]
        return _EPOCH + dt.timedelta(microseconds=row[0])
