"""One file written to a store, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pageseek.base.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.storage.atomic_files import EXISTS, hidden_name
from pageseek.storage.files import Files, Place
from pageseek.storage.obstore_files import ObstoreFiles, ObstoreStore, etag_of, version_of
from pageseek.storage.resolve import Source
from pageseek.storage.retry import Fault, RetryPolicy
from pageseek.storage.store import Store

if TYPE_CHECKING:
    from pageseek.storage.fsspec_files import FsspecFiles
    from pageseek.storage.pyarrow_files import ArrowFiles

ONE_PUT = 5000 << 20  # bytes: the least of what S3, GCS and Azure take in one request
PART, PARTS = 16 << 20, 9_000  # bytes of one part, and how many there may be
AT_ONCE = 4  # parts under way
WRITE_BYTES = 8 << 20  # bytes handed to a stream at a time
SLOWEST_UPLOAD = 1 << 20  # bytes a second that a connection sends at least
NO_CONDITION = (
    "what opens it cannot replace a file only where it is still the version that was read, and what others "
    "have written meanwhile would be lost; write elsewhere (output=...)"
)

Attributes: TypeAlias = Mapping[str, str]
Outcome = Literal["done", "exists", "changed"]


class Writer(Place):
    """A place where one file is to be put. `conditional`: the store can replace one version of a file and no other."""

    conditional = False
    _left = ""  # what a failure may leave behind

    def exists(self) -> bool:
        """Whether something lies there."""
        return self.ask(self._exists, "whether it is there")

    def put(
        self,
        body: memoryview,
        *,
        overwrite: bool = False,
        instead_of: Store | None = None,
        attributes: Attributes | None = None,
    ) -> None:
        """Write the file. `overwrite`: replace what lies there. `instead_of`: replace that version, and no other.

        Raises
        ------
        FileExistsError
            Something lies there.
        FileChangedError
            Another version lies there.
        UnsupportedError
            The store cannot do that. As with all errors, what lay there still does.
        """
        attempt = self._prepared(body, overwrite, instead_of, attributes or {})
        try:
            outcome = self.ask(attempt, f"to put {body.nbytes} bytes")
        except StoreError as error:
            raise StoreError(f"{error}{self._left}") from None
        if outcome == "exists":
            raise FileExistsError(f"{self.name}: {EXISTS}")
        if outcome == "changed":
            raise FileChangedError(
                f"{self.name}: the file was replaced or deleted by somebody else meanwhile, and is left as it is; begin again"
            )

    def delete(self) -> None:
        """Delete what lies there."""
        self.ask(self._delete, "to be deleted")

    def _exists(self) -> bool:
        raise NotImplementedError

    def _delete(self) -> None:
        raise NotImplementedError

    def _prepared(
        self, body: memoryview, overwrite: bool, instead_of: Store | None, attributes: Attributes
    ) -> Callable[[], Outcome]:
        """What is attempted, once or more often."""
        raise NotImplementedError


def writer(to: Source) -> Writer:
    """The writer for a place on a store."""
    assert to.filesystem is not None
    kind = ObstoreWriter if isinstance(to.filesystem, ObstoreFiles) else FilesystemWriter
    return kind(to.filesystem, to.path, to.retry_policy)


class ObstoreWriter(Writer):
    """Writes an object by one PUT with If-Match or If-None-Match. What is too large for one request goes in parts. For these
    obstore has no condition, and it does not take them back if one fails.
    """

    _files: ObstoreFiles

    def __init__(self, files: Files, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files, path, retry_policy)
        kind = type(self._files.store(retry_policy)).__name__
        self.conditional = kind in ("S3Store", "GCSStore", "AzureStore", "MemoryStore")

    def _exists(self) -> bool:
        import obstore

        try:
            obstore.head(self._files.store(self._retry_policy), self._path)
        except FileNotFoundError:
            return False
        return True

    def _delete(self) -> None:
        import obstore

        obstore.delete(self._files.store(self._retry_policy), self._path)

    def _prepared(
        self, body: memoryview, overwrite: bool, instead_of: Store | None, attributes: Attributes
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
            store = self._files.store(self._retry_policy, tries_again=True)
            self._retry_policy = RetryPolicy(0, self._retry_policy.timeout)
            self._left = "; the parts that were sent may be left in the store until a rule of the bucket (AbortIncompleteMultipartUpload) removes them"
        else:
            # an answer begins only when all was sent; a power of two lets a few stores of obstore serve all sizes
            sending = 1 << (body.nbytes // SLOWEST_UPLOAD).bit_length()
            longer = self._retry_policy.timeout + sending
            store = self._files.store(RetryPolicy(self._retry_policy.retries, longer))
        return partial(self._put, store, body, how, [])

    def _put(self, store: Any, body: memoryview, how: dict[str, Any], lost: list[bool]) -> Outcome:
        """One attempt. `lost`: has one entry for each earlier attempt without an answer, which may have put the body."""
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
        """Whether what lies there is the body: an attempt without an answer has put it."""
        import obstore

        store = self._files.store(self._retry_policy)
        now = obstore.head(store, self._path)
        if now["size"] != body.nbytes:
            return False
        etag = etag_of(version_of(now))
        for at in range(0, body.nbytes, WRITE_BYTES):
            wanted = body[at : at + WRITE_BYTES]
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
        return super()._fault(error)


def too_large(size: int, in_place: bool) -> str:
    """Why `size` bytes cannot be put on a condition, and what can be done."""
    remedy = (
        "write elsewhere (output=..., overwrite=True)"
        if in_place
        else "say overwrite=True, if nothing of worth is there"
    )
    return f"{size} bytes are more than the {ONE_PUT} of one request, and only one request can be tied to what lies there: {remedy}"


class FilesystemWriter(Writer):
    """Writes a file to a filesystem of pyarrow or fsspec. It has no conditions: whether something is there is asked before."""

    _files: ArrowFiles | FsspecFiles

    def __init__(self, files: Files, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files, path, retry_policy)
        folder, slash, name = path.rpartition("/")
        self._temporary = f"{folder}{slash}{hidden_name(name)}"

    def _exists(self) -> bool:
        return self._files.size(self._path, self._retry_policy) is not None

    def _delete(self) -> None:
        self._files.delete(self._path)

    def _prepared(
        self, body: memoryview, overwrite: bool, instead_of: Store | None, attributes: Attributes
    ) -> Callable[[], Outcome]:
        if instead_of is not None:
            raise UnsupportedError(f"{self.name}: {NO_CONDITION}")
        return partial(self._put, body, overwrite, attributes)

    def _put(self, body: memoryview, overwrite: bool, attributes: Attributes) -> Outcome:
        if not self._files.whole:
            return self._moved(body, overwrite, attributes)
        if not overwrite and self._exists():
            return "exists"
        self._streamed(self._path, body, attributes)
        return "done"

    def _moved(self, body: memoryview, overwrite: bool, attributes: Attributes) -> Outcome:
        """By way of a temporary name, which readers of folders pass over."""
        try:
            self._streamed(self._temporary, body, attributes)
            if not overwrite and self._exists():
                self._files.delete(self._temporary)
                return "exists"
            self._files.move(self._temporary, self._path)
        except BaseException:
            with suppress(Exception):
                self._files.delete(self._temporary)
            raise
        return "done"

    def _streamed(self, path: str, body: memoryview, attributes: Attributes) -> None:
        with self._files.stream(path, attributes) as out:
            for at in range(0, body.nbytes, WRITE_BYTES):
                out.write(body[at : at + WRITE_BYTES])
        if (size := self._files.size(path, self._retry_policy)) != body.nbytes:
            raise OSError(f"{size} bytes are there, {body.nbytes} were written")
