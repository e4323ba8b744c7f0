"""Every file of the corpus gets all the indexes that it can have: its rows stay, and damage to what was put in changes no answer.

    python proofs/attach.py                          both parts, printed
    python proofs/corpus.py attach attach-flips      the same, as lines of docs/corpus.md

`attach`: each file, readable or not, gets a page index, Bloom filters, lists of values and a published list, wherever
`attach` does not refuse. Rows read by pageseek and by pyarrow are those of before, `verify` finds nothing that it did not find
before, and `detach` gives the bytes of the data back.
`attach-flips`: single bits of what was attached are flipped, then filters are asked. All of it has checksums, and the key of
the footer only points: every answer has to be right. `verify` names what was flipped.

Each file is worked on in a process of its own, with a limit of memory and of time. Any exception that is not a
PageseekError ends the proof.
"""

from __future__ import annotations

import collections
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd  # noqa: F401 - pyarrow imports it at first use: once here, not in each process
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from oracle import ROOT
from pageseek.datasets.sources import open_metadata
from pageseek.format.embedded import KEY, directory
from pageseek.index import bloom_builder as bloom
from pageseek.index.page_values import check_column
from pageseek.prune import datafusion_list, pruner_stage

CORPUS = ROOT.parent / "shared" / "conformance" / "corpus"
FOLDERS = "valid", "odd", "hostile"
MEMORY = 4 << 30  # bytes of address space that one file may take
SECONDS = 120  # that one file may take
SEED = 61
FLIPS = 2  # of each region of a file
LEAVES = 2  # that filters ask for, of a file
MECHANISM = {
    "page_index": "column_index", "bloom": "bloom_filter", "distinct": "distinct", "distinct_index": "distinct_index",
}  # fmt: skip
READS: tuple[dict[str, Any], ...] = (
    {},
    {"int96_unit": "us"},
    {"out_of_range": "keep"},
)  # as some files of the corpus have to be read


