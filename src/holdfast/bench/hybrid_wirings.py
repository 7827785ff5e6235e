"""Three wirings of Holdfast through ``holdfast.open()``: the same calls on different engines."""

from __future__ import annotations

from typing import Any

from holdfast.bench.hybrid_workload import K, Workload, working_state
from holdfast.bench.servers import Servers
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.values.errors import NotSupportedError
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

RECENT = 10
BATCH = 250


class Wiring:
    """Holdfast on Redis, on Postgres, or on both."""

    def __init__(self, name: str, *, postgres: bool, redis: bool) -> None:
        self.name = name
        self.cannot: dict[str, str] = {}
        self._on = (postgres, redis)
        self._memories: dict[int, AgentMemory] = {}

    async def open(self, servers: Servers, dimension: int) -> str:
        """Open a state as any user would. Returns the URL of its database, or ``""``."""
        del dimension  # our schema has no fixed dimension
        postgres, redis = self._on
        url = await servers.database(self.name.replace(" ", "_")) if postgres else ""
        self._state: State = await open_state(
            url or servers.valkey,
            redis=servers.valkey if postgres and redis else None,
            tenant=self.name,
            settings=Settings(auto_migrate=True, search_timeout_seconds=60),
        )
        return url

    async def load(self, workload: Workload) -> None:
        """Record every turn of every agent, with embeddings if the engine can store them."""
        for agent in range(workload.agents):
            memory = self._memory(agent)
            await memory.state.set(working_state(agent))
            vectors = workload.vectors[agent].tolist() if self._on[0] else None
            for start in range(0, workload.turns, BATCH):
                part = slice(start, start + BATCH)
                turns = list(enumerate(workload.texts[agent]))[part]
                await memory.record_many(
                    [("observation", {"turn": at, "text": text}) for at, text in turns],
                    vectors[part] if vectors else None,
                )
        if not self._on[0]:
            try:
                await self._memory(0).recall(workload.questions[0][0].vector, K)
            except NotSupportedError as error:
                self.cannot["semantic"] = str(error)
            return
        for agent in range(workload.agents):
            # Words are indexed when they are first asked for; the disk is measured with them.
            await self._memory(agent).recall("settled?", 1)
        await self.settle()

    async def hot(self, agent: int) -> Any:
        """Return one key of the working state."""
        return (await self._memory(agent).state.get(keys=["current_task"]))["current_task"]

    async def save(self, agent: int, number: int) -> None:
        """Merge one key into the working state."""
        await self._memory(agent).state.update({"current_task": f"task {number}"})

    async def episodic(self, agent: int) -> list[int]:
        """Return the newest turns of the session, in order."""
        return [one.payload["turn"] for one in await self._memory(agent).recent(RECENT)]

    async def semantic(self, agent: int, vector: list[float]) -> list[int]:
        """Return the nearest turns of all that the agent recorded."""
        return [one.event.payload["turn"] for one in await self._memory(agent).recall(vector, K)]

    async def record(self, agent: int, number: int) -> None:
        """Record one more turn of 1.5 KB, at the acknowledgement level of the wiring."""
        payload = {"turn": -number, "text": "the tide is low and the ships wait " * 43}
        await self._memory(agent).record("note", payload)

    async def settle(self) -> None:
        """Flush what is only in Redis to Postgres."""
        if all(self._on):
            await self._state.ops.hybrid.consolidator.drain()

    async def plan(self, _vector: list[float]) -> str:
        """Return a description: while an agent has few events, all of them are compared."""
        return ""

    async def close(self) -> None:
        """Close the state."""
        await self._state.aclose()

    def _memory(self, agent: int) -> AgentMemory:
        # An agent keeps its memory while it runs.
        if agent not in self._memories:
            name, session = f"bench/agent-{agent}", f"session-{agent}"
            self._memories[agent] = self._state.memory(name, session_id=session)
        return self._memories[agent]
