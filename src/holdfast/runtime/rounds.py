"""Decides which tenants a worker serves next: in fair turns, with one query for all work."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from holdfast.runtime.stores import TaskStores
from holdfast.spi.tasks.work import WorkKind, WorkSurvey

TENANTS = 10_000
"""Maximum number of tenants with work of a kind that one query returns."""

Claim = Callable[[str, int], Awaitable[int]]
"""Claims up to the given number of tasks of a tenant. Returns how many it claimed."""


class Rounds:
    """Finds the tenants that have work, and divides the free slots of a worker among them.

    All parts of a worker share the result of one query for ``max_age_seconds``. ::

        rounds = Rounds(state, None, max_age_seconds=5)
        due = await rounds.tenants("due", fresh=True)
    """

    def __init__(
        self, state: TaskStores, tenants: Sequence[str] | None, *, max_age_seconds: float
    ) -> None:
        self._state = state
        self._served = None if tenants is None else list(tenants)
        self._max_age_seconds = max_age_seconds
        self._survey = WorkSurvey()
        self._looked_at = float("-inf")
        self._last_tenant = ""
        self._got = 0

    @property
    def next_due_seconds(self) -> float | None:
        """How long after the last query the next task becomes due; ``None`` if there is none."""
        return self._survey.next_due_seconds

    async def tenants(self, kind: WorkKind, *, fresh: bool = False) -> list[str]:
        """Return the tenants to serve that have work of a kind; ``fresh`` always queries."""
        now = time.monotonic()
        if fresh or now - self._looked_at > self._max_age_seconds:
            self._survey = await self._state.ops.work.survey(limit=TENANTS, tenants=self._served)
            self._looked_at = now
        return self._survey.tenants(kind)

    async def due(self) -> list[str]:
        """Return the tenants that have tasks to claim.

        A worker of a single tenant that got tasks in the last round skips the query.
        """
        if self._got and self._served is not None and len(self._served) == 1:
            return list(self._served)
        return await self.tenants("due", fresh=True)

    async def share(self, tenants: Sequence[str], free: Callable[[], int], claim: Claim) -> int:
        """Divide the free slots among tenants with due tasks. Returns how many tasks were claimed.

        Each tenant gets an equal share, beginning after the one that was served last. So a tenant
        waits at most one round for its first task, however many tasks others have. Slots that are
        left go to the tenants that used up their share.
        """
        hungry: list[str] = []
        self._got = 0
        async for tenant, most in self._in_turn(tenants, free):
            self._last_tenant = tenant
            got = await claim(tenant, most)
            self._got += got
            if got == most:
                hungry.append(tenant)
        for tenant in hungry:
            if (most := free()) > 0:
                self._got += await claim(tenant, most)
        return self._got

    async def _in_turn(
        self, tenants: Sequence[str], free: Callable[[], int]
    ) -> AsyncIterator[tuple[str, int]]:
        """Yield each tenant with its share of the slots that are free at that moment."""
        later = [one for one in tenants if one > self._last_tenant]
        turns = later + [one for one in tenants if one <= self._last_tenant]
        for at, tenant in enumerate(turns):
            if (left := free()) <= 0:
                return
            yield tenant, max(1, left // (len(turns) - at))