class Lost(Exception):
    """A process that did not end as it should."""


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """The result of a function in its own process. Lost: it crashed, hung, or raised a foreign exception."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run() -> None:
        ours.close()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends it, in C as well
        signal.alarm(SECONDS)
        try:
            found = True, work(*given)
        except BaseException as error:  # noqa: BLE001 - it is told over there
            found = False, f"{type(error).__module__}.{type(error).__name__}: {error}"
        theirs.send(found)
        theirs.close()
        os._exit(0)

    process = context.Process(target=run)
    process.start()
    theirs.close()
    try:
        done, found = ours.recv()
    except EOFError:
        process.join()
        raise Lost(f"ended by {-(process.exitcode or 0)} (14: more than {SECONDS} s)") from None
    finally:
        ours.close()
    process.join()
    if not done:
        raise Lost(found)
    return found


# -- attaching ----------------------------------------------------------------------------------


@dataclass
class Outcome:
    """The result for one file. `wrong`: violations."""

    state: str  # attached, refused
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)


def accepted(path: Path) -> dict[str, Any]:
    """The indexes that this file can have by the types of its columns."""
    knobs: dict[str, Any] = {"bloom": [], "distinct": [], "distinct_index": None}
    with open_metadata(path) as file:
        for leaf in file.leaves:
            for name, check in (
                ("bloom", lambda one: bloom.check(one, bloom.RATE)),
                ("distinct", lambda one: check_column(one, "distinct=[...]")),
                ("distinct_index", lambda one: check_column(one, "distinct_index=[...]")),
            ):
                try:
                    file.schema_tree.find(leaf.name)  # some names are ambiguous
                    check(leaf)
                    if name == "distinct_index":
                        datafusion_list.check_type(leaf)
                except ps.PageseekError:
                    continue
                if name == "distinct_index":
                    knobs[name] = knobs[name] or leaf.name
                else:
                    knobs[name].append(leaf.name)
    return knobs


def attach_all(path: Path, out: Path) -> dict[tuple[str, str], int]:
    """Attach what the file takes; chunks by kind and column. PageseekError: it takes nothing."""
    knobs = accepted(path)
    try:
        made = ps.index.attach(path, **knobs, output=out, overwrite=True)
    except ps.PageseekError:
        made = ps.index.attach(path, **taken(path, out, knobs), output=out, overwrite=True)
    return made.added


def taken(path: Path, out: Path, knobs: dict[str, Any]) -> dict[str, Any]:
    """The indexes that the values allow, each tried by itself."""

    def goes(**one: Any) -> bool:
        try:
            ps.index.attach(path, page_index=False, **one, output=out, overwrite=True)
        except ps.PageseekError:
            return False
        out.unlink()
        return True

    kept: dict[str, Any] = {
        kind: [name for name in knobs[kind] if goes(**{kind: [name]})]
        for kind in ("bloom", "distinct")
    }
    public = knobs["distinct_index"]
    if public is not None and goes(distinct_index=public):
        kept["distinct_index"] = public
    return kept


def rows_of(path: Path) -> tuple[Any, dict[str, Any]]:
    """All rows, or the error; and how they were read."""
    found: Any = None
    for options in READS:
        try:
            return ps.read_table(path, **options), options
        except ps.PageseekError as error:
            found = found or error
    return found, {}


def same(a: Any, b: Any) -> bool:
    """Whether two reads are equal, down to the bits of values; two errors of one kind are equal."""
    if not isinstance(a, pa.Table) or not isinstance(b, pa.Table):
        return type(a) is type(b)
    if a.num_rows != b.num_rows or not a.schema.equals(b.schema):
        return False
    return bool(a.equals(b)) or as_bytes(a) == as_bytes(b) or as_text(a) == as_text(b)


def as_bytes(table: pa.Table) -> bytes:
    """Values as bytes, since NaN does not equal itself."""
    sink = pa.BufferOutputStream()
    flat = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, flat.schema) as writer:
        writer.write_table(flat)
    return bytes(sink.getvalue())


def as_text(table: pa.Table) -> object:
    """Values as text, since bytes under nulls may differ; values without a Python type equal nothing."""
    try:
        return repr(table.to_pylist())
    except (ValueError, OverflowError, ArithmeticError):
        return object()


def try_file(path: Path, folder: Path) -> Outcome:
    """Attach, read, verify and detach, with pageseek only."""
    after, back = folder / "after.parquet", folder / "back.parquet"
    try:
        added = attach_all(path, after)
    except ps.PageseekError as error:
        left = sorted(os.listdir(folder))
        return Outcome(
            "refused", wrong=[f"left behind after {error}: {left}"] if left != ["mine"] else []
        )
    made = Outcome("attached")
    for (kind, _), n in added.items():
        made.counts[kind] += n
    before_rows, after_rows = rows_of(path)[0], rows_of(after)[0]
    if not same(before_rows, after_rows):
        made.wrong.append(f"rows of pageseek differ: {after_rows!r:.200} for {before_rows!r:.200}")
    made.counts["readable"] = isinstance(before_rows, pa.Table)
    known = findings(path)
    new = sorted(findings(after) - known)
    if new:
        made.wrong.append(f"verify: {new[:3]}")
    with open_metadata(path) as file:
        end = file.footer_start
    whole = path.read_bytes()
    if after.read_bytes()[:end] != whole[:end]:
        made.wrong.append("the data is not where it was")
    ps.index.detach(after, output=back, overwrite=True)
    gone = back.read_bytes()
    if gone[:end] != whole[:end]:
        made.wrong.append("the data is not there again")
    made.counts["whole"] = gone == whole
    if not same(rows_of(back)[0], before_rows):
        made.wrong.append("rows of pageseek differ after detach")
    return made


def findings(path: Path) -> set[str]:
    """The findings of `verify`, without the name of the file."""
    return {str(one).replace(str(path), "") for one in ps.index.verify(path).findings}


def others_rows(before: Path, after: Path) -> bool | None:
    """Whether pyarrow reads the same rows; None if it reads none."""
    try:
        known = pq.ParquetFile(before).read()
    except Exception:  # noqa: BLE001 - whatever it is, there is nothing to compare
        return None
    return same(known, pq.ParquetFile(after).read())


def files() -> Iterator[Path]:
    for name in FOLDERS:
        yield from sorted((CORPUS / name).glob("*.parquet"))


def prove() -> tuple[str, str]:
    """What was run, and the result. AssertionError: a violation."""
    counts: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    for path in files():
        counts["files"] += 1
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            mine = folder / "mine"
            mine.write_bytes(path.read_bytes())
            try:
                made = apart(try_file, mine, folder)
            except Lost as error:
                made = Outcome("lost", wrong=[f"foreign: {error}"])
            counts[made.state] += 1
            counts.update(made.counts)
            if made.state == "attached":
                try:
                    equal = apart(others_rows, mine, folder / "after.parquet")
                except (
                    Lost
                ) as error:  # pyarrow's own end on this file; it must have been so before, too
                    equal = None if crashes(mine) else f"lost: {error}"
                counts["pyarrow"] += equal is True
                if equal not in (True, None):
                    made.wrong.append(f"pyarrow reads other rows: {equal}")
        for what in made.wrong:
            wrong.append(f"{path.parent.name}/{path.name}: {what}")
            print(wrong[-1], flush=True)
    assert not wrong, f"{len(wrong)} wrong: {wrong[:5]}"
    assert counts["attached"] and counts["pyarrow"]
    kinds = (
        f"{counts['page_index']:,} chunks with page indexes, {counts['bloom']:,} with Bloom filters, "
        f"{counts['distinct']:,} in lists, {counts['distinct_index']:,} in published ones"
    )
    text = (
        f"{counts['attached']} files took indexes ({kinds}), {counts['refused']} were refused with an error of ours; rows as before "
        f"by pageseek in {counts['readable']} that can be read, by pyarrow in {counts['pyarrow']}; `verify` finds nothing new; detached, the data is as "
        f"it was in all, the whole file to the byte in {counts['whole']}; 0 other exceptions, crashes, hangs"
    )
    return f"`attach.py`, {counts['files']} files", text


def crashes(path: Path) -> bool:
    """Whether pyarrow crashes on the original file."""
    try:
        apart(others_rows, path, path)
    except Lost:
        return True
    return False


# -- flipped bits -------------------------------------------------------------------------------


def regions(path: Path) -> dict[str, list[tuple[int, int]]]:
    """The places of the attached indexes: [start, stop) by kind, and `key`, their entry in the footer."""
    found: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
    with open_metadata(path) as file:
        known = directory(file)
        assert known is not None
        for one in known.pointers:
            found[one.kind].append((one.offset, one.offset + one.length))
        value = file.key_value_metadata[KEY]
        assert value is not None
        at = file.footer_start + bytes(file.footer).index(value)
    found["key"].append((at, at + len(value)))
    return found


def filters(table: pa.Table, dice: random.Random, names: list[str]) -> list[ps.Expression]:
    """Filters on a few columns: an existing value, an absent one, nulls."""
    made: list[ps.Expression] = []
    for name in dice.sample(names, min(LEAVES, len(names))):
        values = table.column(name).drop_null()
        column = ps.col(name)
        if len(values):
            one = values[dice.randrange(len(values))]
            made += [column == one, column != one]
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            made.append(column == "no such value")
        elif pa.types.is_integer(values.type):
            made.append(column == 77)
    return [*made, column.is_null()]


def asked(path: Path, condition: ps.Expression, **options: Any) -> Any:
    """The rows that pass, or pageseek's error."""
    ps.clear_cache()
    try:
        return ps.read_table(path, filter=condition, **options)
    except ps.PageseekError as error:
        return error


