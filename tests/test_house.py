"""The package from outside: its import, its public names, its archives."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek
from pageseek._core.points import AVAILABLE
from pageseek.base.late_modules import ABOVE, above


def loaded_by(code: str) -> set[str]:
    """The modules of a process that ran some code."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return set(json.loads(run.stdout))


def test_import_loads_nothing_until_a_name_is_used() -> None:
    loaded = loaded_by("import pageseek")
    assert {"numpy", "pyarrow", "pageseek.api"}.isdisjoint(loaded)
    assert "pyarrow" in loaded_by("import pageseek; pageseek.scan")


def test_a_lookup_loads_what_it_needs(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": range(1_000)}), path, write_page_index=True)
    code = f"import pageseek as ps; ps.read_table({path!r}, filter=ps.col('id') == 7)"
    loaded = loaded_by(code)
    heavy = {"pyspark", "pandas", "datafusion", "duckdb", "polars", "matplotlib", "rich"}
    assert heavy.isdisjoint(loaded)
    assert {"pyarrow.compute", "pyarrow.fs", "pyarrow.parquet", "ssl", "hashlib"}.isdisjoint(loaded)
    rooms = {name for name in loaded if name.startswith("pageseek.")}
    many_files = {
        "evolution",
        "widening",
        "footer_batches",
        "equality_deletes",
        "group_joints",
        "joined_groups",
    }
    files = {name.rpartition(".")[2] for name in rooms}
    assert many_files.isdisjoint(files)
    if AVAILABLE:  # the core reads the pages of a lookup: nothing is planned
        assert {"planner", "scheduler", "tables", "leaf_reader", "driver"}.isdisjoint(files)
        assert "zstandard" not in loaded
        folders = {name.rpartition(".")[0] for name in rooms}
        assert len(rooms - folders) <= 117, sorted(rooms - folders)


@pytest.mark.timed
def test_a_lookup_costs_little_beyond_numpy_and_pyarrow(tmp_path: Path) -> None:
    """With compiled modules, as an installed package has them: the first run compiles."""
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": range(1_000)}), path, write_page_index=True)
    code = (
        "import time; start = time.process_time()\n"
        "import numpy, pyarrow\n"
        "middle = time.process_time()\n"
        f"import pageseek as ps; ps.read_table({path!r}, filter=ps.col('id') == 7)\n"
        "print((time.process_time() - middle) / (middle - start))"
    )
    compiled = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
        "PYTHONDONTWRITEBYTECODE": "",
        "OPENBLAS_NUM_THREADS": "1",  # its threads cost more or less, as there are cores
    }
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=compiled)
        for _ in range(5)
    ]
    shares = [float(run.stdout) for run in runs[1:]]
    assert min(shares) < 1.0, shares


def imports_of(root: Path) -> dict[str, set[str]]:
    """The files of the package, and what each imports: at its top, within functions, or for types."""
    sources = {
        ".".join(path.relative_to(root / "src").with_suffix("").parts): path
        for path in (root / "src" / "pageseek").rglob("*.py")
        if path.name != "__init__.py"  # it hands on the names of its files
    }
    found: dict[str, set[str]] = {name: set() for name in sources}
    for name, path in sources.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found[name] |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
            elif isinstance(node, ast.Import):
                found[name] |= {one.name for one in node.names}
    return {name: targets & set(sources) - {name} for name, targets in found.items()}


def test_files_do_not_import_each_other_in_a_circle(root: Path) -> None:
    left = imports_of(root)
    # two public classes, each of which has a method that gives the other
    left["pageseek.scanning.queries.scan"].discard("pageseek.scanning.queries.prepared")
    free = {""}
    while free:  # files that import none of the others, and files that none of them imports
        imported = set().union(*left.values())
        free = {name for name in left if not left[name] & set(left) or name not in imported}
        left = {name: targets for name, targets in left.items() if name not in free}
    assert not left, f"these import each other: {sorted(left)}"


