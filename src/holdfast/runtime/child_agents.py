"""Warns of child tasks that may wait for ever, since nobody runs tasks of their agent."""

from __future__ import annotations

import logging
from collections.abc import Collection

from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.running_task import RunningTask
from holdfast.values.errors import HoldfastError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.owners import ANY_OWNER

_log = logging.getLogger("holdfast.worker")
RECENT = 100
"""How many tasks of an agent are read, those that changed last."""
MOST = 1_000
"""How many agents a worker looks up: their names may come from data."""


async def was_claimed(ledger: TaskLedger, agent: Agent) -> bool:
    """Return whether a worker has ever claimed one of an agent's recent tasks.

    ::

        if not await was_claimed(state.tasks, "writer"):
            print("is a worker running?")
    """
    page = await ledger.list(owner=ANY_OWNER, agent=agent, limit=RECENT)
    return any(task.fence for task in page.tasks)


class ChildAgents:
    """Looks up once each agent for which the handlers of a worker submit tasks.

    ::

        await ChildAgents(app.agents).check(state.tasks, held)
    """

    def __init__(self, own: Collection[AgentId]) -> None:
        self._own = own
        self._seen: set[tuple[str, AgentId]] = set()

    async def check(self, ledger: TaskLedger, held: RunningTask) -> None:
        """Log a warning for each agent of a new child that no handler and no worker runs."""
        new = {(held.tenant, agent) for agent in held.child_agents if agent not in self._own}
        for found in new:
            if found in self._seen:
                continue
            if len(self._seen) == MOST:
                return
            agent = found[1]
            self._seen.add(found)
            try:
                claimed = await was_claimed(ledger, agent)
            except HoldfastError:
                # The next child of this agent is looked up again.
                self._seen.discard(found)
                continue
            if not claimed:
                _log.warning(
                    "task %s: it submitted a task for the agent %s, which has no handler in this "
                    "app and no task that a worker has claimed: the task waits until a worker with "
                    "a handler of that name runs. If the name is misspelt, `holdfast tasks cancel "
                    "%s --children`",
                    *(held.lease.task_id, agent, held.lease.task_id),
                    extra={"task": held.lease.task_id, "tenant": held.tenant},
                )