def listed_columns(path: Path) -> list[str]:
    """Columns at the top that have a list of values."""
    with open_metadata(path) as file:
        known = directory(file)
        pointers = () if known is None else known.pointers
        return [one.leaf[0] for one in pointers if one.leaf is not None and len(one.leaf) == 1]


Question = tuple[ps.Expression, pa.Table]  # a condition, and the rows that pass


def flip_file(path: Path, folder: Path, seed: int) -> Outcome:
    """Flip bits, one at a time, and run the filters each time."""
    dice = random.Random(seed)
    pruner_stage.DOUBT = 0  # indexes are read, however small the file
    after, damaged = folder / "after.parquet", folder / "damaged.parquet"
    try:
        added = attach_all(path, after)
        rows, options = rows_of(path)
        names = listed_columns(after)
    except ps.PageseekError:
        return Outcome("refused")
    if not isinstance(rows, pa.Table) or not rows.num_rows or not names:
        return Outcome("nothing to ask")
    for kind, column in added:
        if kind == "distinct_index":
            options = options | {kind: column}
    made = Outcome("asked")
    questions: list[Question] = []
    for condition in filters(rows, dice, names):
        truth = asked(path, condition, **options | {"prune": False})
        if not isinstance(truth, pa.Table):
            continue  # a literal that this column does not take
        questions.append((condition, truth))
    made.counts["questions"] = len(questions)
    if outcome_of(after, questions, options, list(MECHANISM.values())) != "same":
        made.wrong.append("other rows without damage")
    for condition, _ in questions:
        for kind, mechanism in MECHANISM.items():
            scan = ps.scan(after, filter=condition, **options | {"prune": [mechanism]})
            report = scan.explain(analyze=True).to_dict()
            units = ("files", "row_groups", "pages")
            made.counts[f"{kind} used"] += any(
                mechanism in report[unit]["pruned_by"] for unit in units
            )
    content = after.read_bytes()
    for kind, places in regions(after).items():
        mechanisms = [MECHANISM[kind]] if kind in MECHANISM else ["distinct", "bloom_filter"]
        for _ in range(FLIPS):
            start, stop = dice.choice(places)
            at, bit = dice.randrange(start, stop), dice.randrange(8)
            broken = bytearray(content)
            broken[at] ^= 1 << bit
            damaged.write_bytes(broken)
            found = outcome_of(damaged, questions, options, mechanisms)
            made.counts[f"{kind} {found}"] += 1
            if kind in MECHANISM:
                made.counts[f"{kind} told"] += tells(damaged, kind, start, after)
            if found != "same" and (kind, found) != ("key", "error"):
                made.wrong.append(f"{kind}: byte {at}, bit {bit}: {found}")
        try_rest(damaged)
    return made