def locked_for(root: Path) -> dict[str, set[str]]:
    """Files and packages, and the modules that Python locks while it imports each: its package, and what is imported at its top."""
    src = root / "src"
    paths = {
        ".".join(path.relative_to(src).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (src / "pageseek").rglob("*.py")
    }
    trees = {name: ast.parse(path.read_text()) for name, path in paths.items()}
    late = {  # the file of each name that a package hands on
        f"{name}.{one.asname or one.name}": node.module
        for name, tree in trees.items()
        if paths[name].name == "__init__.py"
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for one in node.names
    }
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        targets = {name.rpartition(".")[0]}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{one.name}" for one in node.names}
                targets |= {node.module, *names, *(late.get(one, "") for one in names)}
            elif isinstance(node, ast.Import):
                targets |= {one.name for one in node.names}
        found[name] = targets & set(paths) - {name}
    return found


def test_threads_that_import_do_not_wait_for_each_other(root: Path) -> None:
    """A package that imports one of its files waits for it, and a thread that imports this file waits for the package."""
    left = locked_for(root)
    del left["pageseek.cli"]  # one thread runs a command
    while free := {name for name in left if not left[name] & set(left)}:
        left = {name: targets for name, targets in left.items() if name not in free}
    assert not left, f"these wait for each other: {sorted(left)}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("index.list", "read_table"),
        ("index", "scan"),
        ("register_pruner", "open"),
        ("dataset", "index.attach"),
    ],
)
def test_two_threads_may_use_the_package_first(one: str, other: str) -> None:
    code = f"""
import operator, sys, threading
import pageseek
sys.setswitchinterval(1e-5)
barrier, failed = threading.Barrier(2), []
def use(name):
    barrier.wait()
    try:
        operator.attrgetter(name)(pageseek)
    except BaseException as error:
        failed.append(f"{{name}}: {{error!r}}")
threads = [threading.Thread(target=use, args=(name,)) for name in ({one!r}, {other!r})]
[thread.start() for thread in threads]
[thread.join(60) for thread in threads]
sys.exit("; ".join(failed) or None)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("method", ABOVE)
def test_functions_of_rooms_above_exist(method: str) -> None:
    assert callable(above(method))


def test_version_is_the_distributions() -> None:
    assert pageseek.__version__ == version("pageseek")


def test_public_names_exist() -> None:
    assert [name for name in pageseek.__all__ if not hasattr(pageseek, name)] == []


def test_test_rooms_are_no_packages(root: Path) -> None:
    assert list((root / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("tool", ["lint.py", "check.py"])
def test_a_tool_refuses_a_name_that_it_does_not_know(root: Path, tool: str) -> None:
    command = [sys.executable, str(root / "tools" / tool), "imports", "lint", "mypi"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        run.returncode == 2 and "mypi; there are: " in run.stderr and "Traceback" not in run.stderr
    )


def test_wheels_are_tested_by_tests_that_exist(root: Path) -> None:
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    named = re.findall(r"\{project\}/([\w/.]+)", " ".join(wheel["test-command"]))
    assert "tests/core" in named and [name for name in named if not (root / name).exists()] == []


def test_every_marker_is_described(root: Path) -> None:
    options = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    names = {line.partition(":")[0].partition("(")[0] for line in options["markers"]}
    assert names == {"spark", "cluster", "slow", "covering", "timed"}


@pytest.mark.slow
def test_archives_hold_what_they_should(root: Path, tmp_path: Path) -> None:
    archives = Path(os.environ.get("PAGESEEK_ARCHIVES", tmp_path))  # built already, or by this test
    if archives == tmp_path:
        pytest.importorskip("build")
        command = [sys.executable, "-m", "build", "--quiet", "--outdir", str(archives), str(root)]
        subprocess.run(command, check=True)
    (sdist,), (wheel,) = archives.glob("*.tar.gz"), archives.glob("*.whl")
    with tarfile.open(sdist) as tar:
        sources = {name.partition("/")[2] for name in tar.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        installed = set(archive.namelist())

    modules = {path.stem for path in (root / "_core").glob("*.pyx")}
    for pattern in ("_core/*.pyx", "_core/*.pyi", "_core/*.h", "_core/c/*.[ch]", "tests/**/*.py"):
        files = {path.relative_to(root).as_posix() for path in root.glob(pattern)}
        assert files <= sources, f"the sdist lacks {sorted(files - sources)}"
    assert not {f"_core/{module}.c" for module in modules} & sources, "generated C in the sdist"
    assert "LICENSE" in sources

    unwanted = (".c", ".h", ".pyx", ".pxd")
    assert [name for name in installed if name.endswith(unwanted)] == []
    assert [name for name in installed if "/tests/" in name or name.startswith("tests/")] == []
    assert "pageseek/py.typed" in installed
    for module in modules:
        assert f"pageseek/_core/{module}.pyi" in installed
        assert [name for name in installed if name.startswith(f"pageseek/_core/{module}.")][1:]


QUERIES = """
import sys
import pageseek as ps

path, c = sys.argv[1], ps.col
for condition in (
    None, c("id") == 5, c("word") == "w3", c("real") < 0.5, c("id").isin([1, 2, 3]), c("word").starts_with("w1"),
    c("word").is_null(), [("id", ">", 7)], "id = 5 and real > 0.5", "word like '%w_%'", "not (word = 'w3' or real < 0)",
):
    scan = ps.scan(path, filter=condition)
    scan.to_table(), scan.count_rows(), scan.limit(2).to_table(), scan.explain(analyze=True)
    scan.with_row_number("n").to_table()
ps.read_table([path] * 20, filter="word = 'w3'")
sys.exit("pandas" in sys.modules and "pandas was imported")
"""


def test_no_query_imports_pandas(tmp_path: Path) -> None:
    """Many functions of pyarrow import pandas if it is installed, which takes longer than a query."""
    path = tmp_path / "a.parquet"
    n = range(4000)
    table = pa.table(
        {"id": n, "real": [i / 7 for i in n], "word": [f"w{i % 9}" if i % 5 else None for i in n]}
    )
    pq.write_table(table, path, row_group_size=1000)
    pageseek.index.attach(path, distinct=["word"], in_place=True)
    done = subprocess.run(
        [sys.executable, "-c", QUERIES, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
