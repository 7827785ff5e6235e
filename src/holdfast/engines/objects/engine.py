"""One object store and its requests: put, create, get, list, delete."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
import obstore
from obstore import exceptions
from obstore.store import LocalStore, S3Store

from holdfast.engines.objects.address import TESTED, Address
from holdfast.engines.objects.capabilities import Capabilities
from holdfast.engines.objects.disk import Disk
from holdfast.engines.objects.errors import ENGINE, mapped
from holdfast.engines.objects.paths import MARKER
from holdfast.values.clock import Clock, SystemClock
from holdfast.values.errors import CodecError, NotFoundError, NotSupportedError, SchemaError

_log = logging.getLogger("holdfast")
_FORMAT = 1
_PAGE = 1000
_AT_ONCE = 16
_EXISTS = (exceptions.AlreadyExistsError, exceptions.PreconditionError)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Found:
    """An object in a listing."""

    path: str
    size_bytes: int
    modified_at: datetime


class Objects:
    """One bucket or folder; paths are relative to the prefix that it was opened with.

    ``clock`` gives the time for expiry; the default is the machine's clock. An object store has no
    clock, so machines that share a store must keep their clocks in sync.

    ::

        engine = await Objects.open("s3://bucket/prefix?region=eu-west-1")
    """

    name = ENGINE

    def __init__(
        self,
        store: Any,
        capabilities: Capabilities,
        *,
        location: str,
        clock: Clock,
        disk: Disk | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._running: set[asyncio.Task[Any]] = set()
        self.capabilities = capabilities
        self.location = location
        self.disk = disk

    def __repr__(self) -> str:
        return f"Objects({self.location!r})"

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        timeout_seconds: float = 60,
        retry_seconds: float = 30,
    ) -> Self:
        """Connect to ``s3://bucket/prefix`` or ``file:///dir``, and check what it supports.

        Parameters of the URL are the driver's: ``endpoint``, ``region``, ``access_key_id``,
        ``secret_access_key``, ``allow_http`` and so on; the others come from the environment
        (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL`` and so on). A request times out after
        ``timeout_seconds``, and is retried for ``retry_seconds``. On disk a write is flushed
        before it is acknowledged, unless the URL has ``fsync=false``.

        ::

            engine = await Objects.open("s3://bucket?endpoint=http://127.0.0.1:9000&allow_http=1")
        """
        address = Address.parse(url)
        with mapped(wrote=False):
            store = address.connect(timeout_seconds=timeout_seconds, retry_seconds=retry_seconds)
        disk = Disk(address.folder, fsync=address.fsync) if address.folder else None
        return await cls._checked(store, address.scheme, address.location, clock, disk)

    @classmethod
    async def from_store(cls, store: Any, *, clock: Clock | None = None) -> Self:
        """Borrow a store of the driver; there is nothing to close.

        ::

            engine = await Objects.from_store(obstore.store.S3Store("bucket"))
        """
        disk = (
            Disk(Path(store.prefix or "/"), fsync=True) if isinstance(store, LocalStore) else None
        )
        scheme = "file" if disk else "s3" if isinstance(store, S3Store) else type(store).__name__
        return await cls._checked(store, scheme, f"borrowed {scheme}", clock, disk)

    @classmethod
    async def _checked(
        cls, store: Any, scheme: str, location: str, clock: Clock | None, disk: Disk | None
    ) -> Self:
        tested = scheme in TESTED
        if not tested:
            _log.warning("objects: %s is passed on to the driver and untested", scheme)
        unknown = Capabilities(scheme, tested=tested, conditional_create=False)
        engine = cls(store, unknown, location=location, clock=clock or SystemClock(), disk=disk)
        able = await engine._ask()
        engine.capabilities = Capabilities(scheme, tested=tested, conditional_create=able)
        return engine

    async def _ask(self) -> bool:
        """Create the marker object twice. If both succeed, the store ignores the condition."""
        wanted = msgspec.json.encode({"format": _FORMAT})
        try:
            first = await self._create(MARKER, wanted)
            able = not first or not await self._create(MARKER, wanted)
        except NotSupportedError:
            first, able = False, False
        found = await self.get(MARKER)
        if found is None:
            await self.put(MARKER, wanted)
        elif found != wanted:
            _refuse_format(found)
        return able

    @property
    def driver(self) -> Any:
        """The driver's store, for requests that this class does not have."""
        return self._store

    async def aclose(self) -> None:
        """Wait for running work. The driver has nothing to close."""
        while self._running:
            await asyncio.wait(self._running)

    def now(self) -> datetime:
        """Return the engine's current time."""
        return self._clock.now()

    async def ping(self) -> None:
        """Read the marker object once. Raises if there is no answer or no marker."""
        if await self.get(MARKER) is None:
            raise NotFoundError(
                "object", MARKER, f"{self.location} was emptied while it was open: open it again"
            )

    async def put(self, path: str, data: Any) -> None:
        """Write an object completely or not at all. A retry has no further effect."""
        with mapped(wrote=True):
            await obstore.put_async(self._store, path, data, use_multipart=False)
            if self.disk:
                await self.disk.settle([path])

    async def create(self, path: str, data: bytes) -> bool:
        """Write an object if none exists. Returns whether the stored object equals ``data``.

        If the response is lost, the driver retries and then finds the object that it has written.
        """
        return await self._create(path, data) or await self.get(path) == data

    async def _create(self, path: str, data: bytes) -> bool:
        with mapped(wrote=True):
            try:
                await obstore.put_async(self._store, path, data, mode="create")
            except _EXISTS:
                return False
            if self.disk:
                await self.disk.settle([path])
        return True

    async def get(self, path: str) -> bytes | None:
        """Return a small object, or ``None``."""
        with mapped(wrote=False):
            try:
                answer = await obstore.get_async(self._store, path)
                return bytes(await answer.bytes_async())
            except FileNotFoundError as missing:
                _pass_over(missing)
                return None

    async def read(self, path: str, start: int, stop: int) -> Any:
        """Return a range of an object as a buffer, which is shorter at the end of the object.

        It is empty if there is no object.

        It is the driver's own buffer: a copy of each part would cost as much as its digest.
        """
        with mapped(wrote=False):
            try:
                return await obstore.get_range_async(self._store, path, start=start, end=stop)
            except FileNotFoundError as missing:
                _pass_over(missing)
                return b""
            except exceptions.GenericError:
                # Also raised for a range that begins after the end: then the object is too short.
                if (await self._size(path)) <= start:
                    return b""
                raise

    async def _size(self, path: str) -> int:
        try:
            size: int = (await obstore.head_async(self._store, path))["size"]
        except FileNotFoundError:
            return 0
        return size

    async def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; missing ones are ignored."""
        if not paths:
            return
        with mapped(wrote=True):
            if isinstance(self._store, S3Store) and len(paths) > 1:
                for at in range(0, len(paths), _PAGE):
                    await obstore.delete_async(self._store, list(paths[at : at + _PAGE]))
            else:
                await self.each(paths, self._delete)
            if self.disk:
                await self.disk.settle(paths)

    async def _delete(self, path: str) -> None:
        try:
            await obstore.delete_async(self._store, path)
        except FileNotFoundError as missing:
            _pass_over(missing)

    async def pages(self, folder: str) -> AsyncIterator[list[Found]]:
        """Yield all objects below a folder, a thousand at a time, in no defined order."""
        with mapped(wrote=False):
            try:
                async for page in obstore.list(self._store, folder, chunk_size=_PAGE):
                    yield [Found(one["path"], one["size"], one["last_modified"]) for one in page]
            except FileNotFoundError as missing:
                _pass_over(missing)

    async def names(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder with few objects."""
        return [
            found.path.rpartition("/")[2] async for page in self.pages(folder) for found in page
        ]

    async def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, sorted."""
        with mapped(wrote=False):
            try:
                found = await obstore.list_with_delimiter_async(self._store, folder or None)
            except FileNotFoundError as missing:
                _pass_over(missing)
                return []
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    async def each(self, items: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
        """Run ``work`` on each item, a few at once.

        Returns the results in order, or raises the first error.
        """
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(item: T) -> R:
            async with turns:
                return await work(item)

        return await asyncio.gather(*map(one, items))

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that continues to its end even if the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)


def _pass_over(missing: FileNotFoundError) -> None:
    """Ignore a missing object; raise for a missing bucket."""
    if "NoSuchBucket" in str(missing):
        raise missing


def _refuse_format(found: bytes) -> None:
    try:
        have = msgspec.json.decode(found, type=dict[str, int])["format"]
    except (msgspec.MsgspecError, KeyError) as error:
        raise CodecError(
            f"{MARKER} is not a valid marker of Holdfast: use another bucket or prefix"
        ) from error
    if have != _FORMAT:
        raise SchemaError(
            have=have,
            want=_FORMAT,
            message=f"the object store has format {have}, and this version of holdfast reads "
            f"format {_FORMAT}: upgrade holdfast",
        )
