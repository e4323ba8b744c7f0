"""Where files live: local disk, memory, any pyarrow filesystem; one small protocol for all.

Rooms: `base` the protocol, `local` a held descriptor, `memory` bytes at hand, `arrow` pyarrow filesystems,
`resolve` from what the user gives to stores, `hive` columns in the names of folders.
"""

from pageseek.storage.base import Store, Version
from pageseek.storage.hive import Types, typed
from pageseek.storage.resolve import Source, resolve

__all__ = ["Source", "Store", "Types", "Version", "resolve", "typed"]
