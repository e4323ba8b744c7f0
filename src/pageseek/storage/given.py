"""Sources in the forms of other libraries, as `resolve` knows them: open files, datasets and their fragments, iterators.

The module is loaded when none of the usual forms fits. pyarrow.dataset and fsspec are not imported: an object of theirs
proves that they are.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.base.errors import StoreError, UnsupportedError
from pageseek.storage.file_objects import FileObject
from pageseek.storage.fsspec_files import is_filesystem
from pageseek.storage.obstore_files import is_store
from pageseek.storage.redact import shown

FORMS = "a path, a URL, a list or an iterator of them, a directory, a glob, (filesystem, path), bytes, an open file, or a dataset"


class FileOf:
    """A file of another library: its bytes, an open object, or a path on a filesystem; and the values of its folders.

    `partitions`: pairs of a name and a scalar of pyarrow. None: the file does not say.
    """

    __slots__ = ("data", "name", "partitions", "place")

    def __init__(
        self,
        name: str,
        data: bytes | FileObject | None = None,
        place: Any = None,
        partitions: tuple[tuple[str, pa.Scalar], ...] | None = None,
    ) -> None:
        self.name, self.data, self.place, self.partitions = name, data, place, partitions


def translated(source: Any) -> list[Any] | FileOf:
    """The source as one file, or as a list of sources.

    Raises
    ------
    TypeError
        It is no source; the message says what is.
    UnsupportedError
        It is one, with something that a scan would leave out.
    """
    kind = type(source)
    if isinstance(source, (Iterator, KeysView, ValuesView)) and not hasattr(source, "read"):
        return list(source)
    if isinstance(source, np.ndarray) and source.ndim == 1 and source.dtype.kind in "OUT":
        return list(source.tolist())
    if kind.__module__.startswith("fsspec.") and kind.__name__ == "OpenFile":
        return _of_fsspec(source)
    if kind.__module__.startswith("pyarrow."):
        found = _of_pyarrow(source)
        if found is not None:
            return found
    metadata: Any = getattr(source, "_metadata", None)  # of a ParquetFile of this package
    if kind.__module__.startswith("pageseek.") and hasattr(metadata, "source"):
        return [metadata.source]
    if hasattr(source, "read"):
        return _of_file(source)
    raise TypeError(f"source {_article(source)}: {_remedy(source) or FORMS}")


def with_filesystem(source: Any, filesystem: Any) -> Any:
    """The source with each path on a filesystem, as the option `filesystem=` of pyarrow means it."""
    if filesystem is None:
        return source
    if isinstance(filesystem, (str, os.PathLike)):
        raise TypeError(
            f"filesystem={str(filesystem)!r}: a filesystem of pyarrow or fsspec, or a store of obstore; "
            "a URL such as s3://bucket/key needs none"
        )
    if not (isinstance(filesystem, pafs.FileSystem) or is_filesystem(filesystem) or is_store(filesystem)):  # fmt: skip
        raise TypeError(
            f"filesystem: {_article(filesystem)} is no filesystem of pyarrow or fsspec, and no store of obstore"
        )
    if isinstance(source, (str, os.PathLike)):
        if isinstance(filesystem, pafs.FileSystem) and "://" in os.fspath(source):
            raise ValueError(
                f"{shown(os.fspath(source))}: a URL needs no filesystem=; a filesystem of pyarrow takes the path alone"
            )
        return filesystem, _on(filesystem, os.fspath(source))
    if isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], (str, os.PathLike)):  # fmt: skip
        raise TypeError(
            "filesystem=: the source (filesystem, path) has one already; give one of them"
        )
    if isinstance(source, (list, tuple, Iterator)):
        return [with_filesystem(one, filesystem) for one in source]
    raise TypeError(f"filesystem=: the source {_article(source)} has no path; give it alone")


def _on(filesystem: Any, path: str) -> str:
    """The path without the name of the filesystem, where it is one of fsspec, which takes URLs."""
    strip = getattr(filesystem, "_strip_protocol", None)
    if strip is not None and "://" in path:
        return str(strip(path))
    return path


def _of_file(file: Any) -> FileOf:
    """An open file: read by ranges if it can seek, else wholly, from where it stands."""
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) and name else f"<{type(file).__name__}>"
    if isinstance(file, io.TextIOBase):
        raise TypeError(
            f"{name}: the file is open as text; open it with mode 'rb', or give its path"
        )
    if getattr(file, "closed", False) is True:
        raise ValueError(
            f"{name}: the file object is closed; keep it open until the rows have been read"
        )
    readable = getattr(file, "readable", None)
    if readable is not None and not readable():
        raise TypeError(f"{name}: the file is open for writing alone; open it with mode 'rb'")
    seekable = getattr(file, "seekable", None)
    if hasattr(file, "seek") and hasattr(file, "tell") and (seekable is None or seekable()):
        return FileOf(name, FileObject(file, name))
    try:
        data = file.read()
    except Exception as error:
        raise StoreError(f"{name}: the file object cannot be read: {type(error).__name__}: {error}") from error  # fmt: skip
    if not isinstance(data, (bytes, bytearray, memoryview, pa.Buffer)):
        raise TypeError(f"{name}: read gave {type(data).__name__}, not bytes")
    return FileOf(name, bytes(data))


def _of_fsspec(file: Any) -> list[Any]:
    """What `fsspec.open` returned: a path on a filesystem, which is not open yet."""
    if file.compression is not None:
        raise UnsupportedError(
            f"{file.path}: a file that is compressed as a whole ({file.compression}) has no ranges: "
            "decompress it, or give .open() of it"
        )
    return [(file.fs, file.path)]


# ---- pyarrow


def _of_pyarrow(source: Any) -> list[Any] | FileOf | None:
    ds = sys.modules.get("pyarrow.dataset")
    if ds is not None:
        if isinstance(source, ds.Fragment):
            return _of_fragment(source, None)
        if isinstance(source, ds.Dataset):
            return _of_dataset(source)
    pq = sys.modules.get("pyarrow.parquet")
    if pq is not None:
        if isinstance(source, pq.ParquetFile):
            raise TypeError(
                "source pyarrow.parquet.ParquetFile: it does not tell its path; give the path, or what it was opened with"
            )
        if isinstance(source, pq.ParquetDataset):
            if getattr(source, "_filter_expression", None) is not None:
                raise UnsupportedError("source ParquetDataset: it has filters of its own; give them as filter=")  # fmt: skip
            return _of_dataset(source._dataset)
    return None


def _of_dataset(dataset: Any) -> list[Any]:
    ds = sys.modules["pyarrow.dataset"]
    options = getattr(dataset, "_scan_options", None)
    if options:
        raise UnsupportedError(
            f"source {type(dataset).__name__}: it has a filter of its own ({options.get('filter')}); "
            "give the dataset without it, and the filter as filter="
        )
    if isinstance(dataset, ds.UnionDataset):
        return [one for child in dataset.children for one in _of_dataset(child)]
    if not isinstance(dataset, ds.FileSystemDataset):
        raise UnsupportedError(
            f"source {type(dataset).__name__}: it has no files; a FileSystemDataset has"
        )
    fragments, schema = list(dataset.get_fragments()), dataset.schema
    files = [_of_fragment(one, schema) for one in fragments]
    found = {name for file in files for name, _ in file.partitions or ()}
    names = [name for name in schema.names if name in found]  # partition expressions sort them
    for fragment, file in zip(fragments, files, strict=True):
        known = dict(file.partitions or ())
        if len(known) < len(names):  # folders without names have none for null
            inside = set(fragment.physical_schema.names) & (set(names) - set(known))
            if inside:
                raise UnsupportedError(
                    f"{file.name}: the dataset has a value of {min(inside)!r} for other files, and this file has the column"
                )
        file.partitions = tuple([(name, known.get(name, _null(name, schema))) for name in names])
    return files


def _of_fragment(fragment: Any, schema: pa.Schema | None) -> FileOf:
    """The file of a fragment. `schema`: of its dataset, which has the types of partitions."""
    ds = sys.modules["pyarrow.dataset"]
    name = getattr(fragment, "path", None) or "<fragment>"
    if not isinstance(fragment, ds.ParquetFileFragment):
        kind = getattr(
            getattr(fragment, "format", None), "default_extname", type(fragment).__name__
        )
        raise UnsupportedError(f"{name}: a fragment of {kind}, not of Parquet")
    groups = fragment.__reduce__()[1][3]  # None: all; asking for row_groups would open the file
    if groups is not None and len(groups) != fragment.metadata.num_row_groups:
        raise UnsupportedError(
            f"{name}: a fragment of {len(groups)} of {fragment.metadata.num_row_groups} row groups: "
            "give the path, and choose rows by a filter or by take"
        )
    keys = ds.get_partition_keys(fragment.partition_expression)
    partitions = tuple(
        [(key, pa.scalar(value, _type(key, value, schema))) for key, value in keys.items()]
    )
    buffer = fragment.buffer
    if buffer is not None:
        return FileOf("<memory>", bytes(buffer), None, partitions)
    return FileOf(name, None, (fragment.filesystem, fragment.path), partitions)


def _null(name: str, schema: pa.Schema) -> pa.Scalar:
    return pa.scalar(None, _type(name, None, schema))


def _type(name: str, value: Any, schema: pa.Schema | None) -> pa.DataType:
    if schema is None or schema.get_field_index(name) < 0:
        return pa.scalar(value).type
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


# ---- errors


def _article(source: Any) -> str:
    kind = type(source)
    room = kind.__module__.partition(".")[0]
    return kind.__name__ if room == "builtins" else f"{room}.{kind.__name__}"


def _remedy(source: Any) -> str:
    """What to write instead of something that looks like a source."""
    kind = type(source).__name__
    if isinstance(source, (set, frozenset)):
        return "a set has no order, and rows come in the order of the files; give sorted(...)"
    if isinstance(source, Mapping):
        return "give a list of the keys, or of the values, that are paths"
    if kind == "LazyFrame":
        return "it is a query of polars; give the files that it reads, to pageseek.polars.scan for another such query"
    if isinstance(source, (pa.Table, pa.RecordBatch)) or kind == "DataFrame":
        return "its rows are in memory already; a source is a file, such as a path"
    if kind in ("Series", "Index"):
        return "give its .tolist()"
    if type(source).__module__.startswith("pageseek.") and kind == "Scan":
        return "a scan goes on by its methods: .filter(...), .select(...), .limit(...)"
    if type(source).__module__.startswith("pageseek.") and kind == "ArrowDataset":
        return "a dataset goes on by its methods: .filter(...), .scanner(...), .to_table(...); scan takes what it was made of"
    return ""
