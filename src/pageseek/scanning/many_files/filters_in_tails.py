"""Whether the Bloom filters of many similar files are worth reading with their footers, by the first file."""

from __future__ import annotations

from pageseek.base.errors import InvalidIndexError
from pageseek.format import file_bloom_form
from pageseek.format.embedded import directory
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT
from pageseek.predicate.bound import tests_of
from pageseek.prune.registry import BLOOM_FILTER, FILE_BLOOM, STATISTICS
from pageseek.prune.row_groups import prune_groups
from pageseek.scanning.many_files.chunk_filters import ChunkFilters
from pageseek.scanning.many_files.file_filters import FileFilters
from pageseek.scanning.requests.bound_request import BoundRequest

LONGEST_TAIL = (
    32 << 10
)  # bytes of a tail with filters, which cost less than to open a file once more


def filter_bytes(file: FileMetadata, bound_request: BoundRequest) -> int:
    """The bytes of the end of a file in which the filters lie that its tests need; 0 if they need none, if these lie far from the end,
    or if statistics decide the file, as they may then decide most others.
    """
    bound, request = bound_request.bound, bound_request.request
    use = request.prune
    if bound is None or file.is_encrypted or not use & {FILE_BLOOM, BLOOM_FILTER}:
        return 0
    proof = prune_groups(file, bound, request.options, STATISTICS in use)
    if 1 not in proof.may or proof.may == proof.must:
        return 0
    try:
        found = directory(file)
    except InvalidIndexError:
        found = None
    pointers = () if found is None else found.pointers
    begins: list[int] = []
    for test in tests_of(bound):
        of_file: list[int] = []
        of_chunk: list[int] = []
        if FILE_BLOOM in use and FileFilters.takes(test):
            kind = file_bloom_form.KIND
            of_file = [p.offset for p in pointers if (p.kind, p.leaf) == (kind, test.leaf.path)]
        if not of_file and BLOOM_FILTER in use and not test.leaf.group and ChunkFilters.takes(test):
            of_chunk = [
                offset
                for group in range(file.num_row_groups)
                if (offset := file.chunk(group, test.leaf).bloom_filter_offset) != ABSENT
            ]
        begins += of_file or of_chunk
    length = file.store.size - min(begins, default=file.store.size)
    return length if 0 < length <= LONGEST_TAIL else 0
