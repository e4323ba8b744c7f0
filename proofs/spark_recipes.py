"""Proof that the recipes of docs/spark.md put pageseek onto executors: each runs in new environments, on a cluster of two executors.

    python proofs/spark_recipes.py [installed] [packed] [artifact] [--folder DIR]

*installed*: the nodes' Python is another environment than the driver's, with the wheel. *packed*: the nodes get an environment that
`venv-pack` has packed, by `spark.archives`. *artifact*: a server of Spark Connect whose Python has no pageseek gets an archive
of the unpacked wheel from its client. The rows are compared with those of Spark's own reader, and the tasks say which pageseek
they have imported. `--folder` keeps the environments for the next run. Exit code 1 if a recipe fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from results import Failed, run
from spark_versions import CONDITIONS, PACKAGES, ROOT, ROWS, built, write_files

PAGE, TITLE = ROOT / "docs" / "proofs.md", "## pageseek on executors\n"
HEAD = f"""{TITLE}
Results of `python proofs/spark_recipes.py`: the recipes of [spark.md](spark.md#pageseek-on-the-executors), in new environments, on two
executors. The command fails if rows differ from those of Spark's own reader, or if a task imports pageseek from another place than the recipe's.

| proof | date | what was run | found |
|---|---|---|---|
"""
CLUSTER = "local-cluster[2,1,1024]"
SPARK = "pyspark[connect]>=4.1", "venv-pack", "zstandard"


def environment(place: Path, *packages: str) -> Path:
    """The Python of a new environment with some packages."""
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    return python


# -- in the driver's environment ------------------------------------------------------------------


def session(config: Mapping[str, str], remote: bool) -> Any:
    """A session on two executors: Classic, or of a server of Connect."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    builder = builder.remote(CLUSTER) if remote else builder.master(CLUSTER)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.parquet.filterPushdown": "false",
        **config,
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def job(about: dict[str, Any]) -> dict[str, Any]:
    """What a recipe gives: conditions of which the rows differ, and where the tasks' pageseek lies."""
    from pageseek.spark import load, read, write

    spark, path = session(about["config"], about["remote"]), about["data"]
    if about["archive"] is not None:
        spark.addArtifacts(f"{about['archive']}#site", archive=True)
    more = {} if about["archive"] is None else {"python_path": "site"}
    own = spark.read.parquet(path)

    def rows(frame: Any) -> list[str]:
        return sorted(map(str, frame.collect()))

    wrong = []
    for condition in ("true", *CONDITIONS):
        wanted = rows(own.where(condition).select("k", "s"))
        ways = {"read": lambda c=condition: read(spark, path, ["k", "s"], c, tasks=2, **more)}
        if not about["remote"]:
            table = load(spark, path, local=False, native=False, tasks=2)
            ways["load"] = lambda c=condition, t=table: t.where(c).select("k", "s")
        wrong += [f"{name}: {condition}" for name, way in ways.items() if rows(way()) != wanted]
    if not about["remote"]:
        written = f"{path}-written"
        done = write(load(spark, path), written, cluster_by="k", bloom=["k"])
        if done.rows != ROWS or rows(spark.read.parquet(written)) != rows(own):
            wrong.append("write")

    def told(batches: Any) -> Any:
        import sys

        import pyarrow as pa

        if more and "site" not in sys.path:
            sys.path.insert(0, "site")
        import pageseek

        place = os.path.abspath(pageseek.__file__)
        yield from (pa.RecordBatch.from_pydict({"place": [place]}) for _ in batches)

    places = read(spark, path, ["k"], tasks=2, **more).mapInArrow(told, "place string")
    return {"wrong": wrong, "places": sorted({row[0] for row in places.collect()})}


# -- the recipes ----------------------------------------------------------------------------------


def tried(folder: Path, wheel: Path, python: Path | str, **about: Any) -> tuple[int, list[str]]:
    """Run a recipe; the number of conditions, and where the tasks have imported pageseek from. `python`: that of the executors."""
    driver = environment(folder / "driver", *PACKAGES, *SPARK, str(wheel))
    with tempfile.TemporaryDirectory() as data:
        os.mkdir(f"{data}/files")
        write_files(f"{data}/files")
        said = {"data": f"{data}/files", "config": {}, "remote": False, "archive": None, **about}
        done = subprocess.run(
            [str(driver), str(Path(__file__).resolve()), "--job", json.dumps(said)],
            capture_output=True, text=True, cwd=data, check=False,
            env={**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(driver), "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    if not answers:
        raise Failed(f"exit {done.returncode}: {done.stderr[-3000:]}")
    found = json.loads(answers[0].removeprefix("ANSWERS "))
    if found["wrong"]:
        raise Failed(f"other rows: {found['wrong']}")
    return len(CONDITIONS) + 1, found["places"]


def check_places(places: list[str], part: str) -> str:
    """That all tasks have imported pageseek from a path with a part."""
    if not places or not all(part in place for place in places):
        raise Failed(f"tasks have imported {places}, which is not the recipe's ({part})")
    return f"pageseek imported from .../{part}/..."


def installed(folder: Path, wheel: Path) -> tuple[str, str]:
    node = environment(folder / "node", *PACKAGES, str(wheel))
    queries, places = tried(folder, wheel, node)
    return f"{queries} queries of read and load, a write", check_places(places, "node/lib")


def packed(folder: Path, wheel: Path) -> tuple[str, str]:
    environment(folder / "node", *PACKAGES, str(wheel))
    driver = environment(folder / "driver", *PACKAGES, *SPARK, str(wheel))
    archive = folder / "environment.tar.gz"
    pack = [str(driver.with_name("venv-pack")), "-q", "--force", "-p", str(folder / "node")]
    subprocess.run([*pack, "-o", str(archive)], check=True)
    config = {"spark.archives": f"{archive}#environment"}
    queries, places = tried(folder, wheel, "./environment/bin/python", config=config)
    return f"{queries} queries of read and load, a write", check_places(places, "environment/lib")


def artifact(folder: Path, wheel: Path) -> tuple[str, str]:
    bare = environment(folder / "bare", *PACKAGES)
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
    subprocess.run([*command, "--target", str(site), str(wheel)], check=True)
    archive = folder / "site.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for one in site.iterdir():
            made.add(one, one.name)
    queries, places = tried(folder, wheel, bare, remote=True, archive=str(archive))
    return f"{queries} queries of read over Connect", check_places(places, "site/pageseek")


RECIPES: dict[str, Callable[[Path, Path], tuple[str, str]]] = {
    "installed": installed,
    "packed": packed,
    "artifact": artifact,
}


def main(arguments: list[str]) -> int:
    """Run the recipes named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.job is not None:
        print("ANSWERS " + json.dumps(job(json.loads(given.job))), flush=True)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        wheel = built(folder)
        proofs = {name: partial(recipe, folder, wheel) for name, recipe in RECIPES.items()}
        return run(
            proofs, given.recipes, PAGE, TITLE, lambda before: f"{before.rstrip()}\n\n{HEAD}"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
