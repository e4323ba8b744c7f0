"""Where files live: local disk, memory, object stores, HTTP servers, any filesystem of pyarrow or fsspec; one small
protocol for all.

Rooms: `base` the protocol, `local` a held descriptor, `memory` bytes at hand, `hive` columns in the names of folders,
`lake` tables of Delta Lake and Iceberg, `lake_places` where their files are. Distant ones: `remote` what they have in
common, on `endpoint` (what is measured), `requests` (the threads that wait), `retry` (what is tried again) and
`redact` (what may be said); `obstore_files` and `obstore_store`, `fsspec_files`, `arrow` by who opens them. `files` is
what these stand behind, `urls` chooses among them, `resolve` goes from what the user gives to files, `listing` says which
ones a directory or a glob means. `writing` puts one file to a store, `folders` looks what is beside it.
"""

from pageseek.storage.base import Known, Store, Version
from pageseek.storage.files import Begun
from pageseek.storage.hive import Types, typed
from pageseek.storage.remote import RemoteStore
from pageseek.storage.resolve import Source, Sources, resolve
from pageseek.storage.retry import Patience

__all__ = [
    "Begun",
    "Known",
    "Patience",
    "RemoteStore",
    "Source",
    "Sources",
    "Store",
    "Types",
    "Version",
    "resolve",
    "typed",
]
