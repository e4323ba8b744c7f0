"""A simulated store: a great many names for few files. Spark's workers import it, too."""

from __future__ import annotations

import os
import uuid
from functools import cached_property
from typing import Any

from fsspec.asyn import AsyncFileSystem

IN_A_FOLDER = 1_000  # names, each of another file as far as there are so many


class ManyNames(AsyncFileSystem):
    """A store whose folders `lake/day=0`, `lake/day=1` ... have a thousand names each, as writers make them.

    Parameters
    ----------
    folder : str
        On this machine's disk, with the files that the names stand for: the n-th name of each folder is the file n.
    count : int
        How many names there are.
    """

    protocol = "many"
    cachable = True

    def __init__(self, folder: str, count: int, **more: Any) -> None:
        super().__init__(folder, count, **more)
        self.folder, self.count = folder, count

    @cached_property
    def files(self) -> list[tuple[str, int, str]]:
        """The path, the size and the version of each file."""
        paths = sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder))
        return [(path, os.path.getsize(path), f"{os.stat(path).st_mtime_ns}") for path in paths]

    @cached_property
    def names(self) -> dict[str, int]:
        """The names, each with the number of its file."""
        made = {}
        for i in range(self.count):
            day, n = divmod(i, IN_A_FOLDER)
            name = f"part-{n:05}-{uuid.uuid5(uuid.NAMESPACE_OID, str(i))}-c000.snappy.parquet"
            made[f"lake/day={day}/{name}"] = n % len(self.files)
        return made

    async def _find(self, path: str, **how: Any) -> list[str]:
        start = path.strip("/") + "/"
        return [name for name in self.names if name.startswith(start)]

    async def _ls(self, path: str, detail: bool = True, **how: Any) -> list[Any]:
        start = path.strip("/") + "/"
        found = {start + name[len(start) :].partition("/")[0] for name in await self._find(path)}
        if not detail:
            return sorted(found)
        folder = {"size": 0, "type": "directory"}
        return [
            await self._info(name) if name in self.names else {"name": name, **folder}
            for name in sorted(found)
        ]

    async def _info(self, path: str, **how: Any) -> dict[str, Any]:
        try:
            _, size, tag = self.files[self.names[path.strip("/")]]
        except KeyError:
            raise FileNotFoundError(path) from None
        return {"name": path, "size": size, "type": "file", "ETag": tag}

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **how: Any
    ) -> bytes:
        with open(self.files[self.names[path.strip("/")]][0], "rb") as file:
            file.seek(start or 0)
            return file.read(-1 if end is None else end - (start or 0))
