"""Deletes all data of a scope, store by store, until nothing of it is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from holdfast.erasure.receipts import ReceiptFacts, ReceiptKey, make_receipt, receipt_sha256
from holdfast.spi.erasure import STORES, ErasureDraft, ErasureStorage, Key, Store, StoreFinder
from holdfast.values.codec import encode_json
from holdfast.values.erasure import Counts, ErasureRecord, ErasureReport, ErasureScope
from holdfast.values.errors import ConflictError
from holdfast.values.failpoints import hit
from holdfast.values.ids import new_id

Delete: TypeAlias = Callable[[Key], Awaitable[object]]
"""Deletes one record; deleting it again does nothing."""

Progress: TypeAlias = Callable[[str, int], None]
"""Called with a store, and with how many of its records were deleted since the last call."""

BATCH = 200
AT_ONCE = 4
"""How many records are deleted at the same time."""

PASSES = 5
"""How often all stores are searched: other processes may write while an erasure runs."""


class Eraser:
    """Erases scopes of one tenant.

    ::

        eraser = Eraser(storage, {"boards": delete_board}, tenant="acme")
        record = await eraser.erase(ErasureScope("session", "s1"))
    """

    def __init__(
        self,
        storage: ErasureStorage,
        deletes: Mapping[Store, Delete],
        *,
        tenant: str,
        finders: Mapping[Store, StoreFinder] | None = None,
        flush: Callable[[], Awaitable[object]] | None = None,
        key: ReceiptKey | None = None,
        outlives: Sequence[str] = (),
        forget: Callable[[Sequence[int]], None] | None = None,
        settle: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._storage = storage
        self._deletes = deletes
        self._tenant = tenant
        self._finders = finders or {}
        self._flush = flush
        self._key = key
        self._outlives = outlives
        self._forget = forget
        self._settle = settle

    async def count(self, scope: ErasureScope) -> Counts:
        """Return how many records of the scope each store has."""
        return await self._count(await self._scopes(scope))

    async def erase(self, scope: ErasureScope, progress: Progress | None = None) -> ErasureReport:
        """Delete all records of the scope, and return the report with the receipt.

        If the process dies, the next call for the same scope continues. Raises ``ConflictError`` if
        other processes keep writing; the erasure is then unfinished.
        """
        scopes = await self._scopes(scope)
        draft = ErasureDraft(new_id(), scope, await self._count(scopes))
        record = await self._storage.begin(draft)
        hit("erase.after_begin")
        settled = False
        for _ in range(PASSES):
            # First of all: without its key nothing sealed can be read, wherever its bytes are.
            numbers = await self._storage.shred(record.id, scope)
            if self._forget is not None:
                self._forget(numbers)
            hit("erase.after_shred")
            for one in scopes:
                await self._erase_scope(one, progress)
            hit("erase.after_pass")
            scopes = await self._scopes(scope)
            if numbers and not settled and self._settle is not None:
                # Another process may still write with a destroyed key; the next pass deletes that.
                await self._settle()
                settled = True
                continue
            if not await self._count(scopes):
                finished = await self._finish(record, scope, numbers)
                return ErasureReport(finished.counts, finished.receipt)
        raise ConflictError(
            "erasure",
            record.id,
            "other processes keep writing in this scope: stop them, and erase again",
        )

    async def _scopes(self, scope: ErasureScope) -> list[ErasureScope]:
        """Return the scope, and one for each fork of its session: a fork has copies of its data.

        The scope of a subject has the sessions that are about it now.
        """
        if scope.kind == "subject":
            sessions = frozenset(await self._storage.sessions_about(scope.id))
            return [replace(scope, sessions=sessions)]
        forks = await self._storage.forks(scope.id) if scope.kind == "session" else ()
        return [*(ErasureScope("session", one) for one in forks), scope]

    async def _count(self, scopes: Sequence[ErasureScope]) -> Counts:
        if self._flush is not None:
            await self._flush()
        found: Counter[str] = Counter()
        for scope in scopes:
            counts = await self._storage.count(scope)
            for store, finder in self._finders.items():
                counts[store] = len(await finder.find(scope, None))
            found.update(counts)
        return {store: found[store] for store in STORES if found[store]}

    async def _erase_scope(self, scope: ErasureScope, progress: Progress | None) -> None:
        for store in STORES:
            if store in self._deletes:
                await self._erase_store(store, scope, progress)
        await self._storage.forget_rest(scope)

    async def _erase_store(
        self, store: Store, scope: ErasureScope, progress: Progress | None
    ) -> None:
        delete = self._deletes[store]
        before: set[Key] = set()
        while keys := await self._find(store, scope):
            if before.issuperset(keys):
                # Somebody writes these again; the next pass comes back to them.
                return
            before = set(keys)
            for at in range(0, len(keys), AT_ONCE):
                await asyncio.gather(*(delete(key) for key in keys[at : at + AT_ONCE]))
                hit("erase.after_delete")
            if progress is not None:
                progress(store, len(keys))

    async def _find(self, store: Store, scope: ErasureScope) -> Sequence[Key]:
        if store in self._finders:
            return await self._finders[store].find(scope, BATCH)
        return await self._storage.find(store, scope, BATCH)

    async def _finish(
        self, record: ErasureRecord, scope: ErasureScope, data_keys: Sequence[int]
    ) -> ErasureRecord:
        facts = ReceiptFacts(
            *(self._tenant, record.id, scope, record.started_at, datetime.now(UTC)),
            record.counts,
            self._outlives,
            data_keys,
        )
        while True:
            last = await self._storage.last()
            receipt = make_receipt(
                facts, number=last.number + 1, previous=last.sha256, key=self._key
            )
            args = (encode_json(receipt), receipt_sha256(receipt))
            finished = await self._storage.finish(record.id, last.number + 1, *args)
            if finished is not None:
                return finished
