"""What is wrong with files for any query, by their footers alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from pageseek.advice.commands import Target, command_of, output_option, python_of, title_of
from pageseek.advice.estimates import (
    BLOOM,
    FOOTER,
    LOOKUP,
    PAGE_INDEX,
    SORT,
    Change,
)
from pageseek.advice.larger_groups import USUAL_GROUP
from pageseek.advice.layout import Layout, spread
from pageseek.advice.present import Present
from pageseek.advice.results import Candidate, OpeningAdvice, Recommendation
from pageseek.base.errors import PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report, format_size
from pageseek.datasets.file_cache import cache
from pageseek.format.chunks import declared_pages
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.footer_form import body_bytes, end_bytes
from pageseek.format.page_headers import likely_pages
from pageseek.format.schema import Leaf
from pageseek.format.sparse_footer import TAIL_SHARE, is_large
from pageseek.format.types import BYTE_ARRAY
from pageseek.storage import Source

HUGE_GROUP = 1 << 30  # bytes of a row group that are too many
HUGE_ROWS = 20_000_000  # rows of one
TINY_GROUP, TINY_ROWS = 1 << 20, 20_000  # bytes and rows of a row group that are too few
LARGE_PAGE = 200_000  # rows of a page: one row costs all of them
SMALL_FILE, MANY_FILES = 8 << 20, 16
LEAST = 1 << 20  # bytes of a file whose codec matters
MOST_LOOKED_AT = 16
NEARLY = 0.8  # of the row groups begin above the one before, where a column is nearly sorted
END_BYTES = 8  # of a file, behind the footer
SCHEMA_BYTES = 12  # of a leaf in a footer, beside its name
SPARSE_REQUESTS = 4  # by which parts of a footer are read
WHOLE_REQUESTS = 2  # by which a large footer is read: the end of the file tells how long it is
SHOWN = 6  # columns that are named


class Facts(NamedTuple):
    """What the findings are made of."""

    files: list[FileMetadata]
    present: Present
    target: Target
    bytes: int
    outputs: list[str]  # words that outputs of commands were named by

    def another(self, word: str) -> Target:
        """The target of one more command. Each rewrites the files as they are, and has an output of its own."""
        self.outputs.append(word)
        return self.target.numbered(self.outputs.count(word))


def findings(
    sources: Sequence[Source], present: Present, target: Target, report: Report
) -> tuple[list[Recommendation], tuple[Recommendation, OpeningAdvice] | None, int]:
    """What would help any query, the most important first; what would make opening the files cheaper; and the bytes of all files."""
    chosen = spread(len(sources), MOST_LOOKED_AT)
    files = [cache.open(sources[i], report) for i in chosen]
    size = sum(file.store.size for file in files) * len(sources) // max(len(files), 1)
    facts = Facts(files, present, target, size, [])
    looks: tuple[Callable[[Facts], Iterator[Recommendation]], ...] = (
        _page_indexes, _statistics, _pages, _row_groups, _nearly_sorted, _filters, _codecs, _small_files,
    )  # fmt: skip
    made = [one for look in looks for one in look(facts)]
    return made, _wide(facts), size


def _attached(change: Change, facts: Facts, title: str, why: str) -> Recommendation:
    adds = facts.present.adds(change, None, Layout())
    return Recommendation(
        title, why, command_of(change, facts.target), python_of(change, facts.target), adds
    )


def _rewritten(facts: Facts, title: str, why: str, option: str, argument: str) -> Recommendation:
    target = facts.another("rewritten")
    output = target.output("rewritten")
    return Recommendation(
        title, why,
        f"pageseek rewrite {target.shell}{output_option(output)} {option}".rstrip(),
        f"ps.rewrite({target.python}, {output!r}{', ' if argument else ''}{argument})",
        0, True,
    )  # fmt: skip


def _page_indexes(facts: Facts) -> Iterator[Recommendation]:
    names = facts.present.no_page_index
    if names:
        yield _attached(
            Change(PAGE_INDEX, ()), facts, f"page index of {_named(names)}",
            "without it no filter can leave out single pages but by reading their headers one by one",
        )  # fmt: skip


def _statistics(facts: Facts) -> Iterator[Recommendation]:
    missing: dict[str, None] = {}
    for file in facts.files:
        for leaf in file.leaves:
            ordered = file.usable_statistics(leaf)[0] and leaf.max_rep == 0
            filled = [one for one, n in zip(file.chunks(leaf), file.group_rows, strict=True) if n]
            if ordered and any(one.statistics_present != 1 for one in filled):
                missing[leaf.name] = None
    names = [name for name in missing if name not in facts.present.no_page_index]
    if names:  # a page index, where it is missing too, is recommended above and has bounds
        yield _rewritten(
            facts, f"statistics of {_named(names)}", "without statistics in the footer no filter rules out row groups",
            "", "",
        )  # fmt: skip


def _pages(facts: Facts) -> Iterator[Recommendation]:
    large: dict[str, float] = {}
    for file in facts.files:
        for leaf in file.leaves:
            for chunk, n in zip(file.chunks(leaf), file.group_rows, strict=True):
                pages = declared_pages(chunk) or max(round(likely_pages(chunk)), 1)
                # the pages of what compresses to next to nothing may be as large as they like
                if n / pages > LARGE_PAGE and chunk.total_compressed_size / pages > LEAST / 4:
                    large[leaf.name] = max(large.get(leaf.name, 0), n / pages)
    if large:
        most = max(large.values())
        yield _rewritten(
            facts, f"smaller pages of {_named(list(large))}",
            f"pages have up to {most:,.0f} rows: to read one row takes all of them",
            "--page-rows 20000", "page_rows=20_000",
        )  # fmt: skip


def _row_groups(facts: Facts) -> Iterator[Recommendation]:
    for file in facts.files:
        sizes = [0] * file.num_row_groups
        for leaf in file.leaves:
            for i, chunk in enumerate(file.chunks(leaf)):
                sizes[i] += max(chunk.total_compressed_size, 0)
        option, argument = f"--row-group-rows {USUAL_GROUP}", f"row_group_rows={USUAL_GROUP:_}"
        if sizes and (max(sizes) > HUGE_GROUP or max(file.group_rows) > HUGE_ROWS):
            why = f"a row group has {format_size(max(sizes))} and {max(file.group_rows):,} rows: statistics and Bloom filters speak of all of it"
            yield _rewritten(facts, "smaller row groups", why, option, argument)
            return
        if (
            len(sizes) >= 8
            and sum(sizes) / len(sizes) < TINY_GROUP
            and file.num_rows / len(sizes) < TINY_ROWS
        ):
            why = f"{len(sizes):,} row groups have {format_size(sum(sizes) // len(sizes))} each: every one of them costs requests and a part of the footer"
            yield _rewritten(facts, "larger row groups", why, option, argument)
            return


def _nearly_sorted(facts: Facts) -> Iterator[Recommendation]:
    for file in facts.files[:1]:
        for leaf in file.leaves:
            if leaf.max_rep == 0 and _rises(file, leaf):
                change, target = Change(SORT, (leaf.name,)), facts.another("sorted")
                yield Recommendation(
                    f"rows sorted by {leaf.name}",
                    "its row groups, or pages, nearly follow one another: sorted, a filter on it would read one piece of the file",
                    command_of(change, target), python_of(change, target), 0, True,
                )  # fmt: skip


def _rises(file: FileMetadata, leaf: Leaf) -> bool:
    """Whether the bounds of row groups, or of the pages of the first one, mostly rise and yet overlap."""
    try:
        lower, upper = file.statistics(leaf)
        if len(lower) < 8:
            found = file.column_index(0, leaf) if file.num_row_groups else None
            if found is None:
                return False
            lower, upper = found.lower, found.upper
        lows, highs = lower.to_pylist(), upper.to_pylist()
    except (PageseekError, pa.ArrowException, ValueError, OverflowError):
        return False
    pairs = [
        (low, high)
        for low, high in zip(lows, highs, strict=True)
        if low is not None and high is not None
    ]
    if len(pairs) < 8:
        return False
    rising = sum(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(pairs)) / (
        len(pairs) - 1
    )
    overlaps = sum(b[0] < a[1] for a, b in itertools.pairwise(pairs)) / (len(pairs) - 1)
    distinct = len({low for low, _ in pairs})
    return rising >= NEARLY and overlaps > 0.1 and 2 * distinct > len(pairs)


def _filters(facts: Facts) -> Iterator[Recommendation]:
    """Texts of many values: their writers gave up the dictionary."""
    many: dict[str, None] = {}
    for file in facts.files:
        for leaf in file.leaves:
            if leaf.element.type != BYTE_ARRAY or leaf.max_rep:
                continue
            if facts.present.has(BLOOM, leaf.name) or facts.present.has(LOOKUP, leaf.name):
                continue
            if any(
                one.encoding_stats == 1 and one.other_data_pages > 0 for one in file.chunks(leaf)
            ):
                many[leaf.name] = None
    if many:
        yield _attached(
            Change(BLOOM, tuple(many)), facts, f"Bloom filters of {_named(list(many))}",
            "texts of many values have no filter: a lookup that they cannot answer reads all row groups whose bounds have it",
        )  # fmt: skip


def _codecs(facts: Facts) -> Iterator[Recommendation]:
    plain = 0
    for file in facts.files:
        for leaf in file.leaves:
            plain += sum(
                max(one.total_compressed_size, 0) for one in file.chunks(leaf) if one.codec == 0
            )
    if plain > LEAST and 2 * plain > sum(file.store.size for file in facts.files):
        yield _rewritten(
            facts, "compressed pages", f"{format_size(plain)} of pages are not compressed", "--codec zstd", "codec='zstd'"
        )  # fmt: skip


def _small_files(facts: Facts) -> Iterator[Recommendation]:
    n = facts.present.num_files
    if n >= MANY_FILES and facts.bytes / n < SMALL_FILE:
        why = f"{n:,} files have {format_size(facts.bytes // n)} each: a query opens every one that may have a row"
        yield _rewritten(facts, "fewer files", why, f"--row-group-rows {USUAL_GROUP}", f"row_group_rows={USUAL_GROUP:_}")  # fmt: skip


def _wide(facts: Facts) -> tuple[Recommendation, OpeningAdvice] | None:
    """Footers of which a query needs a small part."""
    if facts.present.has(FOOTER, ""):
        return None
    large = [file for file in facts.files if is_large(file.store, _footer_bytes(file))]
    if not large:
        return None
    scale = facts.present.num_files / len(facts.files)
    before = sum(map(_footer_bytes, large)) / len(large)
    after = sum(map(_footer_part, large)) / len(large)
    if after > before / 2:
        return None
    change = Change(FOOTER, ())
    adds = sum(body_bytes(len(file.leaves), file.num_row_groups) for file in large) * scale
    adds += facts.present.page_index_bytes  # `attach` adds page indexes as well
    how = command_of(change, facts.target), python_of(change, facts.target)
    candidate = Candidate(
        title_of(change), FOOTER, (), round(after), SPARSE_REQUESTS, int(adds), False, *how
    )
    found = Recommendation(
        title_of(change),
        f"a footer has {format_size(round(before))}, all of which is read to open a file, by 1 request or 2; for a query of one column "
        f"about {format_size(round(after))} are read then, by {SPARSE_REQUESTS} requests",
        *how,
        int(adds),
    )
    return found, OpeningAdvice(round(before), WHOLE_REQUESTS, candidate)


def _footer_bytes(file: FileMetadata) -> int:
    return int(file.store.size) - END_BYTES - file.footer_start


def _footer_part(file: FileMetadata) -> int:
    """About the bytes of a footer that a query of one column reads: the schema, the properties, and its chunks."""
    size, n = _footer_bytes(file), max(len(file.leaves), 1)
    pairs = sum(len(key) + len(value or b"") for key, value in file.key_value_metadata.items())
    schema = sum(len(leaf.name) + SCHEMA_BYTES for leaf in file.leaves)
    return pairs + schema + end_bytes(file.num_row_groups) + size // TAIL_SHARE + size // n


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
