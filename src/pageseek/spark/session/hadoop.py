"""The settings of Hadoop in a session: `spark.hadoop.*`, and in a Classic session `core-site.xml` and those of the context."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "spark.hadoop."


class Hadoop:
    """Settings of Hadoop. In a Classic session each is asked of Java; else those that the session's own settings have."""

    def __init__(self, spark: SparkSession) -> None:
        self._conf = spark.conf
        session = getattr(spark, "_jsparkSession", None)
        self._java: Any = None if session is None else session.sessionState().newHadoopConf()

    def get(self, name: str) -> str:
        """The value of a setting; "" where there is none."""
        if self._java is not None:
            return str(self._java.getTrimmed(name) or "")
        from pyspark.errors import PySparkException

        for key in (name, _PREFIX + name):  # the session's, then the application's
            with suppress(PySparkException):
                if found := self._conf.get(key, None):
                    return str(found).strip()
        return ""

    def secret(self, name: str) -> str:
        """The value of a setting that may lie in one of Hadoop's stores of credentials; "" where there is none."""
        if self._java is None:
            return self.get(name)
        return "".join(self._java.getPassword(name) or "").strip()

    def told(self, prefix: str) -> dict[str, str]:
        """The settings whose names begin so: for a process that has no session."""
        if self._java is not None:
            return {prefix + k: v for k, v in self._java.getPropsWithPrefix(prefix).items()}
        starts = prefix, _PREFIX + prefix
        return {key: value for key, value in self._conf.getAll.items() if key.startswith(starts)}
