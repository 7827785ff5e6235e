"""Random lives of an agent's memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.content import ChatMessage
from holdfast.values.events import Event, Recalled
from holdfast.values.memory import Assembled, Hydrated

AGENTS = st.sampled_from(["ana", "writer/ben"])
SESSIONS = st.none() | st.sampled_from(["s1", "s2"])
RUNS = st.sampled_from(["", "r1"])
TYPES = st.sampled_from(["decision", "observation"])
SOME_TYPES = st.none() | st.lists(TYPES, max_size=2, unique=True)
COUNTS = st.integers(0, 6)
START = datetime(2030, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 5).map(lambda hours: START + timedelta(hours=hours))
WORDS = st.lists(st.sampled_from(["tide", "moon", "harbour", "sailing"]), max_size=3).map(" ".join)
WHERES = st.none() | st.sampled_from(
    [{"note": "tide"}, {"note": {"$gt": "moon"}}, {"role": "user"}, {"$not": {"note": "tide"}}]
)
IDS = st.integers(0, 15).map("e{}".format)
MESSAGES = st.sampled_from(
    [
        ChatMessage.user(f"word{at}", id=f"m{at}", created_at=START + timedelta(hours=hours))
        for at in range(4)
        for hours in range(2)
    ]
)
VALUES = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), max_size=2)
UNIDENTIFIED = "aside"
"""The type of events whose id the memory mints: it is another on each side."""


def _event(event: Event) -> tuple[Any, ...]:
    name = "" if event.type == UNIDENTIFIED else event.id
    # A time that the memory took from the clock is another on each side.
    when = event.occurred_at if event.occurred_at.year == START.year else None
    place = (event.epoch, event.seq)
    return (event.session_id, event.type, event.payload, name, event.run_id, when, place)


def _events(events: list[Event]) -> list[Any]:
    return [_event(one) for one in events]


def _ranked(found: list[Recalled]) -> list[Any]:
    return [(_event(one.event), round(one.score, 6), one.found_by) for one in found]


def _woken(found: Hydrated) -> Any:
    recalled = _ranked(found.recalled)
    return (found.status, found.state, found.version > 0, _events(found.recent), recalled)


def _prompt(found: Assembled) -> Any:
    # The order of a state's keys is not promised.
    return [(one.role, sorted(one.text)) for one in found.messages]


class AgentMemoryMachine(EngineMachine):
    """Records that collide in id, in sessions and outside of them, and every kind of read."""

    contract = "memory"

    @rule(
        agent=AGENTS,
        session=SESSIONS,
        type_=TYPES,
        note=WORDS,
        name=IDS,
        run=RUNS,
        when=st.none() | TIMES,
    )
    def record(self, agent: str, session: str | None, type_: str, note: str, **how: Any) -> None:
        """An event with an id; ids repeat, with the same body or another, with a time or not."""
        self.both(
            lambda memory: memory(agent, session_id=session).record(
                type_,
                {"note": note},
                event_id=how["name"],
                run_id=how["run"],
                occurred_at=how["when"],
            ),
            _event,
        )

    @rule(agent=AGENTS, session=SESSIONS, message=MESSAGES, run=RUNS)
    def say(self, agent: str, session: str | None, message: ChatMessage, run: str) -> None:
        """A message, for the first time or again."""
        self.both(
            lambda memory: memory(agent, session_id=session).record("message", message, run_id=run),
            _event,
        )

    @rule(agent=AGENTS, session=SESSIONS, count=st.integers(0, 3))
    def record_many(self, agent: str, session: str | None, count: int) -> None:
        """Events whose ids are minted, equal as they are."""
        batch = [(UNIDENTIFIED, {"said": "yes"})] * count
        self.both(lambda memory: memory(agent, session_id=session).record_many(batch), _events)

    @rule(agent=AGENTS, session=SESSIONS, count=COUNTS, types=SOME_TYPES, where=WHERES)
    def recent(self, agent: str, session: str | None, count: int, **how: Any) -> None:
        """The newest."""
        self.both(lambda memory: memory(agent, session_id=session).recent(count, **how), _events)

    @rule(
        agent=AGENTS,
        session=SESSIONS,
        start=TIMES,
        end=TIMES,
        limit=COUNTS,
        types=SOME_TYPES,
        where=WHERES,
    )
    def between(
        self, agent: str, session: str | None, start: datetime, end: datetime, **how: Any
    ) -> None:
        """A span of time."""
        self.both(
            lambda memory: memory(agent, session_id=session).between(start, end, **how), _events
        )

    @rule(
        agent=AGENTS,
        query=WORDS.filter(bool),
        k=COUNTS,
        session_id=st.none() | st.just("s1"),
        where=WHERES,
    )
    def recall(self, agent: str, query: str, k: int, **how: Any) -> None:
        """By words."""
        self.both(lambda memory: memory(agent).recall(query, k, **how), _ranked)

    @rule(agent=AGENTS, session=SESSIONS, query=st.none() | WORDS.filter(bool), window=COUNTS)
    def hydrate(self, agent: str, session: str | None, query: str | None, window: int) -> None:
        """Wake up."""
        self.both(
            lambda memory: memory(agent, session_id=session).hydrate(query, recent_limit=window),
            _woken,
        )

    @rule(agent=AGENTS, session=SESSIONS, window=COUNTS)
    def assemble(self, agent: str, session: str | None, window: int) -> None:
        """A prompt of the state and the newest events, with room for all."""
        self.both(
            lambda memory: memory(agent, session_id=session).assemble(
                "unheard", 100_000, recent_limit=window, facts_limit=0
            ),
            _prompt,
        )

    @rule(agent=AGENTS, session=SESSIONS, values=VALUES, drop=st.sampled_from([[], ["c"], ["a"]]))
    def update(self, agent: str, session: str | None, values: Any, drop: list[str]) -> None:
        """Merge into the state."""
        self.both(
            lambda memory: memory(agent, session_id=session).state.update(values, delete_keys=drop),
            bool,
        )

    @rule(agent=AGENTS, session=SESSIONS, values=st.none() | VALUES)
    def replace(self, agent: str, session: str | None, values: Any) -> None:
        """Replace the state, or remove it."""
        if values is None:
            self.both(lambda memory: memory(agent, session_id=session).state.clear())
        else:
            self.both(lambda memory: memory(agent, session_id=session).state.set(values), bool)

    @rule(agent=AGENTS, session=SESSIONS, keys=st.sampled_from([None, [], ["a"], ["a", "zz"]]))
    def get(self, agent: str, session: str | None, keys: Any) -> None:
        """The state, or a part of it."""
        self.both(lambda memory: memory(agent, session_id=session).state.get(keys=keys))

    @rule(agent=AGENTS, session=SESSIONS, content=WORDS.filter(bool), limit=COUNTS)
    def facts(self, agent: str, session: str | None, content: str, limit: int) -> None:
        """Keep a fact, and ask for the newest."""
        self.each(
            lambda memory: memory(agent, session_id=session).facts.save(content),
            lambda memory: memory(agent, session_id=session).facts.save(content),
            lambda _: None,
        )
        self.elapse(1)
        self.both(
            lambda memory: memory(agent).facts.search("", limit=limit),
            lambda found: [one.content for one in found],
        )
