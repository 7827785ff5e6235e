"""Working state at the speed of the hot store, restored from the durable one when it was lost.

While the hot store is down, this store falls back to the durable one. Reads return the last saved
state, marked as degraded. Fallback writes are kept there and applied when the hot store is back.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

from holdfast.engines.hybrid.circuit_breaker import CircuitBreaker, HotStoreDownError
from holdfast.engines.hybrid.metrics import HybridMetrics
from holdfast.engines.hybrid.state_commits import StateCommits
from holdfast.engines.hybrid.state_restoring import StateRestoring
from holdfast.engines.hybrid.unflushed import Unsaved
from holdfast.engines.hybrid.write_back import COMMIT_SECONDS
from holdfast.spi.hybrid.state_snapshots import (
    AbsentStateError,
    DurableStates,
    FallbackWrite,
    FallbackWrites,
    SavedState,
    UnregisteredError,
    Written,
)
from holdfast.spi.states import HotStates, StateStorage
from holdfast.values.codec import decode_json
from holdfast.values.errors import BackPressureError, TimedOutError, UnavailableError
from holdfast.values.failpoints import hit
from holdfast.values.states import StateSnapshot, StateVersion, StateWrite

_log = logging.getLogger("holdfast.hybrid")


class HybridStates(StateStorage):
    """``StateStorage`` in a hot store, with the last saved version of each state behind it.

    ``committed``: a write returns once the durable store has committed a version with it. ::

        states = HybridStates(hot, saved, fallback_writes, commits, tenant="acme")
    """

    keeps_versions = True

    def __init__(
        self,
        hot: HotStates,
        saved: DurableStates,
        fallback_writes: FallbackWrites,
        commits: StateCommits,
        *,
        tenant: str,
        breaker: CircuitBreaker | None = None,
        metrics: HybridMetrics | None = None,
        committed: bool = False,
    ) -> None:
        self._hot = hot
        self._saved = saved
        self._fallback_writes = fallback_writes
        self._tenant = tenant
        self._breaker = breaker or CircuitBreaker()
        self._metrics = metrics or HybridMetrics()
        self._commits = commits
        self._committed = committed
        self._writer = hot.writer
        self._late: dict[str, int] = {}
        self._unsaved = Unsaved()
        self._restoring = StateRestoring(
            hot, saved, self._unsaved, tenant=tenant, breaker=self._breaker, metrics=self._metrics
        )

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state, or some of its keys. While the hot store is down: as of the last save."""
        try:
            await self._catch_up(session)
            while True:
                found = await self._breaker.call(lambda: self._hot.read(session, keys))
                if found.version:
                    return found
                # The restored state may be lost again before it is read, hence the loop.
                there, kept = await self._restoring.restored(session)
                if not there:
                    return dataclasses.replace(found, as_of=kept.as_of)
        except HotStoreDownError as error:
            return await self._durably(session, keys, error)

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of sessions. Each that the hot store lacks is looked up by itself."""
        found: Sequence[StateSnapshot | None] = [None] * len(sessions)
        with suppress(HotStoreDownError):
            found = await self._breaker.call(lambda: self._hot.read_many(sessions))
        return list(await asyncio.gather(*map(self.complete, sessions, found)))

    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace or patch a state. While the hot store is down, it makes a fallback write.

        The hot store assigns the version of a fallback write later. Until then its number equals no
        version, so that a write that expects it raises a conflict.
        """
        try:
            written = await self._put(write, expected)
            # A version is kept when it is saved, so that a write with versions waits for that.
            if self._committed or write.kept_versions or not self._unsaved.add(write, written):
                put = partial(self._put, write, expected)
                written = await self._commit(write.session, written, put)
            elif self._unsaved.due:
                await self._look()
        except HotStoreDownError as error:
            if expected is not None:
                raise _undecided(error) from error
            return await self._write_fallback(write, error)
        return written.version

    async def clear(self, session: str) -> None:
        """Delete a state: from the durable store first, so that it stays deleted."""
        try:
            await self._catch_up(session)
            while True:
                seen = await self._breaker.call(lambda: self._hot.read(session, ()))
                version = seen.version
                await self._saved.clear(self._tenant, session, version=version)
                hit("state_clear.after_durable")
                if await self._forget(session, version):
                    return self._unsaved.forget(session)
        except HotStoreDownError as error:
            await self._write_fallback(StateWrite(session, gone=True), error)

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        """Return the kept versions below ``before``. Each write is saved before it returns."""
        return await self._saved.earlier_versions(self._tenant, session, before, limit)

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        """Return this version from the durable store; ``None`` if it is not kept."""
        found = await self._saved.load_version(self._tenant, session, version)
        if found is None:
            newest = await self.read(session, None)
            return newest if newest.version == version else None
        state = {key: decode_json(text) for key, text in found.values.items()}
        return StateSnapshot(state, version, found.expires_at)

    async def complete(self, session_id: str, found: StateSnapshot | None) -> StateSnapshot:
        """Return a session's state. ``found`` is the hot store's, if the caller has read it.

        ::

            state = await states.complete("s1", found.state)
        """
        if found is not None and session_id not in self._late and not self._breaker.doubt:
            if found.version:
                return found
            try:
                there, kept = await self._restoring.restored(session_id)
                if not there:
                    return dataclasses.replace(found, as_of=kept.as_of)
            except HotStoreDownError as error:
                return await self._durably(session_id, None, error)
        return await self.read(session_id, None)

    async def merge(self, session_id: str) -> None:
        """Apply the fallback writes of a session to its hot state, then delete them.

        They are applied once, however often and by however many processes this is called. Fallback
        writes that are added meanwhile are kept. ::

            await states.merge("s1")
        """
        before = self._late.get(session_id)
        fallback = await self._fallback_writes.read(self._tenant, session_id)
        hit("state_fallback.after_read")
        if fallback is not None and not fallback.is_over:
            do = partial(self._merge, fallback, newest=before is not None)
            written = await do()
            if written.version:
                # The fallback writes are kept until a saved state includes them.
                await self._commit(session_id, written, do)
        if fallback is not None:
            hit("state_fallback.after_merge")
            await self._fallback_writes.merged(self._tenant, fallback)
        if self._late.get(session_id) == before:
            self._late.pop(session_id, None)

    async def _merge(self, fallback: FallbackWrite, *, newest: bool) -> Written:
        """Apply fallback writes. ``newest``: they came after what this process wrote."""
        session, lost = fallback.write.session, False
        base: int | None = None
        written: Written | None = None
        while written is None:
            try:
                written = await self._breaker.call(partial(self._hot.merge, fallback, base=base))
            except AbsentStateError:
                lost, kept = await self._restoring.restored(session)
                base = None if lost else kept.base
        mine = self._unsaved.get(session)
        if lost and mine is not None and not newest:
            # The fallback writes were applied before this process wrote, so apply its write last.
            written = await self._put_hot(mine[0].write, base=base)
        return written

    async def _catch_up(self, session_id: str) -> None:
        """Apply the fallback writes before the hot state is read or written."""
        if session_id in self._late:
            await self.merge(session_id)
        elif self._breaker.doubt:
            try:
                await self.merge(session_id)
            except (UnavailableError, TimedOutError) as error:
                self._metrics.degraded_reads += 1
                _log.warning("state of session %s may not be the newest: %s", session_id, error)

    async def _put(self, write: StateWrite, expected_version: int | None) -> Written:
        """Apply the fallback writes, then write to the hot state."""
        await self._catch_up(write.session)
        return await self._put_hot(write, expected_version)

    async def _put_hot(
        self, write: StateWrite, expected_version: int | None = None, *, base: int | None = None
    ) -> Written:
        """Write to the hot state. A lost or evicted state is restored first."""
        put = partial(self._hot.put, write, expected_version=expected_version, base=base)
        while True:
            try:
                return await self._breaker.call(put)
            except AbsentStateError:
                there, kept = await self._restoring.restored(write.session)
                # If this base is outdated by then, the save detects it.
                put = partial(put, base=None if there else kept.base)
            except UnregisteredError as error:
                # Register the writer before any write is acknowledged: after a loss, the registered
                # writers are those that may have lost writes.
                last = error.eviction
                await self._saved.register(self._tenant, write.session, self._writer, eviction=last)
                hit("state_write.after_register")
                put = partial(put, registered=last)

    async def _commit(
        self, session: str, written: Written, again: Callable[[], Awaitable[Written]]
    ) -> Written:
        """Wait until a version that includes a write is committed. A lost write is repeated.

        Returns the write as it was committed.
        """
        shard = self._hot.shard_of(session)
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                while not await self._commits.commit(self._tenant, shard, session, written):
                    _log.warning("Redis lost a write to state %s: it is repeated", session)
                    written = await again()
                return written
        except UnavailableError as error:
            # If the durable store answers the next call, it keeps this as a fallback write.
            raise HotStoreDownError(str(error), sure=False) from error
        except TimeoutError as error:
            if isinstance(error, TimedOutError):
                raise
            raise TimedOutError("hybrid", "the commit of a state timed out") from None

    def saved(self, states: Sequence[SavedState]) -> None:
        """Forget the writes of this process to states that were saved.

        ::

            hybrid.saved(states)
        """
        for one in states:
            self._unsaved.forget(one.session, version=one.version)

    async def is_settled(self) -> bool:
        """Return whether all writes that this process acknowledged are saved.

        ::

            if await states.is_settled(): ...
        """
        await self._look()
        return not self._unsaved

    async def _look(self) -> None:
        """Forget the writes that other processes have saved. Called once in a while."""
        kept = await self._saved.versions(self._tenant, self._unsaved.looked())
        self.saved(list(kept.values()))

    async def _forget(self, session_id: str, version: int) -> bool:
        return await self._breaker.call(lambda: self._hot.forget(session_id, version=version))

    async def _write_fallback(self, write: StateWrite, why: HotStoreDownError) -> int:
        """Keep a write in the durable store until the hot store is back. Returns its stamp."""
        if write.gone:
            self._unsaved.forget(write.session)
        try:
            stamp = await self._fallback_writes.write(self._tenant, write)
        except (UnavailableError, TimedOutError) as error:
            raise BackPressureError(
                retry_after_seconds=1.0, message=f"neither store answers: {why}; {error}"
            ) from error
        hit("state_fallback.after_write")
        self._late[write.session] = self._late.get(write.session, 0) + 1
        self._metrics.fallback_states += 1
        _log.warning("the durable store keeps a fallback write to state %s: %s", write.session, why)
        return stamp

    async def _durably(
        self, session_id: str, keys: Collection[str] | None, why: HotStoreDownError
    ) -> StateSnapshot:
        """Return a state as it was last saved, with the fallback writes since then applied."""
        # In this order: a fallback write is deleted only after a state that includes it is saved.
        fallback = await self._fallback_writes.read(self._tenant, session_id)
        kept = await self._restoring.kept(session_id)
        saved, mine = kept.state, kept.mine
        if fallback is not None and fallback.stamp > kept.stamp:
            saved = fallback.over(saved)
        # Fallback writes before this process wrote to the hot state were applied to it before that.
        later = self._unsaved.get(session_id)
        if mine and later is not None and fallback is not None and session_id not in self._late:
            saved = later[0].over(saved)
        self._metrics.degraded_reads += 1
        since = ", with what this process wrote since" if mine else ""
        degraded = f"state of session {session_id}: as of its last save{since} ({why})"
        if saved is None:
            return StateSnapshot({}, degraded=degraded)
        state = {
            key: decode_json(text)
            for key, text in saved.values.items()
            if keys is None or key in keys
        }
        return StateSnapshot(state, saved.version, saved.expires_at, degraded)


def _undecided(why: HotStoreDownError) -> UnavailableError | TimedOutError:
    """Return the error of a write with an expected version: only the hot store can compare it."""
    if why.sure:
        return UnavailableError("redis", f"a write with an expected version needs Redis: {why}")
    return TimedOutError("redis", f"a write with an expected version may have been done: {why}")
