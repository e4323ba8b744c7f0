"""The index of the footer itself (docs/format.md, kind `footer`), written with the new footer of a file."""

from __future__ import annotations

from dataclasses import replace

from pageseek.base.report import format_size
from pageseek.format.embedded import KEY, Directory, InvalidIndexError, Pointer
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.footer_form import KIND, VERSION, body, body_bytes
from pageseek.format.sparse_footer import LARGE
from pageseek.index.footer_edit import FooterEdit, ended
from pageseek.index.local_target import Target


def footer_pointer(found: Directory | None) -> Pointer | None:
    """The entry of a footer index; None without one."""
    listed = () if found is None else found.pointers
    return next((one for one in reversed(listed) if one.kind == KIND), None)


def is_current(file: FileMetadata, pointer: Pointer) -> bool:
    """Whether the bytes of a footer index are those that the footer has now."""
    if pointer.version != VERSION or pointer.offset + pointer.length != file.footer_start:
        return False
    (data,) = file.store.read([(pointer.offset, pointer.length)])
    try:
        return bytes(data) == body(bytes(file.footer))
    except InvalidIndexError:
        return False


def write_footer(
    file: FileMetadata,
    edit: FooterEdit,
    listed: Directory,
    target: Target,
    orders: int,
    indexed: bool,
) -> str | None:
    """Write the last bytes of the new file: an index of its footer, if that is wanted, and the footer.

    Parameters
    ----------
    listed : Directory
        What the new file lists, without an index of the footer.
    orders : int
        As of `FooterEdit.footer`.

    Returns
    -------
    str or None
        Why there is no index of the footer although it was wanted.
    """
    why = None
    if indexed:
        own = Pointer(KIND, VERSION, target.size, body_bytes(file.num_leaves, file.num_row_groups))
        both = replace(listed, pointers=(*listed.pointers, own))
        edit.set_key(KEY, both.to_value())
        footer = edit.footer(orders)
        if len(footer) < LARGE:
            why = f"footer: the footer has {format_size(len(footer))}, and less than {format_size(LARGE)} are read at once"
        else:
            try:
                target.write(body(footer))
                target.write(ended(footer))
                return None
            except InvalidIndexError as error:
                why = f"footer: {error}"
    edit.set_key(KEY, listed.to_value() if listed.pointers else None)
    target.write(edit.tail(orders))
    return why
