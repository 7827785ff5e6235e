"""``state.ops``: what operators and workers ask of an opened state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from holdfast.contracts.tasks.work import WorkSignal
from holdfast.values.errors import NotSupportedError, UnavailableError
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import WIRINGS, providers
from holdfast.wiring.health import Health
from holdfast.wiring.hybrid_sides import HybridSide
from holdfast.wiring.session_moves import assign_context

if TYPE_CHECKING:
    from holdfast.wiring.state import State


class Ops:
    """The operators' calls of a ``State``; agents do not need them.

    ::

        assert (await state.ops.health()).status == "ok"
    """

    def __init__(
        self, state: State, connections: Connections, refuse: Callable[[str], None]
    ) -> None:
        self._state = state
        self._connections = connections
        self._refuse = refuse

    async def health(self) -> Health:
        """Whether each engine answers, how fast, and how durable it is.

        ::

            assert (await state.ops.health()).status == "ok"
        """
        self._connections.check_usable()
        return await self._connections.probe()

    @property
    def work(self) -> WorkSignal:
        """Which tenants have tasks to do, and when there are new ones; for workers."""
        self._connections.check_usable()
        self._refuse("work")
        if self._connections.work is None:
            raise NotSupportedError(
                " and ".join(sorted(set(self._state.engines.values()))),
                "work",
                why=f"{providers('work')}, as in {WIRINGS}",
            )
        return self._connections.work

    async def pending_events(self) -> int:
        """How many events are in Redis and not in Postgres yet; 0 where there is no such pair.

        ::

            assert await state.ops.pending_events() == 0
        """
        self._connections.check_usable()
        side = self._connections.hybrid
        return 0 if side is None else (await side.hot.stats()).pending

    async def embed_pending(self) -> int:
        """Embed now what waits to be embedded; how many events. A worker does it otherwise.

        Nothing waits where there is no embedder, and in memory, where recall embeds what it reads.
        ::

            await state.ops.embed_pending()
        """
        self._connections.check_usable()
        side = self._connections.embedding
        if side is None or side.embedder is None:
            return 0
        worker = side.worker(self._state.tenant, side.embedder)
        await worker.adopt()
        done, problem = await worker.drain()
        if problem:
            raise UnavailableError(f"embedder {side.embedder.name}", problem)
        return done

    async def assign_context(
        self, context_id: str, *, owner: str, new_id: str | None = None
    ) -> None:
        """Give an owner the old session of a context that several owners had used.

        Before owners were kept apart they shared such a session; since the upgrade nobody reads it.
        ``holdfast doctor`` lists them. ``new_id`` is for an owner who has gone on in the context.
        ::

            await state.ops.assign_context("c1", owner="ana")
        """
        self._connections.check_usable()
        self._refuse("assign_context")
        await assign_context(self._connections, self._state.tenant, context_id, owner, new_id)

    def elsewhere(self) -> AbstractAsyncContextManager[State] | None:
        """The same stores on connections of their own, for another thread's event loop.

        ``None`` in memory, where there are no connections. ::

            async with state.ops.elsewhere() as other:
                await other.tasks.heartbeat(lease)
        """
        self._refuse("elsewhere")
        again = self._connections.again
        return None if again is None else _reopened(again, self._state)

    @property
    def hybrid(self) -> HybridSide:
        """The consolidator and its queues, for operators: where Redis stands beside Postgres."""
        self._connections.check_usable()
        self._refuse("hybrid")
        side = self._connections.hybrid
        if side is None:
            raise NotSupportedError(
                " and ".join(sorted(set(self._state.engines.values()))),
                "consolidation",
                why=f"nothing waits without a Redis: set REDIS_URL, or in code {WIRINGS}",
            )
        return side


@asynccontextmanager
async def _reopened(
    again: Callable[[], Awaitable[Connections]], state: State
) -> AsyncIterator[State]:
    async with type(state)(await again(), state.tenant) as reopened:
        yield reopened
