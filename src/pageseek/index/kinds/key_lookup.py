"""The rows of each combination of values of several columns, as `lookup` has those of one (docs/format.md, kind `key_lookup`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from pageseek.base.records import dataclass
from pageseek.format import lookup_form as form
from pageseek.format.embedded import (
    KEY_LOOKUP,
    InvalidIndexError,
    Pointer,
    directory,
    fingerprint_of_key,
    types_of_key,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.kinds.lookup import HashedRowsKind
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import IndexedColumn
from pageseek.prune.needed_hashes import has_built_form, needed_hashes, needed_hashes_of_key
from pageseek.prune.protocol import PruneContext

if TYPE_CHECKING:
    from pageseek.index.key_builder import KeyBuilder

MOST_KEYS = 256  # indexes of a file that are used: each test looks through them


@dataclass(frozen=True, slots=True)
class _Key:
    """An index of a file: its entry, and its columns."""

    pointer: Pointer
    leaves: tuple[Leaf, ...]


class KeyLookupKind(HashedRowsKind):
    """Rules out all rows but those that an index has for `=` and IN of several columns, all of which every row has to pass.

    The test of the first column stands for all of them.
    """

    name, title = KEY_LOOKUP, "lookup index of several columns"

    # -- build ------------------------------------------------------------------------------------

    def build_key(self, columns: Sequence[IndexedColumn]) -> KeyBuilder:
        """The hashes of all row groups, put together."""
        from pageseek.index.key_builder import KeyBuilder

        return KeyBuilder(columns)

    # -- prune ------------------------------------------------------------------------------------

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the column is the first of an index."""
        return any(key.leaves[0].index == leaf.index for key in _keys(file))

    def _found(
        self, context: PruneContext, test: BoundLeaf
    ) -> tuple[_Key, list[BoundLeaf], form.U64] | None:
        """The index of the most columns that decides a test together with others, these tests, and the hashes of their values."""
        best: tuple[_Key, list[BoundLeaf], form.U64] | None = None
        for key in _keys(context.file):
            if key.leaves[0].index != test.leaf.index or not _may_stand_for(context, test):
                continue
            tests = [test, *_others(context, key.leaves[1:])]
            if len(tests) < len(key.leaves) or (best and len(best[1]) >= len(tests)):
                continue
            hashes = needed_hashes_of_key(tests)
            if hashes is not None:
                best = key, tests, hashes
        return best

    def hashes(self, context: PruneContext, test: BoundLeaf) -> form.U64 | None:
        """The hashes of the keys of which a row needs one."""
        found = self._found(context, test)
        return None if found is None else found[2]

    def key(self, context: PruneContext, test: BoundLeaf) -> Hashable:
        """The columns, with the types in which they are read."""
        found = self._found(context, test)
        assert found is not None
        return found[0].pointer, *[one.leaf_type for one in found[1]]

    def pointer(self, context: PruneContext, test: BoundLeaf) -> Pointer | None:
        """Where the index lies."""
        found = self._found(context, test)
        return None if found is None else found[0].pointer

    def chunks(self, file: FileMetadata, pointer: Pointer, test: BoundLeaf) -> int:
        """The fingerprint of all columns of the index."""
        key = next(key for key in _keys(file) if key.pointer == pointer)
        return fingerprint_of_key(file, key.leaves)


def _may_stand_for(context: PruneContext, test: BoundLeaf) -> bool:
    """Whether every row has to pass a test, which names values of the form in which `attach` hashed them."""
    required = any(test is one for one in context.required)
    return required and not test.leaf.group and has_built_form(context.file.schema_tree, test)


def _others(context: PruneContext, leaves: Sequence[Leaf]) -> list[BoundLeaf]:
    """A test of each leaf that a key may be found by; fewer where there is none of a leaf."""
    made = []
    for leaf in leaves:
        for test in context.required:
            known = test.leaf.index == leaf.index and _may_stand_for(context, test)
            if known and needed_hashes(test) is not None:
                made.append(test)
                break
    return made


def _keys(file: FileMetadata) -> list[_Key]:
    """The usable indexes of a file."""
    known: list[_Key] | None = file.indexes.get(KEY_LOOKUP)
    if known is None:
        known = []  # kept when it is whole: other threads would take the one key for the other
        try:
            found = directory(file)
        except InvalidIndexError:  # noted where indexes of single columns are looked for
            found = None
        latest = {} if found is None else {(one.kind, one.leaf): one for one in found.pointers}
        for pointer in latest.values():
            leaves = key_leaves(file, pointer)
            if leaves is not None:
                known.append(_Key(pointer, leaves))
            if len(known) == MOST_KEYS:
                break
        file.indexes[KEY_LOOKUP] = known
    return known


def key_leaves(file: FileMetadata, pointer: Pointer) -> tuple[Leaf, ...] | None:
    """The columns of an index of this kind, if the file has such columns, of the types that it was built of. A key has two different
    columns or more.
    """
    names = pointer.leaf or ()
    if (pointer.kind, pointer.version) != (KEY_LOOKUP, form.VERSION) or len(names) < 2:
        return None
    try:
        leaves = tuple([file.schema_tree.find(name) for name in names])
    except ValueError:  # a PredicateError, or a name that is no text
        return None
    if len({leaf.index for leaf in leaves}) < len(leaves):
        return None
    return leaves if types_of_key(leaves) == (pointer.physical, pointer.logical) else None


KIND = KeyLookupKind()
