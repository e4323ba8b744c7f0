"""Errors that are raised on purpose show the frames of the caller and one of pageseek; bugs show all."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import errors
from pageseek.base.tracebacks import VARIABLE, short_traceback, shorten
from pageseek.scanning.queries.execution import Execution

PACKAGE = str(Path(ps.__file__).parent)
MISSPELT = pc.field("idd") > 3


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound file, one whose pages are damaged, and one that is cut short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    table = pa.table({"id": range(1000), "text": ["x"] * 1000})
    pq.write_table(table, "good.parquet", write_page_index=True)
    content = Path("good.parquet").read_bytes()
    Path("bad.parquet").write_bytes(content[:4] + b"\xff" * 3000 + content[3004:])
    Path("cut.parquet").write_bytes(content[:500])


def frames(error: BaseException) -> list[str]:
    """The functions of pageseek in a traceback."""
    summary = traceback.extract_tb(error.__traceback__)
    return [frame.name for frame in summary if frame.filename.startswith(PACKAGE)]


def error_of(call: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each has its own
        call()
    return caught.value


def query() -> ps.PreparedQuery:
    return ps.scan("good.parquet").prepare(ps.col("id") == ps.param("k"))


async def iterated() -> None:
    async for _ in ps.aio.to_batches("bad.parquet"):
        pass


ENTRANCES: dict[str, tuple[str, Callable[[], Any]]] = {
    "missing file": ("read_table", lambda: ps.read_table("missing.parquet")),
    "corrupt file": ("read_table", lambda: ps.read_table("cut.parquet")),
    "corrupt page": ("read_table", lambda: ps.read_table("bad.parquet")),
    "corrupt page of a lookup": ("read_table", lambda: ps.read_table("bad.parquet", filter="id = 5")),
    "misspelt column": ("read_table", lambda: ps.read_table("good.parquet", filter="idd = 3")),
    "SQL": ("scan", lambda: ps.scan("good.parquet", filter="id >> 3")),
    "unknown option": ("read_table", lambda: ps.read_table("good.parquet", batchsize=5)),  # type: ignore[call-arg]
    "open": ("open_file", lambda: ps.open("cut.parquet")),
    "ParquetFile": ("chunk", lambda: ps.open("good.parquet").chunk(0, "idd")),
    "batches": ("_watched", lambda: list(ps.scan("bad.parquet").to_batches())),
    "loop": ("_watched", lambda: list(ps.scan("bad.parquet"))),
    "batches of a missing column": ("to_batches", lambda: ps.scan("good.parquet").select("idd").to_batches()),
    "reader": ("_watched", lambda: ps.scan("bad.parquet").to_reader().read_all()),
    "pandas": ("to_pandas", lambda: ps.scan("bad.parquet").to_pandas()),
    "schema": ("schema", lambda: ps.scan("cut.parquet").schema),
    "columns": ("columns", lambda: ps.scan("cut.parquet").columns),
    "count": ("count", lambda: ps.scan("cut.parquet").count()),
    "aggregate": ("aggregate", lambda: ps.scan("good.parquet").aggregate([("idd", "min")])),
    "explain": ("explain", lambda: ps.scan("good.parquet").filter("idd = 3").explain()),
    "take": ("to_table", lambda: ps.scan("good.parquet").take([5_000]).to_table()),
    "limit": ("limit", lambda: ps.scan("good.parquet").limit(-1)),
    "plan": ("plan", lambda: ps.scan("cut.parquet").plan()),
    "executed plan": ("execute", lambda: list(ps.scan("bad.parquet").plan().execute())),
    "prepare": ("prepare", lambda: ps.scan("good.parquet").prepare(ps.col("idd") == ps.param("k"))),
    "prepared query": ("__call__", lambda: query()("x")),
    "prepared query without a value": ("__call__", lambda: query()()),
    "many": ("many", lambda: query().many(["x"])),
    "comparison": ("__gt__", lambda: ps.col("id") > (ps.col("text") == "x")),
    "and": ("__and__", lambda: (ps.col("id") > 3) & 4),  # type: ignore[operator]
    "isin": ("isin", lambda: ps.col("id").isin("text")),
    "rewrite": ("rewrite", lambda: ps.rewrite("bad.parquet", "new.parquet")),
    "attach": ("attach", lambda: ps.index.attach("missing.parquet")),
    "attach to a misspelt column": ("attach", lambda: ps.index.attach("good.parquet", output="new.parquet", bitmap=["idd"])),
    "detach": ("detach", lambda: ps.index.detach("missing.parquet")),
    "list": ("listed", lambda: ps.index.list("missing.parquet")),
    "verify": ("verify", lambda: ps.index.verify("missing.parquet")),
    "advise": ("advise", lambda: ps.advise("good.parquet", ["idd = 3"])),
    "dataset": ("to_table", lambda: ps.dataset("good.parquet").to_table(filter=MISSPELT)),
    "batches of a dataset": ("_projected", lambda: list(ps.dataset("bad.parquet").to_batches())),
    "aio": ("read_table", lambda: asyncio.run(ps.aio.read_table("bad.parquet"))),
    "aio count": ("count_rows", lambda: asyncio.run(ps.aio.count_rows("cut.parquet"))),
    "aio batches": ("to_batches", lambda: asyncio.run(iterated())),
    "aio query": ("__call__", lambda: asyncio.run(query().aio("x"))),
}  # fmt: skip


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_an_error_on_purpose_shows_the_public_function_alone(entrance: str) -> None:
    name, call = ENTRANCES[entrance]
    error = error_of(call)
    assert frames(error) == [name]
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    text = "".join(traceback.format_exception(error))
    assert text.count("Traceback (most recent call last)") == 1


@pytest.mark.parametrize("entrance", ["misspelt column", "batches", "aio", "pandas"])
def test_the_environment_keeps_all_frames(entrance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "full")
    error = error_of(ENTRANCES[entrance][1])
    assert len(frames(error)) > 2
    assert "short_traceback" not in "".join(traceback.format_tb(error.__traceback__))


@pytest.mark.parametrize(
    "bug", [KeyError("k"), IndexError("i"), AssertionError("a"), NotImplementedError("n")]
)
def test_a_bug_keeps_all_frames(bug: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise bug  # by a module that is not pageseek's

    monkeypatch.setattr(Execution, "_looked_up", broken)
    for call in (lambda: ps.read_table("good.parquet"), ps.scan("good.parquet").to_table):
        error = error_of(call)
        assert error is bug
        assert frames(error)[-2:] == ["to_table", "table"]
        bug.__traceback__ = None


def test_errors_that_the_interpreter_raises_in_pageseek_are_bugs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pageseek.scanning.queries.execution.parameters_of", None)
    error = error_of(lambda: ps.read_table("good.parquet", filter="id = 3"))
    assert isinstance(error, TypeError)
    assert frames(error) == ["read_table", "to_table", "table", "_looked_up"]


def test_errors_of_a_callers_function_keep_all_frames() -> None:
    def failing(_: ps.Progress) -> None:
        raise RuntimeError("mine")

    def reading(_: ps.Progress) -> None:
        ps.read_table("missing.parquet")

    for progress in (failing, reading):
        error = error_of(lambda progress=progress: ps.read_table("good.parquet", progress=progress))
        shown = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        assert progress.__name__ in shown and len(frames(error)) > 3


def test_the_cause_of_an_error_of_a_callers_pruner_is_shown_without_frames_of_pageseek() -> None:
    class Mine:
        name, cheap = "mine", True

        def price(self, *_: Any) -> int:
            return {}["mine"]  # type: ignore[no-any-return]

        def prune(self, *_: Any) -> Iterator[Any]:
            yield from ()

    ps.register_pruner(Mine())
    try:
        error = error_of(lambda: ps.read_table("good.parquet", filter="id = 3", prune=["mine"]))
    finally:
        ps.unregister_pruner("mine")
    assert isinstance(error, ps.PrunerError) and frames(error) == ["read_table"]
    assert isinstance(error.__cause__, KeyError)
    shown = traceback.extract_tb(error.__cause__.__traceback__)
    assert [frame.name for frame in shown] == ["price"]


@short_traceback
def outer(cause: Exception, error: Exception, hidden: bool = False) -> None:
    try:
        raise cause
    except Exception as found:
        if hidden:
            raise error from None
        raise error from found


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of this module are pageseek's."""
    monkeypatch.setitem(globals(), "__name__", "pageseek.tests")


