"""Random lives of a session log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.events import Event, Recalled
from holdfast.values.identity import ALL_AGENTS, AgentId, AnyAgent

AGENTS = st.sampled_from([AgentId("", "ana"), AgentId("writer", "ben")])
SESSIONS = st.sampled_from(["s1", "s2"])
RUNS = st.sampled_from(["", "r1", "r2"])
TYPES = st.sampled_from(["decision", "observation"])
ALL_TYPES = TYPES | st.just("message")
SOME_TYPES = st.none() | st.lists(ALL_TYPES, max_size=2, unique=True)
ASKED = AGENTS | st.just(ALL_AGENTS)
MARKS = st.sampled_from([None, True, 1, -2, "1", "tide\x00", "x" * 256])
WHERES = st.none() | st.one_of(
    MARKS.map(lambda mark: {"mark": mark}),
    MARKS.map(lambda mark: {"mark": {"$ne": mark}}),
    st.lists(MARKS, max_size=3).map(lambda marks: {"mark": {"$in": marks}}),
    st.sampled_from([0, 1.0, "", "tide"]).map(lambda bound: {"mark": {"$gt": bound}}),
    st.booleans().map(lambda there: {"part": {"$exists": there}}),
    st.just({"$or": [{"part": "low"}, {"mark": {"$not": {"$lte": "x"}}}]}),
)
LIMITS = st.integers(0, 6)
START = datetime(2030, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 5).map(lambda hours: START + timedelta(hours=hours))
WORDS = st.lists(st.sampled_from(["tide", "moon", "harbour", "sailing"]), max_size=3).map(" ".join)
SPEAKERS = st.sampled_from(
    [{"role": "user", "name": "Ana"}, {"role": "user", "name": "Old Ben"}, {"role": "assistant"}]
)
MESSAGES = st.builds(
    lambda speaker, words, end: {**speaker, "content": words + end},
    SPEAKERS,
    WORDS,
    st.sampled_from(["", ".", "?", "? Well.", "? "]),
)
QUESTIONS = st.lists(
    st.sampled_from(["tide", "moon", "harbour", "sailing", "Ana", "old Ben?", "January"]),
    min_size=1,
    max_size=3,
).map(" ".join)
NOTES = st.builds(
    Event,
    AGENTS,
    SESSIONS,
    TYPES,
    st.fixed_dictionaries(
        {"note": WORDS},
        optional={
            "mark": st.sampled_from(
                [None, True, 1, 1.0, -2, "1", "tide\x00", "x" * 256, "é" * 129]
            ),
            "part": st.sampled_from([[1], {"mark": 1}, "low"]),
        },
    ),
    id=st.integers(0, 30).map("e{}".format),
    run_id=RUNS,
    occurred_at=TIMES,
)
SAID = st.builds(
    Event,
    AGENTS,
    SESSIONS,
    st.just("message"),
    MESSAGES,
    id=st.integers(0, 60).map("m{}".format),
    run_id=RUNS,
    occurred_at=TIMES,
)
EVENTS = NOTES | SAID


def _ranked(found: list[Recalled]) -> list[Any]:
    return [
        (
            *(one.event, round(one.score, 6), one.found_by),
            {name: round(score, 6) for name, score in one.scores.items()},
        )
        for one in found
    ]


class EpisodesMachine(EngineMachine):
    """Appends that collide in id and time, reads of every kind, clears in between."""

    contract = "episodes"

    def __init__(self) -> None:
        super().__init__()
        self.elapse(0.5)  # no session starts at the time of an event

    @rule(events=st.lists(EVENTS, max_size=4))
    def append(self, events: list[Event]) -> None:
        """A batch; ids repeat, with the same body or another."""
        self.both(lambda log: log.append(events))
        self.elapse(1)  # the real clock of a server goes on too: sessions begin at different times

    @rule(events=st.lists(EVENTS, min_size=1, max_size=3), when=TIMES)
    def append_again(self, events: list[Event], when: datetime) -> None:
        """A batch, and a retry of it whose events were built again, at another time."""
        self.append(events)
        self.append([replace(event, occurred_at=when) for event in events])

    @rule(
        agent=ASKED,
        session_id=st.none() | SESSIONS,
        limit=LIMITS,
        types=SOME_TYPES,
        where=WHERES,
        after_seq=st.sampled_from([None, None, None, 0, 2, 5]),
    )
    def recent(self, agent: AnyAgent, **how: Any) -> None:
        """The newest."""
        self.both(lambda log: log.recent(agent, **how))

    @rule(
        agent=ASKED,
        start=TIMES,
        end=TIMES,
        session_id=st.none() | SESSIONS,
        limit=LIMITS,
        where=WHERES,
    )
    def between(self, agent: AnyAgent, start: datetime, end: datetime, **how: Any) -> None:
        """A span of time."""
        self.both(lambda log: log.between(agent, start, end, **how))

    @rule(
        agent=ASKED,
        query=QUESTIONS,
        limit=LIMITS,
        session_id=st.none() | SESSIONS,
        types=SOME_TYPES,
        where=WHERES,
    )
    def recall(self, agent: AnyAgent, query: str, **how: Any) -> None:
        """By words."""
        self.both(lambda log: log.recall(agent, query, **how), _ranked)

    @rule(
        session=SESSIONS,
        agent=st.none() | AGENTS,
        run=st.none() | RUNS.filter(bool),
        types=SOME_TYPES,
    )
    def clear(self, session: str, agent: AgentId | None, run: str | None, types: Any) -> None:
        """A part of a session."""
        self.both(lambda log: log.clear(session, agent_id=agent, run_id=run, types=types))

    @rule(session=SESSIONS, every=st.sampled_from([1, 2, 3]))
    def delete_events(self, session: str, every: int) -> None:
        """Some events of a session, one of which is another's or unknown."""

        async def done(log: Any) -> int:
            found = await log.recent(ALL_AGENTS, session_id=session, limit=None)
            ids = [one.id for one in found][::every]
            removed = await log.delete_events(session, [*ids, "no such event"])
            assert await log.get(session, ids) == [], "a deleted event is still there"
            return int(removed)

        self.both(done)

    @rule(agent=AGENTS, session=SESSIONS)
    def pop(self, agent: AgentId, session: str) -> None:
        """The newest message of a transcript, which may be a question that somebody answered."""
        self.each(
            lambda _: self.engine.subject("history").pop(agent, session_id=session),
            lambda _: self.reference.subject("history").pop(agent, session_id=session),
            lambda popped: popped and (popped.id, popped.text),
        )

    @rule(
        agent=AGENTS,
        session=SESSIONS,
        metadata=st.none() | st.just({"k": 1}),
        subject=st.none() | st.sampled_from(["ana", "ben"]),
    )
    def start(
        self,
        agent: AgentId,
        session: str,
        metadata: dict[str, Any] | None,
        subject: str | None,
    ) -> None:
        """Begin, or begin again, or fail to because it is about somebody else."""
        self.both(
            lambda log: log.start_session(agent, session, metadata=metadata, subject=subject),
            lambda found: (
                *(found.id, found.agent_id, found.ended_at, found.metadata, found.subject),
            ),
        )
        self.elapse(1)

    @rule(session=SESSIONS)
    def end(self, session: str) -> None:
        """End, or fail to."""
        self.both(lambda log: log.end_session(session), lambda found: found.ended_at is not None)

    @rule(session=SESSIONS)
    def whole(self, session: str) -> None:
        """All of a session."""
        self.both(lambda log: log.recent(ALL_AGENTS, session_id=session, limit=None))

    @rule(session=SESSIONS, ids=st.lists(st.integers(0, 8).map("e{}".format), max_size=4))
    def get(self, session: str, ids: list[str]) -> None:
        """By their ids."""
        self.both(lambda log: log.get(session, ids))

    @rule(
        session=SESSIONS,
        into=st.sampled_from(["s1", "s2", "fork 1", "fork 2"]),
        at=st.none() | st.integers(0, 8),
    )
    def fork(self, session: str, into: str, at: int | None) -> None:
        """A session up to a number, as another."""
        if session != into:
            self.elapse(1)
            self.both(
                lambda log: log.fork(session, into, at=at),
                lambda one: (one.id, one.parent, one.parent_at, one.agent_id, one.metadata),
            )
            self.both(lambda log: log.recent(ALL_AGENTS, session_id=into, limit=None))

    @rule(session=SESSIONS)
    def delete(self, session: str) -> None:
        """A session and all that is in it."""
        self.both(lambda log: log.delete_session(session))

    @rule(limit=st.integers(0, 3), after=st.none() | AGENTS)
    def agents(self, limit: int, after: AgentId | None) -> None:
        """List those that have events."""
        self.both(lambda log: log.list_agents(limit=limit, after=after))

    @rule(
        agent=ASKED,
        limit=LIMITS,
        where=st.sampled_from([None, {"k": 1}, {"k": {"$ne": 1}}]),
    )
    def sessions(self, agent: AnyAgent, **how: Any) -> None:
        """List them."""
        self.both(
            lambda log: log.list_sessions(agent, **how),
            lambda found: [(one.id, one.ended_at is None, one.metadata) for one in found],
        )

    @rule(agent=ASKED, where=st.sampled_from([None, {"k": 1}]))
    def active_sessions(self, agent: AnyAgent, **how: Any) -> None:
        """List those that have events by their activity; the others' clocks differ."""
        active = [START + timedelta(hours=hours) for hours in range(6)]
        self.both(
            lambda log: log.list_sessions(agent, by="last_active_at", **how),
            lambda found: [
                (one.id, one.last_active_at) for one in found if one.last_active_at in active
            ],
        )

    @rule(seconds=st.integers(1, 100))
    def wait(self, seconds: int) -> None:
        """Time goes on."""
        self.elapse(seconds)
