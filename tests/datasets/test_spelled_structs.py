"""Structs of files that spell their fields otherwise than the dataset, where a field that is read is missing: their nulls stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.spelling import has_structs

INT = pa.int64()
INNER = pa.struct([("x", INT), ("new", INT)])
KIND = pa.struct([("a", INT), ("i", INNER), ("l", pa.list_(pa.struct([("e", INT), ("f", INT)])))])
SCHEMA = pa.schema([("id", INT), ("s", KIND)])
FIRST = {"a": 1, "i": {"x": 2, "new": 3}, "l": [{"e": 4, "f": 5}, None]}


def scan_of(folder: Path, *files: pa.Table) -> Any:
    """A scan of files whose names are those of the first, whatever their case."""
    for i, rows in enumerate(files):
        pq.write_table(rows, folder / f"{i}.parquet")
    made = ps.scan(sorted(map(str, folder.glob("*.parquet"))))
    known = made._request.dataset_schema
    assert known is not None
    nested = [(one.name, one.type) for one in SCHEMA if has_structs(one.type)]
    told = replace(known, spelling=tuple(SCHEMA.names), spelled_types=tuple(nested))
    return replace(made, _request=replace(made._request, dataset_schema=told))


def renamed(kind: pa.DataType, names: dict[str, str]) -> pa.DataType:
    """A type whose fields have other names, at any depth; None: they are left out."""
    if pa.types.is_struct(kind):
        kept = [one for one in kind if names.get(one.name, one.name)]
        return pa.struct(
            [(names.get(one.name, one.name), renamed(one.type, names)) for one in kept]
        )
    if pa.types.is_list(kind):
        return pa.list_(renamed(kind.value_type, names))
    return kind


def rows_of(names: dict[str, str], values: Sequence[Any]) -> pa.Table:
    """A file of these rows, with other names than the dataset; an empty one means that it has no such field."""
    kind = renamed(KIND, names)

    def told(value: Any, of: pa.DataType) -> Any:
        if value is None or pa.types.is_integer(of):
            return value
        if pa.types.is_list(of):
            return [told(one, of.value_type) for one in value]
        there = {one.name.lower(): one for one in of}
        return {there[k].name: told(v, there[k].type) for k, v in value.items() if k in there}

    made = pa.array([told(value, kind) for value in values], kind)
    return pa.table({"ID": pa.array(range(len(values)), INT), names.get("s", "s"): made})


ODD: list[Any] = [
    FIRST,
    None,
    {"a": 6, "i": None, "l": None},
    {"a": None, "i": {"x": 7, "new": 8}, "l": []},
]
OTHERS = [
    {"new": "", "a": "A"},
    {"new": "", "i": "I", "x": "X"},
    {"new": "", "s": "S", "i": "I", "x": "X", "a": "A", "e": "E"},
    {"a": "", "new": "", "s": "S", "i": "I", "x": "X"},
    {"f": "", "l": "L", "e": "E", "a": "A"},
    {"i": "", "s": "S", "l": "L"},
    {"x": "", "i": "I", "new": "NEW"},
]
COLUMNS = [
    ["s"], ["s.a"], ["s.i"], ["s.i.new"], ["s.i.x"], ["s.l"], ["s.i.new", "s.a"], ["s.i.x", "s.i.new"], ["s.a", "id"],
]  # fmt: skip


def without(value: Any, names: dict[str, str]) -> Any:
    """A value whose fields that a file lacks are null."""
    if isinstance(value, list):
        return [without(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    return {k: None if names.get(k) == "" else without(v, names) for k, v in value.items()}


@pytest.mark.parametrize("names", OTHERS, ids=str)
@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_structs_keep_their_nulls(
    tmp_path: Path, names: dict[str, str], columns: list[str], first: bool
) -> None:
    """Also where what is read in place of a missing field is spelt otherwise than in the dataset."""
    odd, plain = rows_of(names, ODD), rows_of({}, ODD)
    scan = scan_of(tmp_path, *((plain, odd) if first else (odd, plain)))
    found = scan.select(*columns).to_table()
    whole = pa.Table.from_pylist([{"id": i, "s": s} for i, s in enumerate(ODD)], SCHEMA)
    of_odd = [{"id": i, "s": without(s, names)} for i, s in enumerate(ODD)]
    both = [whole, pa.Table.from_pylist(of_odd, SCHEMA)]
    expected = pa.concat_tables(both if first else both[::-1])
    pq.write_table(expected, tmp_path / "expected")
    same = ps.read_table(str(tmp_path / "expected"), columns=columns)
    assert found.to_pylist() == same.to_pylist()


@pytest.mark.parametrize("names", OTHERS, ids=str)
@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_the_answer_has_no_other_fields_than_were_asked_for(
    tmp_path: Path, names: dict[str, str], columns: list[str]
) -> None:
    """What is read in place of a missing field is not in the answer."""
    found = scan_of(tmp_path, rows_of({}, ODD), rows_of(names, ODD)).select(*columns)
    paths = {*columns, *(path.rpartition(".")[0] for path in columns)}
    kind = found.to_table().schema
    assert kind == found.schema

    def check(one: pa.Field, path: str) -> None:
        assert any(f"{path}.".startswith(f"{p}.") or p.startswith(f"{path}.") for p in paths if p), path  # fmt: skip
        for inner in one.type if pa.types.is_struct(one.type) else ():
            check(inner, f"{path}.{inner.name}")

    for one in kind:
        check(one, one.name)