@pytest.mark.parametrize(
    ("cause", "shown"),
    [
        (OSError("connection reset"), True),
        (pa.ArrowInvalid("a fact"), True),
        (OSError("the store is away"), False),  # the message has it
        (KeyError("inside"), False),
        (errors.CoreError(1, 4, "truncated"), False),
        (errors.InvalidIndexError("damaged"), False),
    ],
    ids=repr,
)
def test_causes_are_shown_if_they_are_of_others_and_add_facts(
    ours: None, cause: Exception, shown: bool
) -> None:
    made = ps.StoreError("a.parquet: the store is away")
    error = error_of(lambda: caller(lambda: outer(cause, made)))
    assert error is made
    assert (error.__cause__ is cause) == shown
    assert error.__suppress_context__ and error.__context__ is cause  # nothing is lost
    assert (cause.__traceback__ is None) == shown


def test_what_the_caller_was_handling_stays() -> None:
    script = (
        "import pageseek as ps\n"
        "try:\n    {}['mine']\nexcept KeyError:\n    ps.read_table('missing.parquet')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "KeyError: 'mine'" in done.stderr and "During handling" in done.stderr
    assert done.stderr.count(PACKAGE) == 1


def caller(call: Callable[..., Any], *args: Any) -> Any:
    return call(*args)


def test_an_error_stays_the_same_object_with_its_notes(ours: None) -> None:
    made = ps.UnsupportedError("no")
    made.add_note("a note")
    error = error_of(lambda: outer(KeyError(), made))
    assert error is made and error.__notes__ == ["a note"]
    assert pickle.loads(pickle.dumps(error)).args == ("no",)


def test_an_error_may_be_raised_again_and_by_threads(ours: None) -> None:
    failed: Future[None] = Future()
    failed.set_exception(ps.CorruptFileError("once"))

    @short_traceback
    def first() -> None:
        failed.result()

    @short_traceback
    def second() -> None:
        first()

    gate = threading.Barrier(8)

    def name_of(call: Callable[[], None]) -> str:
        gate.wait()
        for _ in range(200):
            error = error_of(call)
            assert error is failed.exception() and error.args == ("once",)
        return call.__name__

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(name_of, [first, second] * 4))
    assert names == ["first", "second"] * 4
    for call in (first, second, first):
        shown = traceback.extract_tb(error_of(call).__traceback__)
        assert [frame.name for frame in shown][-1] == call.__name__
        assert "first" not in [frame.name for frame in shown][:-1]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration])
