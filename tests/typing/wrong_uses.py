"""Mistakes of users that mypy --strict finds: an `ignore` without one is an error itself. Never run."""

from __future__ import annotations

import pageseek as ps

ps.read_table("a", column=["a"])  # type: ignore[call-arg]
ps.read_table("a", cols=["a"])  # type: ignore[call-arg]
ps.read_table("a", dtype_backend="pyarrow")  # type: ignore[call-arg]
ps.read_table("a", string_type="large_string")  # type: ignore[arg-type]
ps.read_table("a", use_threads=4)  # type: ignore[arg-type]
ps.read_table("a", threads="4")  # type: ignore[arg-type]
ps.read_table("a", params=5)  # type: ignore[arg-type]
ps.read_table("a", columns=[1])  # type: ignore[list-item]
ps.scan("a", filters=[("a", ">", 5)])  # type: ignore[call-arg]
ps.scan("a", nan="IEEE")  # type: ignore[arg-type]
ps.scan("a", limit=1.5)  # type: ignore[arg-type]
ps.scan("a", ["a"])  # type: ignore[call-arg]
ps.scan("a").filter("a = 1", 5)  # type: ignore[arg-type]
ps.scan("a").limit("5")  # type: ignore[arg-type]
ps.open("a", columns=["a"])  # type: ignore[call-arg]
ps.col(5)  # type: ignore[arg-type]
ps.col("a").ilike(b"x")  # type: ignore[arg-type]
_ = ps.aio.read_table("a", cols=["a"])  # type: ignore[call-arg]
ps.dataset("a", cols=["a"])  # type: ignore[call-arg]
ps.dataset("a", limit=3)  # type: ignore[call-arg]
ps.polars.scan("a", strings="view")  # type: ignore[call-arg]
ps.polars.scan("a", filter="id = 1", limit="3")  # type: ignore[arg-type]
_ = ps.aio.scan("a", nan="IEEE")  # type: ignore[arg-type]
ps.aio.to_batches("a", batch_size="5")  # type: ignore[arg-type]
_ = ps.aio.count_rows("a", retries=[1])  # type: ignore[arg-type]
