"""The payloads of embedded kinds: gathered by their builders chunk by chunk, and written when all chunks are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pageseek._core.bloom import xxh64
from pageseek.base.errors import UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.base.report import format_size
from pageseek.format.embedded import (
    KEY_LOOKUP,
    Pointer,
    fingerprint,
    fingerprint_of_key,
    framed,
    types_of_key,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.attached import Attached
from pageseek.index.build import IndexSpec
from pageseek.index.key_builder import KeyMember
from pageseek.index.local_target import Target
from pageseek.index.spilled import SpillingBuilder
from pageseek.prune.kind import NotBuiltError
from pageseek.prune.registry import kind_named

LISTED = 256 << 20  # bytes that all builders hold together


class Payloads:
    """The builders of a file, by kind and column.

    Attributes
    ----------
    keys : dict
        Keys of the footer that kinds in a form of others have, with the places of their payloads; known after `write`.
    """

    def __init__(self, file: FileMetadata, specs: Sequence[IndexSpec]) -> None:
        self._file = file
        self._specs = {spec.leaf: spec for spec in specs}
        self._builders = {
            (name, spec.leaf): builder for spec in specs for name, builder in spec.builders.items()
        }
        self._outputs = _outputs(file, self._builders)
        self._sizes: dict[tuple[str, Leaf], int] = {}  # bytes that builders hold
        self._given_up: dict[tuple[str, Leaf], str] = {}  # and why
        self.keys: dict[bytes, int] = {}

    def add(self, name: str, leaf: Leaf, row_group: int, part: Any) -> None:
        """Hand what was made of a chunk to the builder of its column."""
        key = name, leaf
        builder = self._builders.get(key)
        if builder is None:  # given up
            return
        if isinstance(part, NotBuiltError):
            self._give_up(key, str(part))
            return
        try:
            builder.add(row_group, part)
        except NotBuiltError as error:
            self._give_up(key, str(error))
            return
        self._sizes[key] = getattr(builder, "nbytes", 0)
        if sum(self._sizes.values()) <= LISTED:
            return
        for one, other in self._builders.items():
            if isinstance(other, SpillingBuilder):
                other.spill()
                self._sizes[one] = other.nbytes
        if sum(self._sizes.values()) > LISTED:
            why = (
                f"the values of all columns take more than {format_size(LISTED)} together; "
                "list those of fewer columns at a time"
            )
            self._give_up(key, why)

    def _give_up(self, key: tuple[str, Leaf], why: str) -> None:
        """Drop a builder, and those of the other columns of its index: no more pages are put to them."""
        for part in next(one.parts for one in self._outputs if key in one.parts):
            self._given_up[part] = why
            self._sizes.pop(part, None)
            self._builders.pop(part, None)
            name, leaf = part
            self._specs[leaf].builders.pop(name, None)

    def write(self, target: Target, result: Attached) -> list[Pointer]:
        """Write each payload as soon as its builder has made it, and count it in the result. Returns the directory's entries."""
        pointers = []
        for one in self._outputs:
            why = next((self._given_up[part] for part in one.parts if part in self._given_up), None)
            payload: bytes | bytearray = b""
            if why is None:
                try:
                    payload = self._builders[one.parts[0]].finish()
                except NotBuiltError as error:
                    why = str(error)
                except UnsupportedError as error:
                    raise UnsupportedError(f"{self._file.name}: {error}") from None
            chunks = getattr(self._builders.get(one.parts[0]), "chunks", self._file.num_row_groups)
            for part in one.parts:  # what it holds is not needed any more
                self._builders.pop(part, None)
            kind = kind_named(one.kind)
            if why is not None:
                title = getattr(kind, "title", f"index of kind {one.kind!r}")
                result.skipped.append(f"{title} of {one.column!r}: {why}")
                continue
            key = footer_key(one.kind)
            body = payload if key is not None else framed(payload, one.chunks)
            at = target.write(body)
            if key is not None:
                self.keys[key] = at
            version, types = getattr(kind, "version", 1), types_of_key(one.leaves)
            pointers.append(
                Pointer(one.kind, version, at, len(body), one.path, *types, xxh64(body), one.chunks)
            )
            result.added[one.kind, one.column] = chunks
        return pointers


class _Output(NamedTuple):
    """A payload. `path`, `column`: how its entry and the result name its columns. `parts`: the keys of its builders."""

    kind: str
    path: tuple[str, ...]
    column: str
    leaves: tuple[Leaf, ...]
    parts: list[tuple[str, Leaf]]
    chunks: int


def _outputs(file: FileMetadata, builders: Mapping[tuple[str, Leaf], Any]) -> list[_Output]:
    """The payloads in the order in which they are written: small ones last, where they may be read together with the footer."""
    made = []
    of_member = {id(builder): part for part, builder in builders.items()}
    for part, builder in builders.items():
        if not isinstance(builder, KeyMember):
            name, leaf = part
            chunks = fingerprint(file, leaf)
            made.append(_Output(name, leaf.path, leaf.name, (leaf,), [part], chunks))
        elif builder is builder.owner.members[0]:  # it stands for all
            parts = [of_member[id(member)] for member in builder.owner.members]
            leaves = tuple([leaf for _, leaf in parts])
            path = tuple([leaf.name for leaf in leaves])
            chunks = fingerprint_of_key(file, leaves)
            made.append(_Output(KEY_LOOKUP, path, ", ".join(path), leaves, parts, chunks))
    return sorted(made, key=lambda one: _is_small(one.kind))


def _is_small(name: str) -> bool:
    return bool(getattr(kind_named(name), "near_footer", False))


def footer_key(name: str) -> bytes | None:
    """The key of the footer that a kind in a form of others has; None of a kind that only the directory lists."""
    found: bytes | None = getattr(kind_named(name), "footer_key", None)
    return found