def test_what_is_no_error_passes_untouched(ours: None, kind: type[BaseException]) -> None:
    made = kind()

    @short_traceback
    def passing() -> None:
        deep()

    def deep() -> None:
        raise made

    with pytest.raises(kind) as caught:
        passing()
    assert caught.value is made
    assert [frame.name for frame in traceback.extract_tb(made.__traceback__)][-1] == "deep"


def test_a_call_with_wrong_arguments_is_an_error_of_the_caller_alone() -> None:
    error = error_of(lambda: ps.read_table())  # type: ignore[call-arg]
    assert isinstance(error, TypeError) and frames(error) == []


def test_signatures_and_names_are_kept() -> None:
    parameters = inspect.signature(ps.read_table).parameters
    assert list(parameters)[:4] == ["source", "columns", "filter", "limit"]
    assert parameters["batch_size"].default == (ps.scan.__kwdefaults__ or {})["batch_size"]
    assert ps.read_table.__doc__ and ps.read_table.__module__ == "pageseek.api"
    assert inspect.iscoroutinefunction(ps.aio.read_table)
    assert pickle.loads(pickle.dumps(ps.read_table)) is ps.read_table
    assert ps.ScanPlan.execute.__qualname__ == "ScanPlan.execute"


def test_a_generator_is_closed_and_sent_to_as_before() -> None:
    told: list[Any] = []

    @short_traceback
    def numbers() -> Any:
        try:
            told.append((yield 1))
            yield 2
        finally:
            told.append("closed")

    made = numbers()
    assert next(made) == 1 and made.send("sent") == 2
    made.close()
    assert told == ["sent", "closed"]
    assert list(numbers()) == [1, 2]


def test_an_async_iterator_that_is_left_early_is_closed() -> None:
    async def first() -> int:
        batches: AsyncIterator[pa.RecordBatch] = ps.aio.to_batches("good.parquet")
        async for batch in batches:
            return int(batch.num_rows)
        return 0

    assert asyncio.run(first()) == 1000


def test_tracebacks_that_others_hold_are_not_changed(ours: None) -> None:
    def inner() -> None:
        raise ps.UnsupportedError("no")

    @short_traceback
    def public() -> None:
        try:
            inner()
        except ps.UnsupportedError as error:
            held.append(error.__traceback__)
            raise

    held: list[Any] = []
    error = error_of(public)
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "public"
    assert [frame.name for frame in traceback.extract_tb(held[0])] == ["public", "inner"]


def test_an_error_without_a_traceback_is_left_alone() -> None:
    error = ps.UnsupportedError("no")
    shorten(error)
    assert error.__traceback__ is None
