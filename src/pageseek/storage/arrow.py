"""A file on any pyarrow filesystem."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.errors import FileChangedError
from pageseek.storage.base import Buffer, Version


class ArrowStore:
    """A file behind pyarrow.fs: size and modification time stand for its version, where the filesystem
    gives no time the size alone.
    """

    latency = 0.02
    bandwidth = 1e8

    def __init__(self, filesystem: pafs.FileSystem, path: str, name: str | None = None) -> None:
        self.name = name or path
        self._filesystem = filesystem
        self._path = path
        info = filesystem.get_file_info(path)
        if info.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"{self.name}: no such file")
        self.version = self._version(info)
        self.size = self.version.size
        self._file = filesystem.open_input_file(path)
        if isinstance(filesystem, pafs.LocalFileSystem):
            self.latency, self.bandwidth = 0.0, 2e9

    @staticmethod
    def _version(info: pafs.FileInfo) -> Version:
        dated = info.mtime_ns is not None
        return Version(info.size or 0, f"{info.size}:{info.mtime_ns}", False, dated)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        out: list[Buffer] = []
        for offset, length in ranges:
            try:
                data = self._file.read_at(length, offset)
            except pa.ArrowException as error:
                raise OSError(f"{self.name}: {length} bytes at {offset}: {error}") from error
            if len(data) != length:
                self.check()
                raise OSError(f"{self.name}: {length} bytes asked at {offset}, {len(data)} came")
            out.append(data)
        return out

    def check(self) -> None:
        now = self._version(self._filesystem.get_file_info(self._path))
        if now != self.version:
            raise FileChangedError(
                f"{self.name}: the file changed while it was being read ({self.version.tag} -> {now.tag}); open it again"
            )

    def close(self) -> None:
        self._file.close()