def outcome_of(
    path: Path, questions: list[Question], options: dict[str, Any], mechanisms: list[str]
) -> str:
    """The worst that came, with everything that can prune and with each mechanism alone: the same, an error of ours, other
    rows.
    """
    worst = "same"
    ways: list[Any] = [True, *([one] for one in mechanisms)]
    for condition, truth in questions:
        for way in ways:
            found = asked(path, condition, **options | {"prune": way})
            if not isinstance(found, pa.Table):
                worst = "error" if worst == "same" else worst
            elif not same(found, truth):
                worst = "wrong"
    return worst


def tells(damaged: Path, kind: str, start: int, whole: Path) -> bool:
    """Whether `verify` names the damage: the column of a list, or the chunk of another index."""
    with open_metadata(whole) as file:
        known = directory(file)
    assert known is not None
    names = {".".join(one.leaf) for one in known.pointers if one.offset == start and one.leaf}
    return any(
        one.kind == kind and (one.column in names or (not names and one.row_group is not None))
        for one in ps.index.verify(damaged).findings
    )


def try_rest(path: Path) -> None:
    """All other functions that read indexes: they may raise only pageseek's errors."""
    for function in (ps.index.list, ps.index.verify):
        try:
            function(path)
        except ps.PageseekError:
            continue
    out = path.with_name("rest.parquet")
    try:
        ps.index.detach(path, output=out, overwrite=True)
        out.unlink()
    except ps.PageseekError:
        pass


def prove_flips() -> tuple[str, str]:
    """What was run, and the result. AssertionError: a violation."""
    counts: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    for number, path in enumerate(files()):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                made = apart(flip_file, path, Path(scratch), SEED + number)
            except Lost as error:
                made = Outcome("lost", wrong=[f"foreign: {error}"])
        counts[made.state] += 1
        counts.update(made.counts)
        for what in made.wrong:
            wrong.append(f"{path.parent.name}/{path.name}: {what}")
            print(wrong[-1], flush=True)
    print(json.dumps(counts, indent=1, sort_keys=True))
    assert not wrong, f"{len(wrong)} wrong: {wrong[:5]}"
    assert all(counts[f"{kind} same"] for kind in (*MECHANISM, "key"))

    def said(kind: str) -> str:
        same_, error, bad = (counts[f"{kind} {one}"] for one in ("same", "error", "wrong"))
        told = f", `verify` names {counts[f'{kind} told']:,}" if kind in MECHANISM else ""
        return f"{same_ + error + bad:,} ({same_:,} answers the same, {error:,} errors of ours, {bad:,} wrong{told})"

    used = ", ".join(f"{counts[f'{kind} used']:,} by {kind}" for kind in MECHANISM)
    text = (
        f"of {counts['questions']:,} filters the whole file leaves out something by each alone: {used}. Flips in lists {said('distinct')}, in published ones {said('distinct_index')}, "
        f"in page indexes {said('page_index')}, in Bloom filters {said('bloom')}; in the key of the footer {said('key')}. "
        f"0 other exceptions, crashes, hangs"
    )
    return f"`attach.py`, seed {SEED}, {FLIPS} flips a region, {counts['asked']} files", text


def main() -> int:
    """Both parts, printed."""
    if not CORPUS.is_dir():
        print("there is no conformance corpus beside this checkout")
        return 2
    for part in (prove, prove_flips):
        ran, found = part()
        print(f"{ran}: {found}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
