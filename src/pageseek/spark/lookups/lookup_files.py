"""The files of a lookup: their columns, and the plans that keys leave of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import PageseekError, PredicateError
from pageseek.predicate import expression as ex
from pageseek.spark.columns.plan_schema import name_of, schema_of, shown
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.sparks import is_sparks, whole_of
from pageseek.spark.lookups.lookup_keys import form_of
from pageseek.spark.lookups.lookup_task import Probe
from pageseek.spark.session.names import Columns
from pageseek.spark.session.one_spelling import all_columns
from pageseek.spark.session.settings import Settings
from pageseek.spark.sources.opening import opened
from pageseek.spark.table.shim import fits
from pageseek.spark.table.told_filter import told_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pageseek.scanning.queries.scan import Scan


@dataclass(frozen=True)
class Files:
    """The files side of a lookup.

    Attributes
    ----------
    scan : Scan
        The columns that equal keys, then the others that come out; without the filter.
    columns : Columns
        All columns.
    on, output : tuple of str
        The columns that equal keys, and those that come out, as the files spell them.
    names : tuple of str
        The columns that come out, as the caller spells them.
    filter : Expression, optional
        A condition on the rows.
    forms : tuple of int
        How keys are compared (lookup_keys.py).
    wire : pyarrow.Schema
        The wire types of the scan's columns.
    schema : StructType
        Their types in Spark.
    name : str
        What errors call the files.
    source : str
        What plans and reports call them.
    """

    scan: Scan
    columns: Columns
    settings: Settings
    on: tuple[str, ...]
    output: tuple[str, ...]
    names: tuple[str, ...]
    filter: ex.Expression | None
    forms: tuple[int, ...]
    wire: pa.Schema
    schema: StructType
    name: str
    source: str

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        source: Any,
        on: Sequence[str],
        columns: Sequence[str] | None,
        with_on: bool,
        filter: Any,
        options: Mapping[str, Any],
    ) -> Files:
        """The files of a source. `with_on`: columns that equal keys come out, too, where they are asked for."""
        every = opened(spark, source, **options)
        binding = Binding(spark, every)
        known, made = binding.columns, _condition(spark, filter, binding)
        own = tuple(known.output(name) for name in on)
        whole = None
        if columns is None:
            every, whole = all_columns(binding.scan)
            known = Binding(spark, every).columns
            columns = whole.schema.names
        pairs = [(known.output(name), name) for name in columns]
        for one in dict.fromkeys((*own, *(pair[0] for pair in pairs))):
            if (
                "." in one
                and one not in all_columns(known.respelled(every).select(one))[1].schema.names
            ):
                raise PredicateError(
                    f"{one!r} is a field of a struct: name columns of the top level, or use read(...).join(...)"
                )
        if not with_on:
            pairs = [pair for pair in pairs if pair[0] not in own]
        output = tuple(pair[0] for pair in pairs)
        selected = known.respelled(every).select(*dict.fromkeys((*own, *output)))
        kinds = [known.kind((name,)) for name in own]
        if whole is None or not set(own) <= set(whole.schema.names):  # which raises what is wrong
            selected, found = all_columns(selected)
        else:
            fields = [whole.schema.field(name) for name in dict.fromkeys((*own, *output))]
            found = replace(whole, request=selected._request, schema=pa.schema(fields))
        wire, schema = schema_of(found, selected, spark)
        forms = [
            form_of(kind, found.schema.field(one).type)
            for kind, one in zip(kinds, own, strict=True)
        ]
        return cls(
            selected,
            known,
            binding.settings,
            own,
            output,
            tuple(pair[1] for pair in pairs),
            made,
            tuple(forms),
            wire,
            schema,
            name_of(selected),
            shown(source, selected),
        )

    def probe(self, output: Sequence[str], with_keys: bool) -> Probe:
        """What the tasks do, as far as it is known without a plan."""
        return Probe(self.on, self.forms, tuple(output), with_keys, self.filter, self.wire)


def _condition(spark: SparkSession, filter: Any, binding: Binding) -> ex.Expression | None:
    """A filter, all of which this package applies: the tasks have no Spark behind them.

    In a Classic session of Spark 4 Spark binds Columns, and SQL that is not known here.
    """
    if not is_sparks(filter):
        return binding.condition(filter)
    if isinstance(filter, str):
        try:
            return binding.condition(filter)
        except PageseekError:
            from pyspark.errors import PySparkException

            if fits(spark):
                with suppress(PageseekError, PySparkException):
                    return told_filter(spark, filter, binding)
            raise
    try:
        return told_filter(spark, filter, binding) if fits(spark) else whole_of(filter, binding)
    except PageseekError as error:
        raise PredicateError(
            f"{error}, and Spark applies no filter of lookup: use keys.join(load(...).where(...), on, how)"
        ) from error
