"""Whether the driver's own work shows how far it is. What tasks do, Spark's own bar shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pageseek.base.progress import Watch, interactive
from pageseek.spark.session.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def progress_of(spark: SparkSession, given: bool | Watch | None) -> bool | Watch:
    """What a caller chose; by default a bar where somebody sees it, unless the session shows no bars."""
    if given is not None:
        return given
    return interactive() and Settings(spark).is_true("spark.ui.showConsoleProgress", "true")
