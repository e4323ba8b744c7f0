"""One file written to a store, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from pageseek.base.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.storage.atomic_files import EXISTS, hidden_name
from pageseek.storage.files import Files
from pageseek.storage.obstore_files import ObstoreFiles
from pageseek.storage.obstore_store import ObstoreStore, etag_of, version_of
from pageseek.storage.obstore_store import fault_of as obstore_fault
from pageseek.storage.redact import secrets_of
from pageseek.storage.remote import RemoteStore
from pageseek.storage.requests import issue
from pageseek.storage.resolve import Source
from pageseek.storage.retry import Fault, RetryPolicy
from pageseek.storage.store import Store

ONE_PUT = 5000 << 20  # bytes: the least of what S3, GCS and Azure take in one request
PART, PARTS = 16 << 20, 9_000  # bytes of one part, and how many there may be
AT_ONCE = 4  # parts under way
STEP = 8 << 20  # bytes handed to a stream at a time
SLOWEST = 1 << 20  # bytes a second that a connection sends at least

Outcome = Literal["done", "exists", "changed"]


class Writer(RemoteStore):
    """Where one file is to be put. `conditional`: it can be told to replace one version of a file and no other."""

    conditional = False
    _left = ""  # what a failure may leave behind

    def exists(self) -> bool:
        """Whether something lies there."""
        (found,) = issue(self._endpoint, [self._asked(self._exists, "whether it is there")])
        return found

    def put(
        self,
        body: memoryview,
        *,
        overwrite: bool = False,
        instead_of: Store | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Write the file. `overwrite`: whatever lies there is replaced; `instead_of`: that version is, and no other.

        Raises
        ------
        FileExistsError
            Something lies there.
        FileChangedError
            What lies there is another version.
        UnsupportedError
            The store cannot do that. As with all errors, what lay there still does.
        """
        attempt = self._prepared(body, overwrite, instead_of, attributes or {})
        try:
            (found,) = issue(self._endpoint, [self._asked(attempt, f"to put {body.nbytes} bytes")])
        except StoreError as error:
            raise StoreError(f"{error}{self._left}") from None
        if found == "exists":
            raise FileExistsError(f"{self.name}: {EXISTS}")
        if found == "changed":
            raise FileChangedError(
                f"{self.name}: the file was replaced or deleted by somebody else meanwhile, and is left as it is; begin anew"
            )

    def delete(self) -> None:
        """Take away what lies there."""
        issue(self._endpoint, [self._asked(self._delete, "to be deleted")])

    def _exists(self) -> bool:
        raise NotImplementedError

    def _delete(self) -> None:
        raise NotImplementedError

    def _prepared(
        self,
        body: memoryview,
        overwrite: bool,
        instead_of: Store | None,
        attributes: Mapping[str, str],
    ) -> Callable[[], Outcome]:
        """What is tried, maybe several times."""
        raise NotImplementedError


def writer(to: Source) -> Writer:
    """What writes to a place on a store."""
    if isinstance(to.filesystem, ObstoreFiles):
        return ObstoreWriter(to.filesystem, to.path, to.retry_policy)
    assert to.filesystem is not None
    return FilesystemWriter(to)


