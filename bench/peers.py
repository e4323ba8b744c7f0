"""The engines that answer the cases, each on one thread.

An engine is imported when it is first used; one that is not installed is reported and left out. What a
peer returns is its own kind of table, which `to_arrow` turns into a pyarrow.Table outside the timing.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

import pageseek as ps
from pageseek.datasets.sources import open_metadata
from pageseek.predicate.operators import OPERATORS

if TYPE_CHECKING:
    from pageseek.bench.cases import Case, Filter

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read once, when polars is imported


class Peer(ABC):
    """An engine with one file open. `name` is what the table shows, `needs` what must be installed."""

    name: ClassVar[str]
    needs: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.open()

    def open(self) -> None:  # noqa: B027 (an engine may keep nothing)
        """Take up the file, metadata and all; what this does is kept between warm rounds."""

    def answers(self, case: Case) -> bool:
        """Whether the engine can be asked this question."""
        return not case.footer

    def run(self, case: Case, terms: Filter) -> Any:
        """Answer, which is what is timed."""
        if case.footer:
            assert case.columns is not None
            return self.bounds(case.columns[0])
        if case.cold:
            self.open()
        return self.rows(case.columns, terms)

    @abstractmethod
    def rows(self, columns: Sequence[str] | None, terms: Filter) -> Any:
        """Rows that pass the filter, in file order."""

    def bounds(self, column: str) -> list[tuple[Any, Any]]:
        """Least and greatest value of a column in each row group, the file opened for it."""
        raise NotImplementedError

    def to_arrow(self, answer: Any) -> pa.Table:
        """An answer of `rows` as a table."""
        assert isinstance(answer, pa.Table)
        return answer

    @classmethod
    def version(cls) -> str:
        """Version of the engine; ImportError where it is not installed."""
        return str(importlib.import_module(cls.needs).__version__)


class Pageseek(Peer):
    """The package that is measured."""

    name = "pageseek"
    needs = "pageseek"

    def open(self) -> None:
        ps.clear_cache()

    def answers(self, case: Case) -> bool:
        return True

    def rows(self, columns: Sequence[str] | None, terms: Filter) -> pa.Table:
        return ps.read_table(self.path, columns, list(terms) or None, threads=1)

    def bounds(self, column: str) -> list[tuple[Any, Any]]:
        with open_metadata(self.path) as file:
            lower, upper = file.statistics(column)
        return list(zip(lower.to_pylist(), upper.to_pylist(), strict=True))


class PyArrow(Peer):
    """pyarrow.dataset for filters, pyarrow.parquet for whole reads and footers."""

    name = "pyarrow"
    needs = "pyarrow"

    def open(self) -> None:
        import pyarrow.dataset as ds

        made = ds.dataset(self.path)
        if pa.string_view() in made.schema.types:  # its filters have no kernels for views
            plain = [
                f.with_type(pa.string()) if f.type == pa.string_view() else f for f in made.schema
            ]
            made = ds.dataset(self.path, schema=pa.schema(plain))
        self._dataset = made

    def answers(self, case: Case) -> bool:
        return True

    def rows(self, columns: Sequence[str] | None, terms: Filter) -> pa.Table:
        names = None if columns is None else list(columns)
        if not terms:
            import pyarrow.parquet as pq

            return pq.read_table(self.path, columns=names, use_threads=False)
        condition = arrow_expression(terms)
        return self._dataset.to_table(columns=names, filter=condition, use_threads=False)

    def bounds(self, column: str) -> list[tuple[Any, Any]]:
        import pyarrow.parquet as pq

        metadata = pq.read_metadata(self.path)
        place = metadata.schema.names.index(column)
        found = []
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(place).statistics
            found.append((statistics.min, statistics.max))
        return found


def arrow_expression(terms: Filter) -> Any:
    """The terms of a filter as an expression of pyarrow.compute."""
    import pyarrow.compute as pc

    return _joined([OPERATORS[op](pc.field(column), value) for column, op, value in terms])


def _joined(terms: list[Any]) -> Any:
    condition = terms[0]
    for term in terms[1:]:
        condition = condition & term
    return condition


class DataFusion(Peer):
    """The datafusion package: page index, filter pushdown and reordering of filters on."""

    name = "datafusion"
    needs = "datafusion"

    def open(self) -> None:
        from datafusion import SessionConfig, SessionContext

        config = SessionConfig().with_target_partitions(1)
        for option in ("pushdown_filters", "enable_page_index", "reorder_filters"):
            config = config.set(f"datafusion.execution.parquet.{option}", "true")
        self._context = SessionContext(config)
        self._table = self._context.read_parquet(self.path)

    def rows(self, columns: Sequence[str] | None, terms: Filter) -> Any:
        from datafusion import col, lit

        frame = self._table
        if terms:
            # names are quoted, or they would be folded to lower case
            tests = [OPERATORS[op](col(f'"{name}"'), lit(value)) for name, op, value in terms]
            frame = frame.filter(_joined(tests))
        if columns is not None:
            frame = frame.select(*[col(f'"{name}"') for name in columns])
        return frame.schema(), frame.collect()

    def to_arrow(self, answer: Any) -> pa.Table:
        schema, batches = answer
        return (
            pa.Table.from_batches(batches, schema)
            if not batches
            else pa.Table.from_batches(batches)
        )


class DuckDB(Peer):
    """duckdb, threads = 1; it reads the footer at every query."""

    name = "duckdb"
    needs = "duckdb"

    def open(self) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")

    def answers(self, case: Case) -> bool:
        return True

    def rows(self, columns: Sequence[str] | None, terms: Filter) -> Any:
        names = "*" if columns is None else ", ".join(f'"{name}"' for name in columns)
        text = f"SELECT {names} FROM read_parquet(?)"
        if terms:
            text += " WHERE " + " AND ".join(f'"{name}" {op} ?' for name, op, _ in terms)
        values = [self.path, *(value for _, _, value in terms)]
        relation = self._connection.sql(text, params=values)
        return relation.to_arrow_table()

    def bounds(self, column: str) -> list[tuple[Any, Any]]:
        self.open()
        text = (
            "SELECT stats_min_value, stats_max_value FROM parquet_metadata(?) "
            "WHERE path_in_schema = ? ORDER BY row_group_id"
        )
        return list(self._connection.execute(text, [self.path, column]).fetchall())


class Polars(Peer):
    """polars, a pool of one thread; it reads the footer at every query."""

    name = "polars"
    needs = "polars"

    def rows(self, columns: Sequence[str] | None, terms: Filter) -> Any:
        import polars as pl

        frame = pl.scan_parquet(self.path)
        for name, op, value in terms:
            frame = frame.filter(OPERATORS[op](pl.col(name), value))
        if columns is not None:
            frame = frame.select(*columns)
        return frame.collect()

    def to_arrow(self, answer: Any) -> pa.Table:
        table: pa.Table = answer.to_arrow()
        return table


PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Pageseek, PyArrow, DataFusion, DuckDB, Polars)
}


def available(names: Sequence[str]) -> tuple[dict[str, type[Peer]], dict[str, str]]:
    """Peers that are installed, and for the others why not and the remedy."""
    found: dict[str, type[Peer]] = {}
    missing: dict[str, str] = {}
    for name in names:
        peer = PEERS[name]
        try:
            peer.version()
            found[name] = peer
        except ImportError as error:
            missing[name] = f"{error}; pip install {peer.needs}"
    return found, missing
