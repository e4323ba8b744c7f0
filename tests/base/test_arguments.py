"""Arguments of a wrong type or size: the error names the argument, its value and what is wanted, in a traceback of one frame."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]}), "t.parquet")
    return "t.parquet"


WRONG_OPTIONS: list[tuple[str, Any, type[Exception], str]] = [
    ("batch_size", True, TypeError, "batch_size=True: an integer"),
    ("distinct_index", 3, TypeError, "distinct_index=3: the name of one column"),
    ("limit", True, TypeError, "limit=True: an integer"),
    ("max_metadata_bytes", "x", TypeError, "max_metadata_bytes='x': an integer"),
    ("max_output_bytes", None, TypeError, "max_output_bytes=None: an integer"),
    ("max_page_bytes", "x", TypeError, "max_page_bytes='x': an integer"),
    ("max_page_bytes", 0, ValueError, "max_page_bytes=0: at least 1"),
    ("progress", "yes", TypeError, "progress='yes': True, False, or a function that takes a pageseek.Progress"),
    ("progress", 3, TypeError, "progress=3: True, False, or a function that takes a pageseek.Progress"),
    ("retries", -1, ValueError, "retries=-1: not negative"),
    ("retries", True, TypeError, "retries=True: an integer"),
    ("storage_options", [("a", "secret")], TypeError, "storage_options=list: a dict of the names and values of options"),
    ("table", "delta", TypeError, "table='delta': True or False"),
    ("table", 3, TypeError, "table=3: True or False"),
    ("threads", "2", TypeError, "threads='2': an integer"),
    ("timeout", "5", TypeError, "timeout='5': a number of seconds"),
    ("timeout", -1, ValueError, "timeout=-1.0: seconds, above 0"),
    ("timeout", [1], TypeError, "timeout=[1]: a number of seconds"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "kind", "text"), WRONG_OPTIONS)
def test_options_of_scans(
    name: str, value: object, kind: type[Exception], text: str, path: str
) -> None:
    with pytest.raises(kind) as caught:
        ps.read_table(path, **{name: value})
    assert str(caught.value) == text
    _is_short(caught.value)


def test_options_that_are_right_at_their_ends(path: str) -> None:
    whole = ps.read_table(path)
    options: list[dict[str, Any]] = [
        {"max_page_bytes": 2**64, "max_output_bytes": 2**90, "max_metadata_bytes": 2**63},
        {"max_page_bytes": np.int64(1 << 20), "limit": np.int32(3), "batch_size": np.uint8(2)},
        {"timeout": 3, "retries": np.int64(2)},
        {"timeout": np.float32(3)},
        {"table": np.True_, "storage_options": {}},
        {"progress": lambda _: None},
        {"threads": np.int64(1), "distinct_index": "s"},
        {"limit": 2**70},
    ]
    for some in options:
        assert ps.read_table(path, **some) == whole, some


def _is_short(error: BaseException) -> None:
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "src/pageseek" in f.filename]
    assert len(ours) == 1, traceback.format_exception(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_arguments_of_functions(path: str, tmp_path: Path) -> None:
    scan, file = ps.scan(path), ps.open(path)
    plan = scan.plan()
    into: dict[str, Any] = {"output": "new.parquet"}
    wrong: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: scan.aggregate(None), ps.PredicateError, "aggregate: None: give a list of 'count' and of pairs of a column and a function"),  # type: ignore[arg-type]
        (lambda: plan.split("a"), TypeError, "n='a': an integer"),  # type: ignore[arg-type]
        (lambda: plan.split(1.5), TypeError, "n=1.5: an integer"),  # type: ignore[arg-type]
        (lambda: plan.divide("a"), TypeError, "n='a': an integer"),  # type: ignore[arg-type]
        (lambda: scan.limit(True), TypeError, "limit=True: an integer"),
        (lambda: file.offset_index("a", "id"), TypeError, "row_group='a': an integer"),  # type: ignore[arg-type]
        (lambda: ps.open(path, table=3), TypeError, "table=3: True or False"),  # type: ignore[arg-type]
        (lambda: ps.save_cache(3), TypeError, "path=3: a path"),  # type: ignore[arg-type]
        (lambda: ps.load_cache(3), TypeError, "path=3: a path"),  # type: ignore[arg-type]
        (lambda: ps.index.verify(path, threads="x"), TypeError, "threads='x': an integer"),  # type: ignore[arg-type]
        (lambda: ps.index.verify(path, progress=3), TypeError, "progress=3: True, False, or a function that takes a pageseek.Progress"),  # type: ignore[arg-type]
        (lambda: ps.index.verify(path, table="x"), TypeError, "table='x': True or False"),  # type: ignore[arg-type]
        (lambda: ps.index.verify(path, thread=1), TypeError, "there is no option thread=; did you mean threads=?"),  # type: ignore[call-arg]
        (lambda: ps.index.attach(path, lookup=3, **into), TypeError, "lookup=3: a list of names"),  # type: ignore[arg-type]
        (lambda: ps.index.attach(path, bloom=3, **into), TypeError, "bloom=3: a list of names"),  # type: ignore[arg-type]
        (lambda: ps.index.attach(path, page_index=3, **into), TypeError, "page_index=3: a list of names"),  # type: ignore[arg-type]
        (lambda: ps.index.attach(path, progress=3, **into), TypeError, "progress=3: True, False, or a function that takes a pageseek.Progress"),  # type: ignore[arg-type]
        (lambda: ps.index.attach(path, threads=0, **into), ValueError, "threads=0: at least 1"),
        (lambda: ps.index.attach(path, loookup=["id"], **into), TypeError, "there is no option loookup=; did you mean lookup=?"),  # type: ignore[call-arg]
        (lambda: ps.index.attach(path, indexes=["id"], **into), TypeError, "indexes=['id']: a dict of kinds of indexes and their columns, such as {'bitmap': ['state']}"),  # type: ignore[arg-type]
        (lambda: ps.index.attach_all(path, progress=3), TypeError, "progress=3: True, False, or a function that takes a pageseek.Progress"),  # type: ignore[arg-type]
        (lambda: ps.index.attach_all(path, loookup=["id"]), TypeError, "there is no option loookup=; did you mean lookup=?"),
        (lambda: ps.index.detach(path, in_plac=True), TypeError, "there is no option in_plac=; did you mean in_place=?"),  # type: ignore[call-arg]
        (lambda: scan.write_parquet("w.parquet", compressionn="zstd"), TypeError, "there is no option compressionn=; compression: it is called codec here, such as codec='zstd'"),  # type: ignore[call-arg]
        (lambda: scan.write_parquet("w.parquet", compression="snappy"), TypeError, "compression='snappy': it is called codec here, such as codec='zstd'"),  # type: ignore[call-arg]
        (lambda: scan.write_parquet("w.parquet", row_group_size=5), TypeError, "row_group_size=5: use row_group_rows="),  # type: ignore[call-arg]
        (lambda: ps.advise(path, quers=["id = 3"]), TypeError, "there is no option quers=; did you mean queries=?"),
    ]  # fmt: skip
    for work, kind, text in wrong:
        with pytest.raises(kind) as caught:
            work()
        assert str(caught.value) == text
        _is_short(caught.value)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["t.parquet"]
