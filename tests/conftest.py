"""Fixtures that several rooms of the tests share."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import pageseek as ps
from pageseek.scanning.queries.execution import Execution
from pageseek.storage import endpoint as endpoints
from support.local_reads import hook_local_reads
from support.made_once import MadeOnce
from support.object_server.server import ObjectServer
from support.quick_fsync import checked_only
from support.remote_files import PATH, content
from support.store_log import Log
from support.tiers import FULL, chosen_values, covering, examples

ROOT = Path(__file__).resolve().parent.parent
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK_CLASSES = ROOT / "build" / "spark-classes.jsa"  # by tools/spark_classes.py

# for random tests that do not say themselves how many examples they try
settings.register_profile(
    "pageseek",
    max_examples=examples(100),
    deadline=None,
    # of 16-bit floats, Hypothesis itself rejects most of what it draws
    suppress_health_check=[HealthCheck.filter_too_much],
)
settings.load_profile("pageseek")


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests marked `covering`, those that the sample does not need are slow. Tests marked `timed` are tried again."""
    for item in items:
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=2))
    groups: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("covering"):
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in groups.values():
        (strength,) = next(group[0].iter_markers("covering")).args
        sample = covering([chosen_values(item.callspec) for item in group], strength)
        for number, item in enumerate(group):
            if number not in sample:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """The half a million objects of the tests themselves stay: no collection of garbage looks at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _quick_fsync() -> Iterator[None]:
    """Files of tests need not outlive a crash of the machine, and each wait for the disk takes milliseconds.

    `make test-all` does wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr(os, "fsync", checked_only)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project's sources."""
    return ROOT


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of conformance files next to the checkout."""
    path = ROOT.parent / "shared" / "conformance"
    if not (path / "corpus").is_dir():
        pytest.skip("no conformance corpus beside this checkout")
    return path


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Files that take long to write are written once by each process. Each test gets copies, and may change them."""
    made: dict[Hashable, tuple[Path, Any]] = {}

    def copied(key: Hashable, make: Callable[[Path], Any], folder: Path) -> Any:
        if key not in made:
            template = tmp_path_factory.mktemp("made_once")
            made[key] = template, make(template)
        template, result = made[key]
        shutil.copytree(template, folder, dirs_exist_ok=True)
        return result

    return copied


@pytest.fixture
def object_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """An object server with its objects in memory: at once and faultless, until told otherwise. Its requests are
    those of the distance that is assumed of any server, however busy this machine is.
    """
    monkeypatch.setattr(
        endpoints, "_known", {}
    )  # a port or a bucket may have been another server's
    monkeypatch.setattr(endpoints.Endpoint, "measured", lambda *_: None)
    with ObjectServer() as server:
        yield server


@pytest.fixture
def measured_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """An object server whose latency and bandwidth are learned from its responses."""
    monkeypatch.setattr(endpoints, "_known", {})
    with ObjectServer() as server:
        yield server


@pytest.fixture(scope="session")
def spark_ready() -> None:
    """Skip where Spark cannot run; else make its workers use this very Python."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'pageseek[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java: install Java 17 or 21, or set JAVA_HOME")
    # Otherwise workers run python3 from PATH, and bind to the address of the host name.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Nearly all code of Spark runs a few times here: to compile it well takes half of the time of the processors.
    given = os.environ.get("JDK_JAVA_OPTIONS", "")
    if SPARK_CLASSES.exists() and "-XX:SharedArchiveFile" not in given:
        # Java goes without an archive that does not fit, and would print so where programs print their answers.
        given = f"-XX:SharedArchiveFile={SPARK_CLASSES} -Xlog:disable {given}"
    if QUICK_JAVA not in given:
        os.environ["JDK_JAVA_OPTIONS"] = f"{QUICK_JAVA} {given}".rstrip()


@pytest.fixture(scope="session")
def spark(spark_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local session of two cores for the whole run: it takes seconds to start."""
    from pyspark.sql import SparkSession

    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pageseek-tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", warehouse.as_uri())
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups go the way of every scan. Only prepared queries are answered by few reads."""
    monkeypatch.setattr(Execution, "table", Execution.scanned)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, scans: None) -> Log:
    """Every range that is read from a local file from here on, but for reads of the core itself."""
    made = Log()
    hook_local_reads(monkeypatch, lambda _, ranges: made.ranges.extend(ranges))
    return made


@pytest.fixture
def server(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """One that has a file and is tried again at once, for those who have none of their own making."""
    monkeypatch.setattr("pageseek.storage.retry.FIRST_WAIT", 0.01)
    ps.clear_cache()
    object_server.put(PATH, content())
    return object_server
