"""Writes the classes of a Spark session into an archive of Java (`build/spark-classes.jsa`), which the sessions of the tests load.

The tests start dozens of Java processes, and each would load, check and link the same thousands of classes out of the jars. Java
itself compares the archive with its own version and with the jars, and goes without an archive that does not fit. Without Java or
pyspark there is none.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from steps import PYTHON, ROOT

ARCHIVE = ROOT / "build" / "spark-classes.jsa"

# what the sessions of most tests do: SQL, joins, files written and read, functions of Python over Arrow
SESSION = """
import sys
from pyspark.sql import SparkSession

settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.range(1_000).selectExpr("id", "id % 7 AS k", "cast(id AS string) AS s", "timestamp_micros(id) AS t").write.parquet(sys.argv[1])
frame = spark.read.parquet(sys.argv[1])
frame.createOrReplaceTempView("rows")
frame.filter("id < 9 AND s LIKE '%5' OR k IN (1, 2)").orderBy("s").limit(5).collect()
spark.sql("SELECT k, count(*), max(t) FROM rows GROUP BY k ORDER BY k").collect()
spark.sql("SELECT /*+ MERGE(b) */ a.id FROM rows a JOIN rows b ON a.id = b.k").count()
spark.sql("SELECT /*+ BROADCAST(b) */ a.id FROM rows a JOIN rows b ON a.id = b.k").toArrow()
frame.mapInArrow(lambda batches: batches, frame.schema).count()
spark.createDataFrame([(1, "a")], "n int, s string").explain()
spark.stop()
"""


def main() -> int:
    """Write the archive; 1 if the session fails."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        print("no Java, or no pyspark: no archive")
        return 0
    ARCHIVE.parent.mkdir(exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / ARCHIVE.name
        env = os.environ | {
            "JDK_JAVA_OPTIONS": f"-XX:ArchiveClassesAtExit={made} -Xlog:disable -XX:+UseSerialGC",
            "PYSPARK_PYTHON": PYTHON,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [PYTHON, "-c", SESSION, str(Path(folder) / "rows")]
        # ends when Java has ended, whose output it is as well
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n")
            return 1
        if not made.exists():
            print("this Java writes no archive")
            return 0
        shutil.move(made, ARCHIVE)
    print(f"{ARCHIVE.relative_to(ROOT)}: {ARCHIVE.stat().st_size >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