class ObstoreWriter(Writer):
    """An object, by one PUT with If-Match or If-None-Match. Only what is too large for one goes in parts, for which obstore has
    no condition, and which it does not take back if one of them fails.
    """

    def __init__(self, files: ObstoreFiles, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files.name(path), path, files.endpoint, retry_policy)
        self._files, self._path = files, path
        self._secrets = secrets_of(dict(files.options)) | {
            part for part in (urlsplit(files.url).password, urlsplit(files.url).query) if part
        }
        kind = type(files.store(retry_policy)).__name__
        self.conditional = kind in ("S3Store", "GCSStore", "AzureStore", "MemoryStore")

    def _exists(self) -> bool:
        import obstore

        try:
            obstore.head(self._files.store(self._patience), self._path)
        except FileNotFoundError:
            return False
        return True

    def _delete(self) -> None:
        import obstore

        obstore.delete(self._files.store(self._patience), self._path)

    def _prepared(
        self,
        body: memoryview,
        overwrite: bool,
        instead_of: Store | None,
        attributes: Mapping[str, str],
    ) -> Callable[[], Outcome]:
        mode: Any = "overwrite" if overwrite else "create"
        if instead_of is not None:
            assert isinstance(instead_of, ObstoreStore)
            mode = instead_of.revision()
            if not mode:
                raise UnsupportedError(f"{self.name}: {NO_CONDITION}")
        how = {"mode": mode, "attributes": dict(attributes), "use_multipart": False}
        if body.nbytes > ONE_PUT:
            if mode != "overwrite":
                raise UnsupportedError(
                    f"{self.name}: {too_large(body.nbytes, instead_of is not None)}"
                )
            how |= {"use_multipart": True, "chunk_size": max(PART, -(-body.nbytes // PARTS)), "max_concurrency": AT_ONCE}  # fmt: skip
            store = self._files.store(self._patience, tries_again=True)
            self._patience = RetryPolicy(0, self._patience.timeout)
            self._left = "; the parts that were sent may be left in the store until a rule of the bucket (AbortIncompleteMultipartUpload) removes them"
            return partial(self._put, store, body, how, [])
        # an answer begins only when all was sent
        longer = self._patience.timeout + _round(body.nbytes / SLOWEST)
        store = self._files.store(RetryPolicy(self._patience.retries, longer))
        return partial(self._put, store, body, how, [])

    def _put(self, store: Any, body: memoryview, how: dict[str, Any], lost: list[bool]) -> Outcome:
        """One attempt. `lost`: of earlier ones it is not known what became of them."""
        import obstore
        from obstore import exceptions as o

        refused: Outcome = "exists" if how["mode"] == "create" else "changed"
        try:
            obstore.put(store, self._path, body, **how)
        except o.PreconditionError:
            pass
        except o.AlreadyExistsError:
            if refused != "exists":  # 409: another write is under way
                raise
        except FileNotFoundError:
            if not isinstance(how["mode"], dict):
                raise
        except (o.NotSupportedError, NotImplementedError):
            raise UnsupportedError(
                f"{self.name}: the store has no write with this condition; write to a place where nothing is, "
                "by output=..., and say overwrite=True"
            ) from None
        except Exception:
            lost.append(True)
            raise
        else:
            return "done"
        return "done" if lost and self._is_there(body) else refused

    def _is_there(self, body: memoryview) -> bool:
        """Whether what lies there is what was to be put: an attempt of which no answer came has done it."""
        import obstore

        store = self._files.store(self._patience)
        now = obstore.head(store, self._path)
        if now["size"] != body.nbytes:
            return False
        etag = etag_of(version_of(now))
        for at in range(0, body.nbytes, STEP):
            wanted = body[at : at + STEP]
            options: Any = {"range": (at, at + wanted.nbytes)}
            if etag is not None:
                options["if_match"] = etag
            if memoryview(obstore.get(store, self._path, options=options).bytes()) != wanted:
                return False
        return True

    def _fault(self, error: Exception) -> Fault:
        from obstore.exceptions import AlreadyExistsError

        if isinstance(error, AlreadyExistsError):
            return Fault("again", "the store is about to take another write (409)")
        return obstore_fault(error, self._secrets)


NO_CONDITION = (
    "what opens it cannot replace a file only where it is still the version that was read, and what others "
    "have written meanwhile would be lost; write elsewhere (output=...)"
)


def too_large(size: int, in_place: bool) -> str:
    """Why so many bytes cannot be put on a condition, and what can be done."""
    remedy = (
        "write elsewhere (output=..., overwrite=True)"
        if in_place
        else "say overwrite=True, if nothing of worth is there"
    )
    return f"{size} bytes are more than the {ONE_PUT} of one request, and only one request can be tied to what lies there: {remedy}"


def _round(seconds: float) -> int:
    """The next power of two, so that a few stores of obstore serve all sizes."""
    return 1 << int(seconds).bit_length()


class FilesystemWriter(Writer):
    """A file on a filesystem of pyarrow or fsspec, which has no conditions: whether something is there is asked before."""

    def __init__(self, to: Source) -> None:
        from pageseek.storage import pyarrow_files as arrow
        from pageseek.storage.fsspec_files import FsspecFiles

        folder, slash, name = to.path.rpartition("/")
        self._path = to.path
        self._temporary = f"{folder}{slash}{hidden_name(name)}"
        self._on: _Arrow | _Fsspec
        if isinstance(to.filesystem, FsspecFiles):
            self._on, end = _Fsspec(to.filesystem), to.filesystem.endpoint
        else:
            assert to.filesystem is not None and not isinstance(to.filesystem, Files)
            self._on, end = _Arrow(to.filesystem), arrow.endpoint_of(to.filesystem, to.path)
        super().__init__(to.name, to.path, end, to.retry_policy)

    def _exists(self) -> bool:
        return self._on.size(self._path) is not None

    def _delete(self) -> None:
        self._on.delete(self._path)

    def _prepared(
        self,
        body: memoryview,
        overwrite: bool,
        instead_of: Store | None,
        attributes: Mapping[str, str],
    ) -> Callable[[], Outcome]:
        if instead_of is not None:
            raise UnsupportedError(f"{self.name}: {NO_CONDITION}")
        return partial(self._put, body, overwrite, attributes)

    def _put(self, body: memoryview, overwrite: bool, attributes: Mapping[str, str]) -> Outcome:
        if not self._on.whole:
            return self._moved(body, overwrite, attributes)
        if not overwrite and self._exists():
            return "exists"
        self._streamed(self._path, body, attributes)
        return "done"

    def _moved(self, body: memoryview, overwrite: bool, attributes: Mapping[str, str]) -> Outcome:
        """By way of a temporary name, which readers of folders pass over."""
        try:
            self._streamed(self._temporary, body, attributes)
            if not overwrite and self._exists():
                self._on.delete(self._temporary)
                return "exists"
            self._on.move(self._temporary, self._path)
        except BaseException:
            with suppress(Exception):
                self._on.delete(self._temporary)
            raise
        return "done"

    def _streamed(self, path: str, body: memoryview, attributes: Mapping[str, str]) -> None:
        with self._on.stream(path, attributes) as out:
            for at in range(0, body.nbytes, STEP):
                out.write(body[at : at + STEP])
        if (size := self._on.size(path)) != body.nbytes:
            raise OSError(f"{size} bytes are there, {body.nbytes} were written")

    def _fault(self, error: Exception) -> Fault:
        return self._on.fault(error)


class _Arrow:
    """What is asked of a filesystem of pyarrow. `whole`: what is written appears when all of it is there."""

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._filesystem = filesystem
        self.whole = filesystem.type_name in ("s3", "gcs")

    def size(self, path: str) -> int | None:
        found = self._filesystem.get_file_info(path)
        return None if found.type == pafs.FileType.NotFound else found.size or 0

    def stream(self, path: str, attributes: Mapping[str, str]) -> Any:
        from pageseek.storage.pyarrow_files import WRITABLE

        kept = {name: attributes[name] for name in WRITABLE if name in attributes}
        return self._filesystem.open_output_stream(path, metadata=kept or None)

    def move(self, path: str, to: str) -> None:
        self._filesystem.move(path, to)

    def delete(self, path: str) -> None:
        self._filesystem.delete_file(path)

    def fault(self, error: Exception) -> Fault:
        from pageseek.storage.pyarrow_files import fault_of

        return fault_of(error)


class _Fsspec:
    """The same of one of fsspec."""

    whole = False

    def __init__(self, files: Any) -> None:
        self._filesystem = files.filesystem
        self._secrets = secrets_of(getattr(files.filesystem, "storage_options", {}))

    def size(self, path: str) -> int | None:
        self._filesystem.invalidate_cache(self._filesystem._parent(path))
        try:
            return int(self._filesystem.info(path).get("size") or 0)
        except FileNotFoundError as error:
            if self.fault(error).kind != "missing":  # it only could not be asked
                raise
            return None

    def stream(self, path: str, attributes: Mapping[str, str]) -> Any:
        return self._filesystem.open(path, "wb")

    def move(self, path: str, to: str) -> None:
        self._filesystem.mv(path, to)

    def delete(self, path: str) -> None:
        self._filesystem.rm_file(path)

    def fault(self, error: Exception) -> Fault:
        from pageseek.storage.fsspec_files import fault_of

        return fault_of(error, self._secrets)
