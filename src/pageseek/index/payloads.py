"""The payloads of embedded kinds: gathered by their builders chunk by chunk, and written when all chunks are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pageseek._core.bloom import xxh64
from pageseek.base.errors import UnsupportedError
from pageseek.base.report import format_size
from pageseek.format.embedded import Pointer, fingerprint, framed, types_of
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.attached import Attached
from pageseek.index.build import IndexSpec
from pageseek.index.local_target import Target
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
        self._builders = {
            (name, spec.leaf): builder for spec in specs for name, builder in spec.builders.items()
        }
        # small ones come last, where they may be read together with the footer
        self._columns = sorted(self._builders, key=lambda one: _is_small(one[0]))
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
        if sum(self._sizes.values()) > LISTED:
            why = (
                f"the values of all columns take more than {format_size(LISTED)} together; "
                "list those of fewer columns at a time"
            )
            self._give_up(key, why)

    def _give_up(self, key: tuple[str, Leaf], why: str) -> None:
        self._given_up[key] = why
        self._sizes.pop(key, None)
        del self._builders[key]

    def write(self, target: Target, result: Attached) -> list[Pointer]:
        """Write each payload as soon as its builder has made it, and count it in the result. Returns the directory's entries."""
        pointers = []
        for name, leaf in self._columns:
            kind, builder = kind_named(name), self._builders.pop((name, leaf), None)
            why = self._given_up.get((name, leaf))
            payload = b""
            if builder is not None:
                try:
                    payload = builder.finish()
                except NotBuiltError as error:
                    why = str(error)
                except UnsupportedError as error:
                    raise UnsupportedError(f"{self._file.name}: {error}") from None
            if why is not None:
                title = getattr(kind, "title", f"index of kind {name!r}")
                result.skipped.append(f"{title} of {leaf.name!r}: {why}")
                continue
            chunks, key = fingerprint(self._file, leaf), footer_key(name)
            body = payload if key is not None else framed(payload, chunks)
            at = target.write(body)
            if key is not None:
                self.keys[key] = at
            version = getattr(kind, "version", 1)
            made = Pointer(
                name, version, at, len(body), leaf.path, *types_of(leaf), xxh64(body), chunks
            )
            pointers.append(made)
            result.added[name, leaf.name] = getattr(builder, "chunks", self._file.num_row_groups)
        return pointers


def _is_small(name: str) -> bool:
    return bool(getattr(kind_named(name), "near_footer", False))


def footer_key(name: str) -> bytes | None:
    """The key of the footer that a kind in a form of others has; None of a kind that only the directory lists."""
    found: bytes | None = getattr(kind_named(name), "footer_key", None)
    return found
