"""Random arguments to the extension modules never end the process. Each case runs in its own process, because it may crash.

PAGESEEK_WILD_SECONDS: how long random calls run; PAGESEEK_WILD_SEED: their seed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.tiers import FULL

TESTS = Path(__file__).parent.parent
SECONDS = 15 if FULL else 6  # of random calls, unless it is said
HEAD = """
import array, threading, time
import numpy as np
import pageseek as ps
from pageseek._core import bloom, build, codecs, convert, decode, files, lists, memory, metadata, page_tasks, points, rows, search
def refused(call, *kinds):
    try:
        call()
    except kinds or (Exception,) as error:
        return str(error)
    raise AssertionError("not refused")
INT32 = (1, 0, 3, 0, 0, 0, 0)
"""
CASES = {
    "rows as many as there are numbers": """
        every = ps.RowRanges([(0, 2**63 - 1)])
        assert "0 bytes" in refused(lambda: every.refine(b""), ps.PageseekError)
        refused(lambda: ps.RowRanges.from_bitmap(b"", 0, 2**63 - 1), ps.PageseekError)
    """,
    "none instead of a buffer": """
        refused(lambda: search.Zones(4, 0, 3, bytes(24), None, bytes(24), None, None), TypeError)
        refused(lambda: search.codes_mask(None, None, 3, b"\\0"), TypeError)
        refused(lambda: search.codes_mask(bytes(12), None, 3, None), TypeError)
        refused(lambda: files.seen(None, 0, 1), TypeError)
        refused(lambda: files.read_ends(files.Names(["/"]), 0, 1, None, bytearray(9)))
        refused(lambda: build.offset_index(bytes(8), None, None))
        refused(lambda: page_tasks.read_pages(None), TypeError)
        refused(lambda: page_tasks.read_pages([(None, [(b"", 0, 0)], b"", 0, None, False)]), TypeError)
        refused(lambda: build.footer_edited(b"", b"", None, None), TypeError)
        refused(lambda: points.PointReader(None, []), TypeError)
        refused(lambda: points.PointReader([], []).read(0, None, [], 1, 1), TypeError)
        refused(lambda: points.PointReader([], []).read(0, b"", None, 1, 1), TypeError)
        refused(lambda: points.PointTask(None, 0, None, b"", 1, 1), TypeError)
        refused(lambda: points.PointTask(points.PointReader([], []), 0, None, None, 1, 1), TypeError)
    """,
    "row groups whose sum wraps": """
        places = array.array("q", [0, 0, 2**63 - 1] * 2 + [0, 0, 2]).tobytes()
        refused(lambda: lists.Lists(b"", places).exact(), MemoryError)
    """,
    "a view that is released": """
        body = array.array("I", [1, 1, 0, 1]).tobytes() + b"\1x"  # one row group, one value, all known
        found = lists.Lists(body, array.array("q", [0, len(body), 1]).tobytes())
        found.counts.release()
        others = [bytes([5, 0, 0, 0, 0, 0, 0, i % 100]) for i in range(10_000)]
        assert found.exact() == b"\1"
        assert len(found.values()) == 16
    """,
    "numbers that are another one each time": """
        class Liar(int):
            def __ge__(self, other): return True
            __le__ = __gt__ = __lt__ = __ge__
        refused(lambda: memory.Block(Liar(2**64 - 1)), ps.PageseekError)
        refused(lambda: search.compare(4, 0, Liar(2**61), None, b"", None, 0, False))
        class Changing:
            n = 0
            def __index__(self):
                self.n += 1
                return 1 if self.n > 1 else 1 << 20
        refused(lambda: search.Zones(4, 0, Changing(), bytes(8), None, bytes(8), None, b"\\1"))
    """,
    "pairs that are none": """
        refused(lambda: build.footer_edited(b"", b"", [], [(b"a",)]), ValueError)
        class Long(bytes):
            def __len__(self): return 1 << 40
        build.column_index(b"\\0", [Long(b"a")], [Long(b"b")], 0)
    """,
    "nesting levels that were handed over": """
        decoder = ps.LeafDecoder(INT32, 2, 1, nesting_levels=((1, 1, 1),))
        decoder.begin(b"")
        decoder.finish()
        assert len(decoder.nesting_levels()) == 1
        assert "given away" in refused(decoder.nesting_levels, ps.PageseekError)
    """,
    "rows that change after they were checked": """
        chosen = bytearray(array.array("q", [0, 2]).tobytes())
        decoder = ps.LeafDecoder(INT32, 0, 0)
        decoder.begin(chosen)
        chosen[8:] = array.array("q", [2**62]).tobytes()  # which a buffer that was held would forbid by its length alone
        assert decoder.page(bytes(400), None, 1, 0, 3, 3, 100, -1, 100, 0, 0, 0) == decode.TAKE_DONE
        assert decoder.finish()[0] == 2
    """,
    "a decoder twice in one call": """
        decoder = ps.LeafDecoder(INT32, 0, 0)
        one = decoder, [(b"", 0, 0)], b"", 0, None, False
        for threads in (1, 2):
            assert "in use" in refused(lambda: page_tasks.read_pages([one, one], threads), ps.PageseekError)
        assert page_tasks.read_pages([one]) == [None]  # it is free again
    """,
    "a task twice in one call, and rows that change": """
        reader, rows = points.PointReader([], []), array.array("q", [0, 2]).tobytes()
        task = points.PointTask(reader, 0, None, rows, 1, 1)
        for threads in (1, 2):
            assert "occurs twice" in refused(lambda: page_tasks.read_pages([task, task], threads), ps.PageseekError)
            (made,) = page_tasks.read_pages([task], threads)  # it is free again
            assert made.num_rows == 2 and task.counts == [] and task.requests == 0
        work = page_tasks.PageWork([task])
        assert "another call" in refused(lambda: task.counts, ps.PageseekError)
        refused(lambda: page_tasks.read_pages([task]), ps.PageseekError)
        del work
        assert len(page_tasks.read_pages([task])) == 1
        refused(lambda: points.PointTask(reader, 0, None, bytearray(rows), 1, 1), ps.PageseekError)
        refused(lambda: points.PointTask(reader, 0, None, rows[::-1], 1, 1), ps.PageseekError)
        refused(lambda: points.PointTask(reader, 0, None, rows, -1, 1), OverflowError)
    """,
    "a decoder whose rows went with a call that failed": """
        decoder = ps.LeafDecoder(INT32, 0, 0)
        decoder.begin(array.array("q", range(2000)).tobytes())
        others = array.array("q", [0, 1]).tobytes()
        no_decoder = None, [(b"", 0, 0)], others, 0, None, False
        refused(lambda: page_tasks.read_pages([(decoder, [(b"", 0, 0)], others, 0, None, False), no_decoder]), TypeError)
        refused(lambda: decoder.page(bytes(400), None, 1, 0, 3, 3, 100, -1, 100, 0, 0, 0), ps.PageseekError)
    """,
    "a codec that calls its decoder": """
        said = []
        def codec(data, size):
            for call in (lambda: decoder.head(b""), decoder.release, lambda: decoder.begin(b""), decoder.finish,
                         lambda: page_tasks.read_pages([(decoder, [(b"", 0, 0)], b"", 0, None, False)])):
                said.append(refused(call, ps.PageseekError))
            return bytes(size)
        header = bytes.fromhex("1500150815082c15021500150615060000")
        decoder = ps.LeafDecoder(INT32, 0, 0, codec="gzip", decompress=codec)
        decoder.begin(array.array("q", [0, 1]).tobytes())
        decoder.head(header + bytes(4))
        assert decoder.take(0) == decode.TAKE_DONE
        assert len(said) == 5 and all("in use" in one for one in said)
        assert bytes(decoder.finish()[4]) == bytes(4)
    """,
    "two threads on one decoder": """
        n, in_use, until = 4_000_000, threading.Event(), time.monotonic() + 60
        decoder = ps.LeafDecoder(INT32, 0, 0)
        body, chosen = bytes(4 * n), array.array("q", [0, n]).tobytes()
        def work():
            while not in_use.is_set() and time.monotonic() < until:
                for call in (
                    lambda: decoder.begin(chosen),
                    lambda: decoder.page(body, None, 1, 0, 3, 3, n, -1, n, 0, 0, 0),
                    lambda: decoder.finish(),
                    lambda: decoder.release(),
                ):
                    try:
                        call()
                    except ps.PageseekError as error:
                        if "in use by another thread" in str(error): in_use.set()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert in_use.is_set()
    """,
    "two threads on one filter": """
        said = set()
        values = (100_000, None, None, bytes(range(200)) * 4000)
        def work(call):
            for _ in range(5):
                try:
                    call()
                except ps.PageseekError as error:
                    said.add(str(error))
        for _ in range(20):
            filter = build.BloomFilter(1 << 14)
            calls = [lambda: filter.insert(4, 0, values), lambda: filter.shrink(1.0), filter.rate, filter.to_bytes]
            threads = [threading.Thread(target=work, args=(call,)) for call in calls]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            filter.shrink(1.0)
            assert filter.blocks == 1
        assert said <= {"the filter is in use by another thread"}
    """,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_process_lives(name: str) -> None:
    program = HEAD + textwrap.dedent(CASES[name])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def run_wild(seed: int, seconds: float, log: Path) -> None:
    """Calls at random; the one that killed the process is named."""
    command = [sys.executable, "-m", "support.random_arguments", log, seed, seconds, 2 << 30]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False,
        timeout=10 * seconds + 300, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    if done.returncode:
        last = log.read_text("utf-8", "replace").splitlines()[-5:]
        calls = "\n".join(last)
        pytest.fail(
            f"seed {seed}: {done.returncode}\n{done.stderr[-3000:]}\nthe last calls:\n{calls}"
        )
    assert "not called" not in done.stdout or seconds < 10, done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
def test_calls_at_random(tmp_path: Path) -> None:
    seed = int(os.environ.get("PAGESEEK_WILD_SEED", "1"))
    run_wild(seed, float(os.environ.get("PAGESEEK_WILD_SECONDS", SECONDS)), tmp_path / "calls")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
@pytest.mark.parametrize("seed", range(100, 104))
def test_calls_at_random_for_long(seed: int, tmp_path: Path) -> None:
    run_wild(seed, 150, tmp_path / "calls")
