"""``state.ops``: calls for operators and workers on an opened state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from holdfast.contracts.tasks.checks import check_agents
from holdfast.contracts.tasks.work import WorkSignal
from holdfast.values.backlog import Backlog, PoolUse
from holdfast.values.checks import check_count, check_optional_id, check_seconds
from holdfast.values.deprecation import renamed
from holdfast.values.erasure import ErasureRecord
from holdfast.values.errors import ConfigError, NotSupportedError, UnavailableError
from holdfast.values.identity import Agent
from holdfast.wiring.archives import Archives
from holdfast.wiring.connections import Connections
from holdfast.wiring.engines import WIRINGS, providers
from holdfast.wiring.health import Health
from holdfast.wiring.hybrid_sides import HybridSide
from holdfast.wiring.session_moves import assign_context

if TYPE_CHECKING:
    from holdfast.wiring.state import State

_TENANTS = 100
MAX_TENANTS = 1000
"""How many tenants one call returns."""


class Ops:
    """The calls of a ``State`` for operators; agents do not need them.

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
        """Return for each engine whether it answers, its latency, and its durability.

        ::

            assert (await state.ops.health()).status == "ok"
        """
        self._connections.check_usable()
        return await self._connections.probe()

    @property
    def work(self) -> WorkSignal:
        """Lists the tenants that have tasks to run, and signals new tasks; for workers."""
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
        """Return how many events are in Redis and not yet in Postgres; 0 without both of them.

        ::

            assert await state.ops.pending_events() == 0
        """
        self._connections.check_usable()
        side = self._connections.hybrid
        return 0 if side is None else (await side.hot.stats()).pending

    async def unindexed_events(self) -> int:
        """Return an upper bound of how many events of all tenants are not in the word index yet.

        Returns 0 in memory, where recall indexes new events. ::

            assert await state.ops.unindexed_events() == 0
        """
        self._connections.check_usable()
        self._refuse("unindexed_events")
        indexer = self._connections.indexer
        return 0 if indexer is None else await indexer.waiting()

    async def backlog(self, *, agents: Sequence[Agent] = (), limit: int = 10_000) -> Backlog:
        """Count the backlog of all tenants: tasks that have not ended, events, dead letters.

        Tasks of agents that are not in ``agents`` count as ``other``. At most ``limit`` tasks of
        each state are counted. Tasks that have ended are not read. ::

            found = await state.ops.backlog(agents=["writer"])
            print(found.tasks.get(("submitted", "writer"), 0), found.oldest_due_seconds)
        """
        self._connections.check_usable()
        self._refuse("backlog")
        named = sorted(str(one) for one in check_agents(agents) or ())
        most = check_count("limit", limit)
        if self._connections.backlog is None:
            raise NotSupportedError(
                " and ".join(sorted(set(self._state.engines.values()))),
                "backlog",
                why=f"{providers('tasks')}, as in {WIRINGS}",
            )
        return await self._connections.backlog.backlog(named, most)

    async def tenants(self, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the tenants that have data and come after ``after``, in the order of their names.

        For operators: the login needs the rights of a worker. ::

            for tenant in await state.ops.tenants(): ...
        """
        self._connections.check_usable()
        self._refuse("tenants")
        last = check_optional_id("after", after)
        most = min(check_count("limit", limit), MAX_TENANTS)
        if self._connections.tenants is None:
            raise NotSupportedError(
                " and ".join(sorted(set(self._state.engines.values()))),
                "tenants",
                why=f"{providers('tasks')}, as in {WIRINGS}",
            )
        return await self._connections.tenants.tenants(last, most)

    def pools(self) -> dict[str, PoolUse]:
        """Return how the connections are used, by engine; an engine without a pool is left out.

        ::

            print(state.ops.pools()["postgres"].waiting)
        """
        self._connections.check_usable()
        self._refuse("pools")
        return {
            one.engine: one.pool() for one in self._connections.connected if one.pool is not None
        }

    async def index_pending(self, progress: Callable[[int], None] | None = None) -> int:
        """Add all waiting events of all tenants to the word index. Returns how many.

        Recall also works without this call. ``progress`` is called with the count of each batch. ::

            await state.ops.index_pending()
        """
        self._connections.check_usable()
        self._refuse("index_pending")
        indexer = self._connections.indexer
        return 0 if indexer is None else await indexer.drain(progress)

    async def embed_pending(self) -> int:
        """Embed all events that have no embedding now. Returns how many. Normally a worker does it.

        Returns 0 without an embedder, and in memory, where recall embeds the events that it reads.
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

    async def erasures(self) -> AsyncIterator[ErasureRecord]:
        """Yield the erasures of the tenant, in the order of their start, with their receipts.

        An unfinished erasure has its scope: call ``state.erase`` with it to continue. ::

            async for one in state.ops.erasures():
                print(one.started_at, one.kind, one.finished)
        """
        self._connections.check_usable()
        self._refuse("erasures")
        if self._connections.erasures is None:
            return
        storage = self._connections.erasures(self._state.tenant)
        after: str | None = None
        while page := await storage.list_erasures(100, after):
            for one in page:
                yield one
            after = page[-1].id

    @renamed(context_id="session_id")
    async def assign_context(
        self, session_id: str, *, owner: str, new_id: str | None = None
    ) -> None:
        """Assign to one owner the old session of a context that several owners shared.

        Earlier versions did not separate owners; since the upgrade no owner can read such a
        session. ``holdfast doctor`` lists these contexts. If the owner already has a newer session
        in the context, pass ``new_id`` for the old one. ::

            await state.ops.assign_context("c1", owner="ana")
        """
        self._connections.check_usable()
        self._refuse("assign_context")
        await assign_context(self._connections, self._state.tenant, session_id, owner, new_id)

    async def rotate_kek(
        self, progress: Callable[[int], None] | None = None, *, all_tenants: bool = False
    ) -> int:
        """Wrap the tenant's data keys with the provider's current key. Returns how many changed.

        With ``all_tenants``, the keys of every tenant. No content is encrypted again. If a call
        was interrupted, call it again. ``progress`` is called with 1 for each changed key. ::

            changed = await state.ops.rotate_kek()
        """
        self._connections.check_usable()
        self._refuse("rotate_kek")
        found, provider = self._connections, self._connections.provider
        if provider is None or found.data_keys is None:
            raise ConfigError("this state is not sealed: set HOLDFAST_SEAL, or pass seal=")
        if not all_tenants:
            return await found.rewrap(self._state.tenant, progress)
        storage, changed, after = found.data_keys(self._state.tenant), 0, ""
        while page := await storage.tenants(provider.current, after, _TENANTS):
            for after in page:
                changed += await found.rewrap(after, progress)
        return changed

    async def rotate_dek(
        self,
        progress: Callable[[int], None] | None = None,
        *,
        older_than_seconds: float | None = None,
    ) -> int:
        """Replace the data keys of the tenant by new ones. Returns how many.

        New content is encrypted with the new keys, in other processes within a minute. Old content
        stays as it is and readable: its keys stay until an erasure destroys them. Topics, labels of
        checkpoints, channel events, digests of steps, forms, and facts with an idempotency key keep
        the first key, since they are compared; so do digests of words. If a call was interrupted,
        call it again: with ``older_than_seconds``, it leaves the keys that it has replaced. ::

            replaced = await state.ops.rotate_dek(older_than_seconds=30 * 86_400)
        """
        self._connections.check_usable()
        self._refuse("rotate_dek")
        if self._connections.provider is None or self._connections.data_keys is None:
            raise ConfigError("this state is not sealed: set HOLDFAST_SEAL, or pass seal=")
        age = 0.0
        if older_than_seconds is not None:
            age = check_seconds("older_than_seconds", older_than_seconds)
        return await self._connections.rotate(self._state.tenant, age, progress)

    @property
    def archives(self) -> Archives:
        """Export, import and copy of all data of the tenant."""
        self._connections.check_usable()
        self._refuse("archives")
        return Archives(self._connections, self._state.tenant)

    def elsewhere(self) -> AbstractAsyncContextManager[State] | None:
        """Open the same stores on separate connections, for the event loop of another thread.

        ``None`` in memory, where there are no connections. ::

            async with state.ops.elsewhere() as other:
                await other.tasks.heartbeat(lease)
        """
        self._refuse("elsewhere")
        again = self._connections.again
        return None if again is None else _reopened(again, self._connections, self._state)

    @property
    def hybrid(self) -> HybridSide:
        """The consolidator and its queues, for operators; only with Redis and Postgres together."""
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
    again: Callable[[], Awaitable[Connections]], found: Connections, state: State
) -> AsyncIterator[State]:
    connections = await again()
    connections.use_provider(found.provider, plain_vectors=found.plain_vectors)
    connections.use_tracing(found.tracing)
    async with type(state)(connections, state.tenant) as reopened:
        yield reopened
