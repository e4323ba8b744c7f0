"""Every flat column of every valid file of the conformance corpus: type and values equal pyarrow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from support.opened import open_metadata

# pyarrow reads these INT96 timestamps, which 64 bits of nanoseconds cannot hold, as others
BEYOND_64_BITS = {
    ("cudf__spark_timestamp.snappy.parquet", "value"),
    ("duckdb__bug4903.parquet", "dt3"),
}
# honest files with values that Arrow's types do not have
OUT_OF_RANGE = {
    ("duckdb__negative-timetz.parquet", "col33"),
    ("duckdb__pandas_decimal.parquet", "value4"),
}
# REQUIRED, and of a type of which every value is null
NULL_AND_REQUIRED = {("drill__interval_dictionary.parquet", "_INTERVAL_fixed_len_byte_array_12")}


def flat_columns(file: FileMetadata) -> list[tuple[int, str]]:
    fields = [(i, file.schema_tree.field(i)) for i in range(file.schema_tree.num_fields)]
    names = [field.name for _, field in fields]
    return [
        (i, field.name)
        for i, field in fields
        if field.stop_leaf - field.first_leaf == 1
        and file.schema_tree.leaf(field.first_leaf).flat
        and names.count(field.name) == 1
    ]


def same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Equal, or of floats among which is a NaN, or of dictionaries of another order."""
    if ours.equals(theirs):
        return True
    return ours.schema.types == theirs.schema.types and repr(ours.to_pylist()) == repr(
        theirs.to_pylist()
    )


def differences(path: Path) -> list[Any]:
    found: list[Any] = []
    try:
        theirs = pq.ParquetFile(path)
        schema = theirs.schema_arrow
    except (OSError, pa.ArrowException):
        return found
    file = open_metadata(path)
    for index, name in flat_columns(file):
        where = path.name, name
        leaf = file.schema_tree.flat_leaf(index)
        assert leaf is not None
        ours, wanted = file.schema_tree.flat_column(leaf, Options())[1], schema.field(index)
        if where in NULL_AND_REQUIRED:
            ours = ours.with_nullable(False)
        if ours.type != wanted.type or ours.nullable != wanted.nullable:
            found.append((*where, str(ours), str(wanted)))
            continue
        try:
            full = theirs.read(columns=[name])
        except (OSError, pa.ArrowException):
            continue
        if full.column_names != [name]:  # a nested column of the same first name
            full = full.select([name])
        if where in BEYOND_64_BITS:
            with pytest.raises(ps.LimitError, match="int96_unit"):
                ps.read_table(path, columns=[name])
            continue
        keep = "error"
        if where in OUT_OF_RANGE:
            with pytest.raises(ps.CorruptFileError, match="out_of_range"):
                ps.read_table(path, columns=[name])
            keep = "keep"
        if not same(ps.read_table(path, columns=[name], out_of_range=keep), full):
            found.append((*where, "values differ"))
    return found


@pytest.mark.parametrize("part", range(8))
def test_flat_columns_are_those_of_pyarrow(conformance: Path, part: int) -> None:
    files = sorted((conformance / "corpus" / "valid").iterdir())[part::8]
    assert files
    found = [difference for path in files for difference in differences(path)]
    assert not found
