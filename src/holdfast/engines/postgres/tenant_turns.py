"""Decides which tenant gets the next connection while several wait."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

from holdfast.values.backlog import PoolUse


class TenantTurns:
    """Distributes a number of connections fairly among tenants.

    A single tenant may use all of them. While several tenants wait, they get connections in turn,
    and a tenant that holds half of them has to let the others go first. ::

        turns = TenantTurns(10)
        await turns.take("acme")
        try:
            ...
        finally:
            turns.give_back("acme")
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._half = max(1, size // 2)
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> bool:
        """Whether any call waits for a connection."""
        return bool(self._waiting)

    def use(self) -> PoolUse:
        """Return how many connections are in use, and how many calls wait for one."""
        held = self._held.total()
        waiting = sum(len(turns) for turns in self._waiting.values())
        return PoolUse(self._free + held, held, waiting)

    async def take(self, tenant: str) -> None:
        """Wait until this tenant may use a connection."""
        if self._free and not self._waiting:
            self._free -= 1
            self._held[tenant] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(tenant)
            else:
                self._forget(tenant, turn)
            raise

    def give_back(self, tenant: str) -> None:
        """End the use of a connection, and wake the next waiting call."""
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        self._free += 1
        while self._free and self._waiting:
            self._begin(self._next())

    def _next(self) -> str:
        """Return the tenant that waits longest, if possible one with less than half of all."""
        below = (one for one in self._waiting if self._held[one] < self._half)
        return next(below, next(iter(self._waiting)))

    def _begin(self, tenant: str) -> None:
        turn = self._waiting[tenant].popleft()
        if self._waiting[tenant]:
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
        if not turn.done():
            self._free -= 1
            self._held[tenant] += 1
            turn.set_result(None)

    def _forget(self, tenant: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(tenant)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[tenant]
