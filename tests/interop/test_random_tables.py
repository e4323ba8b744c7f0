"""Random tables that deltalake and pyiceberg make: rows and filters equal those that the libraries read."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pageseek as ps

TABLES = int(os.environ.get("RANDOM_TABLES", "10"))
FIRST = int(os.environ.get("FIRST_TABLE", "0"))
FILTERS = 20
VALUES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "i": (pa.int32(), lambda r: r.randrange(-50, 50)),
    "l": (pa.int64(), lambda r: r.choice([r.randrange(40), 2**40 + r.randrange(3)])),
    "s": (pa.string(), lambda r: r.choice(["", "a", "b c/%=:", "ü" * r.randrange(1, 30)]) + str(r.randrange(9))),
    "f": (pa.float64(), lambda r: r.choice([0.0, -0.0, 1.5, -1e300, r.random()])),
    "d": (pa.date32(), lambda r: dt.date(1969, 12, 25) + dt.timedelta(r.randrange(20))),
    "t": (pa.timestamp("us", "UTC"), lambda r: dt.datetime(2024, 1, 1, 0, 0, 0, r.randrange(10**6), dt.UTC)),
    "m": (pa.decimal128(12, 2), lambda r: Decimal(r.randrange(-9999, 9999)) / 100),
    "b": (pa.bool_(), lambda r: r.random() < 0.5),
}  # fmt: skip
OPS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "=": (pc.equal, lambda a, b: a == b), "!=": (pc.not_equal, lambda a, b: a != b), "<": (pc.less, lambda a, b: a < b),
    "<=": (pc.less_equal, lambda a, b: a <= b), ">": (pc.greater, lambda a, b: a > b), ">=": (pc.greater_equal, lambda a, b: a >= b),
}  # fmt: skip


def rows(rng: random.Random, kinds: dict[str, str], n: int) -> pa.Table:
    """Rows whose values lie near each other in some columns, so that files differ."""
    columns = {}
    for name, kind in kinds.items():
        of, make = VALUES[kind]
        some = [make(rng) for _ in range(rng.choice([1, 3, 40]))]
        columns[name] = pa.array(
            [None if rng.random() < 0.1 else rng.choice(some) for _ in range(n)], of
        )
    return pa.table(columns)


def texts(table: pa.Table) -> list[str]:
    """Rows as text, whatever their order and that of the columns; a moment without the object that stands for its zone."""
    names = sorted(table.column_names)
    columns = [
        [
            one.isoformat() if isinstance(one, dt.datetime) else one
            for one in table[name].to_pylist()
        ]
        for name in names
    ]
    return sorted(map(repr, zip(*columns, strict=True)))


def check(source: Any, whole: pa.Table, kinds: dict[str, str], rng: random.Random) -> int:
    """Compare rows, counts and filters. Returns how many files were ruled out by the log."""
    scan = ps.scan(source)
    assert texts(scan.to_table()) == texts(whole)
    assert scan.count_rows() == whole.num_rows
    ruled_out = 0
    for _ in range(FILTERS):
        name = rng.choice(list(kinds))
        value, op = VALUES[kinds[name]][1](rng), rng.choice(list(OPS))
        arrow, ours = OPS[op]
        passed = arrow(whole[name], pa.scalar(value, whole[name].type))
        condition = ours(ps.col(name), value)
        if rng.random() < 0.3:
            other = rng.choice(list(kinds))
            passed, condition = (
                pc.and_kleene(passed, pc.is_null(whole[other])),
                condition & ps.col(other).is_null(),
            )
        found = scan.filter(condition)
        assert texts(found.to_table()) == texts(whole.filter(passed)), repr(condition)
        report = found.explain(analyze=True)
        assert report.files.total == sum([report.files.read, *report.files.pruned_by.values()])
        ruled_out += report.files.pruned_by.get("log", 0)
    return ruled_out


@pytest.mark.parametrize("seed", range(FIRST, FIRST + TABLES))
def test_delta(tmp_path: Path, seed: int) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    rng, path = random.Random(seed), str(tmp_path / "t")
    kinds = {f"c{i}": kind for i, kind in enumerate(rng.sample(list(VALUES), 5))}
    partitions = rng.sample([n for n, kind in kinds.items() if kind in "ilsdb"], rng.randrange(2))
    deltalake.write_deltalake(path, rows(rng, kinds, 60), partition_by=partitions)

    def append() -> None:
        deltalake.write_deltalake(
            path, rows(rng, kinds, rng.randrange(1, 80)), mode="append", schema_mode="merge"
        )

    def delete() -> None:
        name = rng.choice(list(kinds))
        deltalake.DeltaTable(path).delete(f"{name} is null")

    def update() -> None:
        name = rng.choice([n for n in kinds if n not in partitions])
        other = rng.choice(list(kinds))
        deltalake.DeltaTable(path).update(updates={name: "null"}, predicate=f"{other} is null")

    def grow() -> None:
        kinds[f"c{len(kinds)}"] = rng.choice(list(VALUES))
        append()

    def compact() -> None:
        deltalake.DeltaTable(path).optimize.compact()

    def checkpoint() -> None:
        deltalake.DeltaTable(path).create_checkpoint()

    versions = []
    for _ in range(rng.randrange(1, 9)):
        rng.choice([append, append, append, delete, update, grow, compact, checkpoint])()
        table = deltalake.DeltaTable(path)
        versions.append((table.version(), table.to_pyarrow_table()))
    check(path, versions[-1][1], dict(kinds), rng)
    version, whole = rng.choice(versions)
    assert texts(ps.read_table(path, version=version)) == texts(whole)


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")  # of pyiceberg
@pytest.mark.parametrize("seed", range(FIRST, FIRST + TABLES))
def test_iceberg(catalog: Any, seed: int) -> None:
    from pyiceberg.expressions import IsNull
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType, StringType

    rng = random.Random(seed)
    kinds = {f"c{i}": kind for i, kind in enumerate(["i", "s", *rng.sample(list(VALUES), 3)])}
    schema = pa.schema([(name, VALUES[kind][0]) for name, kind in kinds.items()])
    table = catalog.create_table(
        "n.t", schema=schema, properties={"format-version": rng.choice("12")}
    )
    made = 0

    def append() -> None:
        arrow = table.schema().as_arrow()
        table.append(rows(rng, kinds, rng.randrange(1, 80)).select(arrow.names).cast(arrow))

    def delete() -> None:
        table.delete(IsNull(rng.choice(list(kinds))))

    def rename() -> None:
        nonlocal made
        old, new = rng.choice(list(kinds)), f"n{made}"
        made += 1
        with table.update_schema() as change:
            change.rename_column(old, new)
        kinds[new] = kinds.pop(old)

    def swap() -> None:
        one, other = rng.sample(list(kinds), 2)
        with table.update_schema() as change:
            change.rename_column(one, "between")
        with table.update_schema() as change:
            change.rename_column(other, one)
        with table.update_schema() as change:
            change.rename_column("between", other)
        kinds[one], kinds[other] = kinds[other], kinds[one]

    def drop_and_add() -> None:
        name = rng.choice([n for n in kinds if n not in partitioned()])
        if len(kinds) - len(partitioned()) < 3:
            return
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.delete_column(name)
        with table.update_schema() as change:
            change.add_column(name, StringType())
        kinds[name] = "s"

    def widen() -> None:
        name = next(
            (n for n, kind in kinds.items() if kind == "i" and n not in partitioned()), None
        )
        if name is not None:
            with table.update_schema() as change:
                change.update_column(name, LongType())
            kinds[name] = "l"

    def partitioned() -> set[str]:
        return {
            table.schema().find_column_name(f.source_id)
            for spec in table.specs().values()
            for f in spec.fields
        }

    def partition() -> None:
        nonlocal made
        fields = table.spec().fields
        with table.update_spec() as spec:
            if fields and rng.random() < 0.4:
                spec.remove_field(fields[0].name)
            else:
                names = [
                    n for n, kind in kinds.items() if kind in "ilsd" and n not in partitioned()
                ]
                if names:
                    spec.add_field(rng.choice(names), IdentityTransform(), f"p{made}")
                    made += 1

    append()
    for _ in range(rng.randrange(1, 10)):
        rng.choice([append, append, append, delete, rename, swap, drop_and_add, widen, partition])()
    append()
    check(table, table.scan().to_arrow(), kinds, rng)
