"""Random histories of the index of words: batches of every size, removals and merges."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.testing.inmemory import InMemoryHarness
from holdfast.values.events import Event
from holdfast.values.identity import AgentId
from tests.engines.postgres_database import as_keeper, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENTS = (AgentId("writer", "ana"), AgentId("writer", "ben"))
SESSIONS = ("s1", "s2", "s3")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class _History:
    """The same random calls on Postgres and in memory."""

    def __init__(self, seed: int, stores: Sequence[Any], keeper: Any) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - not a secret
        self._stores = stores
        self._keeper = keeper
        self._words = [f"v{at}" for at in range(self._dice.choice((30, 300, 3000)))]
        self._stored = 0
        self.left: dict[str, tuple[str, AgentId]] = {}

    async def step(self) -> None:
        """Append a batch, remove events or sessions, or merge rows."""
        kinds = ("append", "append", "append", "delete", "clear", "forget", "merge")
        await getattr(self, "_" + self._dice.choice(kinds))()

    async def _append(self) -> None:
        agent = self._dice.choice(AGENTS)
        # Whoever removes a session then removes all that a row of the batch has.
        sessions = self._dice.choice((SESSIONS, self._dice.choices(SESSIONS)))
        events = []
        # A batch of 64 or more is written in groups.
        for _ in range(self._dice.choice((1, 5, 63, 64, 65, 300))):
            self._stored += 1
            said = self._dice.choices(self._words, k=self._dice.choice((1, 5, 20)))
            if self._dice.random() < 0.02:
                said += [said[0]] * 17
            session = self._dice.choice(sessions)
            text = " ".join([*said, f"u{self._stored}", "tide"])
            one = Event(agent, session, "note", {"": text}, id=f"e{self._stored}", occurred_at=NOON)
            events.append(one)
            self.left[one.id] = (session, agent)
        for store in self._stores:
            await store.append(events)

    async def _delete(self) -> None:
        some = min(len(self.left), self._dice.choice((1, 20, 200)))
        gone = self._dice.sample(sorted(self.left), some)
        for session in SESSIONS:
            for store in self._stores:
                await store.delete_events(session, gone)
        for one in gone:
            del self.left[one]

    async def _clear(self) -> None:
        await self._remove(self._dice.choice(SESSIONS), self._dice.choice(AGENTS))

    async def _forget(self) -> None:
        """Remove the events of one batch at least: all of a session."""
        session = self._dice.choice(SESSIONS)
        for agent in AGENTS:
            await self._remove(session, agent)

    async def _remove(self, session: str, agent: AgentId) -> None:
        for store in self._stores:
            await store.clear(session, agent_id=agent)
        self.left = {one: where for one, where in self.left.items() if where != (session, agent)}

    async def _merge(self) -> None:
        # The indexer merges all at once, maintenance in eight slices.
        agent, slices = str(self._dice.choice(AGENTS)), self._dice.choice((1, 8))
        for at in range(slices):
            await self._keeper.fetchval(
                "SELECT holdfast.merge_block_slice('default', $1, $2, $3)", agent, at, slices
            )

    async def check(self) -> None:
        """Ask both the same questions."""
        for _ in range(8):
            words = [*self._words, "tide", f"u{self._dice.randint(1, self._stored + 1)}"]
            asked = " ".join(self._dice.choices(words, k=self._dice.choice((1, 1, 2, 5))))
            which: Mapping[str, Any] = {"limit": self._dice.choice((1, 10, 100))}
            if self._dice.random() < 0.3:
                which = {**which, "session_id": self._dice.choice(SESSIONS)}
            agent = self._dice.choice(AGENTS)
            ours, known = [
                [
                    (hit.event.id, round(hit.score, 7))
                    for hit in await store.recall(agent, asked, **which)
                ]
                for store in self._stores
            ]
            assert ours == known, (asked, which)

    async def words(self) -> set[str]:
        """Return the words that stand in the rows."""
        rows = await self._keeper.fetch("SELECT lexeme, words FROM holdfast.event_blocks")
        return {word for row in rows for word in (row["words"] or row["lexeme"]).split(" ")}


async def _agree(seed: int, engine: Postgres, keeper: Any) -> None:
    """Make a random history on both, and compare what they answer after each step."""
    memory = InMemoryHarness()
    await memory.open()
    store = EpisodicMemory(PostgresEpisodes(engine))
    history = _History(seed, (store, memory.store("episodes")), keeper)
    try:
        for _ in range(14):
            await history.step()
            await history.check()
        unique = {word for word in await history.words() if word.startswith("u")}
        assert unique <= {f"u{one[1:]}" for one in history.left}
    finally:
        await memory.close()


@pytest.mark.parametrize("seed", range(1, 15))
async def test_recall_of_a_random_history_is_that_of_memory(seed: int) -> None:
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=2)
        async with as_keeper(engine) as keeper:
            await _agree(seed, engine, keeper)
        await engine.aclose()


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("WHERE b.ctid = h.at AND NOT h.empty", "WHERE false"),
        ("WHERE b.ctid = h.at AND h.empty", "WHERE false"),
    ],
    ids=["a row that is not rewritten", "a row that is not deleted"],
)
async def test_a_random_history_finds(was: str, becomes: str) -> None:
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=2)
        async with as_keeper(engine) as keeper:
            function = "SELECT pg_get_functiondef('holdfast.unindex_events'::regproc)"
            text = await keeper.fetchval(function)
            assert was in text
            await keeper.execute(text.replace(was, becomes))
            with pytest.raises(AssertionError):
                await _agree(1, engine, keeper)
        await engine.aclose()
