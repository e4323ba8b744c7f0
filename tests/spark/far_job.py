"""Run by the tests as a process of its own: a query of files in a store, by tasks, whose workers keep footers in a folder.

usage: far_job.py SOURCE STORAGE_OPTIONS CONDITION FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")


def main(source: str, storage_options: str, condition: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PAGESEEK_FOOTER_CACHE": folder,
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()

    from pageseek.spark import load, report

    options = json.loads(storage_options)
    frame = load(spark, source, storage_options=options, local=False, tasks=1).where(condition)
    found = sorted(map(list, frame.select("seed", "id").collect()))
    sys.stdout.write("ANSWERS " + json.dumps([found, report(frame).notes]) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
