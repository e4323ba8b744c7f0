"""Spark sessions for proofs."""

from __future__ import annotations

import os
import sys
from typing import Any

from support.sql_doors import ORACLE


def session(connect: bool = False) -> Any:
    """A local session, Classic or Connect, with a server of its own. A process has one kind."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    if connect:
        os.environ["SPARK_TESTING"] = "1"  # a free port
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if connect else builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.driver.memory": "2g",
        "spark.log.level": "OFF",
        "spark.sql.codegen.wholeStage": "false",  # it takes longer than such few rows
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        **ORACLE,
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
