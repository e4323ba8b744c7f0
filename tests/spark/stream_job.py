"""Run by the tests as a process of its own, which may be killed: a stream from one folder to another.

usage: stream_job.py SOURCE CHECKPOINT OUTPUT {forever|once}
"""

from __future__ import annotations

import sys
import warnings

from job import session

from pageseek.spark import register

warnings.simplefilter("ignore")


def main(source: str, checkpoint: str, output: str, until: str) -> None:
    spark = session("master", "local[2]")
    register(spark)
    reader = spark.readStream.format("pageseek").schema("k long, p int")
    frame = reader.option("maxFilesPerTrigger", "1").load(source)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    trigger = {"availableNow": True} if until == "once" else {"processingTime": "0 seconds"}
    writer.trigger(**trigger).start(output).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
