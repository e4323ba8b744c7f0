"""What one build answers in its own process: a question a line, as JSON, in and out. It uses public names of pageseek alone,
and nothing else of the benchmark, so that it runs with any build.
"""

from __future__ import annotations

import datetime as dt
import gc
import hashlib
import json
import sys
import time
from typing import Any

import pyarrow as pa

import pageseek as ps


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    if question["op"] == "version":
        return {"version": ps.__version__}
    terms = [
        (column, op, dt.date.fromisoformat(value["date"]) if isinstance(value, dict) else value)
        for column, op, value in question["terms"]
    ]
    if question["cold"]:
        ps.clear_cache()
    gc.disable()
    start = time.perf_counter()
    if question["footer"]:
        with ps.open(question["path"]) as file:
            found: Any = file.statistics(question["columns"][0])
    else:
        found = ps.read_table(
            question["path"], question["columns"], terms or None, threads=question["threads"]
        )
    seconds = time.perf_counter() - start
    gc.enable()
    return {"seconds": seconds, "digest": digest(found) if question["check"] else None}


def digest(found: Any) -> str:
    """Equal for equal rows, however they are cut into chunks."""
    made = hashlib.sha256()
    if isinstance(found, tuple):
        made.update(repr([array.to_pylist() for array in found]).encode())
        return made.hexdigest()
    table = found.combine_chunks()
    made.update(str(table.schema.remove_metadata()).encode())
    for batch in table.to_batches(max_chunksize=1 << 16):
        for column in batch.columns:
            sink = pa.BufferOutputStream()
            plain = pa.record_batch([pa.concat_arrays([column])], ["c"])
            with pa.ipc.new_stream(sink, plain.schema) as stream:
                stream.write_batch(plain)
            made.update(sink.getvalue())
    return made.hexdigest()


def main() -> None:
    """Answer queries until there are no more."""
    for line in sys.stdin:
        try:
            made = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the other process says it
            made = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
