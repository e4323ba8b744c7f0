"""`advise`: what would make queries cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pageseek.advice.candidates import changes_for
from pageseek.advice.column_facts import ColumnFacts
from pageseek.advice.commands import Target, command_of, python_of, title_of
from pageseek.advice.estimates import ATTACHED, FILE_BLOOM, TRIGRAM, Change, Estimator
from pageseek.advice.footers import findings
from pageseek.advice.layout import layout_of
from pageseek.advice.matches import Matches
from pageseek.advice.present import Present, present_in
from pageseek.advice.questions import EQUAL, Question, questions_of
from pageseek.advice.reading import Cost
from pageseek.advice.recommending import Tried, is_worth_it, recommended
from pageseek.advice.results import (
    Advice,
    Candidate,
    OpeningAdvice,
    QueryAdvice,
    Recommendation,
    rounded,
)
from pageseek.advice.sampling import Sample, masks_of, sample_of
from pageseek.api import scan
from pageseek.base.arguments import whole
from pageseek.base.habits import ReadHabits, refuse
from pageseek.base.report import Report, counted
from pageseek.base.tracebacks import short_traceback
from pageseek.format.sparse_footer import PART
from pageseek.scanning.queries.scan import Scan
from pageseek.storage import Sources

SAMPLE = 32 << 20  # bytes that are sampled for all queries together
NOT_OURS = ("columns", "filter", "limit", "progress")  # options of `scan` that the queries have


def _check_options(options: Mapping[str, Any]) -> None:
    """TypeError for an option that neither `advise` nor `scan` has."""
    known = {*(scan.__kwdefaults__ or ()), *ReadHabits.__annotations__} - {*NOT_OURS}
    if others := {name: value for name, value in options.items() if name not in known}:
        refuse(others, ["queries", *(advise.__kwdefaults__ or ()), *sorted(known)], "advise")


@short_traceback
def advise(
    source: Any,
    queries: Any = None,
    *,
    sample_bytes: int = SAMPLE,
    analyze: bool = False,
    **options: Any,
) -> Advice:
    """What would make filters cheaper: indexes, another order of the rows, smaller pages. Nothing is written.

    For each query it is estimated what a scan reads now, and what it would read of files with one more index, or with their rows
    in another order. Without queries, the footers tell what would help any query.

    Parameters
    ----------
    source : path, URL, list, (filesystem, path), bytes, or a table
        As of `scan`.
    queries : list, optional
        Filters, in any form that `scan` takes, or pairs of (filter, columns). Columns are all that the query returns; None, and a
        filter alone, is all columns. One query need not stand in a list.
    sample_bytes : int
        The greatest number of bytes of data that are read for the estimates of all queries together; 32 MiB unless given.
        Footers and page indexes, which planning reads, are not among them.
    analyze : bool
        Run the queries, and count what they read now. Otherwise that is an estimate, too.
    **options
        As of `scan`: `table`, `version`, `storage_options`, `nan` and others.

    Returns
    -------
    Advice
        Its text is for people; `recommended`, `queries` and `to_dict()` are for programs.

    Raises
    ------
    PredicateError
        A query is no filter, names a column that does not exist, or has parameters.
    PageseekError
        A file cannot be opened.
    """
    if whole("sample_bytes", sample_bytes) < 0:
        raise ValueError(f"sample_bytes={sample_bytes}: not negative")
    for name in NOT_OURS:
        if name in options:
            raise TypeError(f"advise: {name}= belongs into a query: (filter, columns)")
    _check_options(options)
    lazy = scan(source, **options)
    report = Report()
    present = present_in(lazy.sources, report)
    target = Target.of(source, lazy)
    found, opening, size = findings(lazy.sources, present, target, report)
    name = lazy.sources[0].name if target.is_one else ", ".join(target.names) or "the source"
    made = Advice(name, present.num_files, present.num_rows, size)
    if queries is None:
        made.recommended = found
        _add_opening(made, opening)
        return made
    tried: list[Tried] = []
    prices: dict[Change, int] = {}
    left = sample_bytes
    asked = questions_of(queries, lazy.schema)
    for number, question in enumerate(asked):
        one = _Query(lazy, question, present, left // (len(asked) - number))
        left -= one.sample.bytes
        made.sampled_bytes += one.sample.bytes
        tried.append(one.tried())
        for change in tried[-1].after:
            prices.setdefault(change, one.price(change) if change.kind in ATTACHED else size)
        made.queries.append(one.advice(tried[-1], prices, target, analyze))
    made.recommended = recommended(tried, prices, target)
    if any(_has_few_columns(one, len(lazy.schema)) for one in asked):
        _add_opening(made, opening)
    return made


def _add_opening(made: Advice, opening: tuple[Recommendation, OpeningAdvice] | None) -> None:
    if opening is not None:
        made.recommended.append(opening[0])
        made.opening = opening[1]


def _has_few_columns(question: Question, total: int) -> bool:
    """Whether a query needs so few columns that only parts of a large footer are read."""
    few = question.columns is not None
    return few and PART * len({*question.needed, *(question.columns or ())}) <= total


class _Query:
    """One query with its plan and its sample."""

    def __init__(self, lazy: Scan, question: Question, present: Present, most: int) -> None:
        self._question, self._present = question, present
        self._scan = lazy.filter(question.filter)
        if question.columns is not None:
            self._scan = self._scan.select(*question.columns)
        plan = self._scan.plan()
        conditions = [one.expression for one in question.conditions]
        layout = layout_of(plan, conditions, Report())
        self.sample: Sample = sample_of(Sources.of(lazy.sources), plan, layout, question, most)
        masks = masks_of(self.sample, conditions, plan.request.nan)
        matches = Matches(layout, self.sample, question.conditions, masks)
        has_file_filters = any(
            one.kind == EQUAL and present.has(FILE_BLOOM, one.path) for one in question.conditions
        )
        self._estimator = Estimator(
            matches, present.num_rows, plan.report, self._filter_bytes, has_file_filters
        )

    def tried(self) -> Tried:
        """The costs of now, and with each change."""
        estimator = self._estimator
        after = {one: estimator.after([one]) for one in changes_for(estimator, self._present)}
        return Tried(
            self._question.text, estimator.before(), after, estimator.in_another_order(), estimator.after
        )  # fmt: skip

    def price(self, change: Change) -> int:
        """About the bytes that an attached index adds."""
        if change.kind == TRIGRAM and (found := self._estimator.search(change.columns[0])):
            return found[1].size
        layout = self._estimator.layout
        return self._present.adds(change, self._facts(change.columns), layout)

    def _filter_bytes(self, kind: str, path: str) -> int:
        """About the bytes of a Bloom filter of a column."""
        return self._present.filter_bytes(kind, self._facts([path]), self._estimator.layout)

    def _facts(self, columns: Sequence[str]) -> ColumnFacts | None:
        """The facts of the first of some columns that the query tests."""
        matches = self._estimator.matches
        for facts, one in zip(matches.facts, matches.conditions, strict=True):
            if one.path in columns:
                return facts
        return None

    def advice(
        self, tried: Tried, prices: dict[Change, int], target: Target, analyze: bool
    ) -> QueryAdvice:
        """What is said of the query."""
        now = rounded(tried.before)
        if analyze:
            report = self._scan.explain(analyze=True)
            data, index = report.bytes["data"], report.bytes["index"]
            now = data + index, report.requests, report.tally()[0].read
        candidates = [
            Candidate(
                title_of(change), change.kind, change.columns, *rounded(cost)[:2],
                prices[change] if change.kind in ATTACHED else 0, change.kind not in ATTACHED,
                command_of(change, target), python_of(change, target),
            )
            for change, cost in tried.after.items()
        ]  # fmt: skip
        candidates.sort(key=lambda one: (one.bytes, one.requests, one.adds_bytes))
        return QueryAdvice(
            self._question.text, self._question.columns, self._estimator.num_rows, *now, analyze, candidates,
            self._note(tried, prices),
        )  # fmt: skip

    def _note(self, tried: Tried, prices: dict[Change, int]) -> str:
        matches = self._estimator.matches
        if not matches.layout.groups:
            return "Nothing to gain: statistics rule out every row."
        if self._question.needed and not self.sample.taken:
            return "Not sampled: a page of its columns, with the dictionary, takes more than sample_bytes. The number of rows is a guess."
        if any(
            is_worth_it(tried.before, cost, one, prices[one]) for one, cost in tried.after.items()
        ):
            return ""
        rest = "" if tried.after else " No index applies to these columns that is not there."
        return f"Nothing to gain: {_why(tried.before, self._estimator)}.{rest}"


def _why(before: Cost, estimator: Estimator) -> str:
    """Why no change is worth it."""
    leaves = {leaf for group in estimator.layout.groups for leaf in group.leaves}
    if before.pages <= 3 * max(len(leaves), 1):
        return f"it reads {counted(round(before.pages), 'page')} of {counted(len(leaves), 'column')} already"
    passed = estimator.num_rows / max(
        estimator.layout.num_rows / max(estimator.layout.share, 1e-12), 1
    )
    if passed > 0.2:
        return f"{passed:.0%} of the rows that it reads pass"
    return "no change would halve its bytes or its requests"
