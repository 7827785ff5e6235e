"""Random lives of a transcript."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.content import ChatMessage
from holdfast.values.identity import AgentId

AGENTS = st.sampled_from([AgentId("", "ana"), AgentId("writer", "ben")])
SESSIONS = st.sampled_from(["s1", "s2"])
RUNS = st.sampled_from(["", "r1"])
BOUNDS = st.none() | st.integers(0, 5)
MESSAGES = st.builds(
    lambda role, text, key, extra, day: ChatMessage(
        role,
        ChatMessage.user(text).content,
        id=key,
        metadata=extra,
        created_at=datetime(2030, 1, day, tzinfo=UTC),
    ),
    st.sampled_from(["user", "assistant"]),
    st.sampled_from(["yes", "no", "a\x00b", ""]),
    st.integers(0, 30).map("m{}".format),
    st.sampled_from([{}, {"k": 1e16}]),
    st.integers(1, 3),
)


class HistoryMachine(EngineMachine):
    """Appends that collide in id, pages of every kind, clears in between."""

    contract = "history"

    @rule(agent=AGENTS, message=MESSAGES, session=SESSIONS, run=RUNS)
    def append(self, agent: AgentId, message: ChatMessage, session: str, run: str) -> None:
        """One message; ids repeat, with the same body or another."""
        self.both(lambda store: store.append(agent, message, session_id=session, run_id=run))

    @rule(agent=AGENTS, message=MESSAGES, session=SESSIONS, run=RUNS, days=st.integers(-1, 1))
    def append_again(
        self, agent: AgentId, message: ChatMessage, session: str, run: str, days: int
    ) -> None:
        """A message, and a retry of it that was built again, at the same time or another."""
        self.append(agent, message, session, run)
        again = replace(message, created_at=message.created_at + timedelta(days=days))
        self.append(agent, again, session, run)

    @rule(agent=AGENTS, messages=st.lists(MESSAGES, max_size=4), session=SESSIONS, run=RUNS)
    def append_many(
        self, agent: AgentId, messages: list[ChatMessage], session: str, run: str
    ) -> None:
        """A batch."""
        self.both(lambda store: store.append_many(agent, messages, session_id=session, run_id=run))

    @rule(agent=AGENTS, session=SESSIONS, limit=BOUNDS, offset=BOUNDS, after=BOUNDS)
    def page(
        self, agent: AgentId, session: str, limit: int | None, offset: int | None, after: int | None
    ) -> None:
        """A page from the oldest."""
        self.both(
            lambda store: store.get_messages(
                agent, session_id=session, limit=limit, offset=offset, after_seq=after
            ),
            lambda found: [(one, one.seq) for one in found],
        )

    @rule(agent=AGENTS, session=SESSIONS, last=st.integers(0, 5))
    def newest(self, agent: AgentId, session: str, last: int) -> None:
        """The newest few."""
        self.both(lambda store: store.get_messages(agent, session_id=session, recent_limit=last))

    @rule(agent=AGENTS, session=SESSIONS)
    def count(self, agent: AgentId, session: str) -> None:
        """How many."""
        self.both(lambda store: store.count_messages(agent, session_id=session))

    @rule(agent=AGENTS, session=SESSIONS)
    def clear(self, agent: AgentId, session: str) -> None:
        """An agent's messages."""
        self.both(lambda store: store.clear(agent, session_id=session))

    @rule(agent=AGENTS, session=SESSIONS)
    def clear_run(self, agent: AgentId, session: str) -> None:
        """A run's messages."""
        self.both(lambda store: store.clear_run(agent, session_id=session, run_id="r1"))

    @rule(agent=AGENTS, session=SESSIONS)
    def pop(self, agent: AgentId, session: str) -> None:
        """The newest message."""
        self.both(
            lambda store: store.pop(agent, session_id=session), lambda one: (one, one and one.seq)
        )

    @rule(
        agent=AGENTS,
        session=SESSIONS,
        run=RUNS,
        kept=st.integers(0, 4),
        messages=st.lists(MESSAGES, max_size=3),
        stale=st.sampled_from([0, 0, 0, 1]),
    )
    def replace_tail(
        self,
        agent: AgentId,
        session: str,
        run: str,
        messages: list[ChatMessage],
        *,
        kept: int,
        stale: int,
    ) -> None:
        """A new end, as of what was read before or a moment ago, and a retry of it."""
        seen = self.both(lambda store: store.get_messages(agent, session_id=session))
        numbers = [0, *(one.seq for one in seen)]

        async def replaced(store: Any) -> Any:
            return await store.replace_tail(
                agent,
                session_id=session,
                after_seq=numbers[min(kept, len(numbers) - 1)],
                messages=messages,
                expected_last_seq=numbers[-1] + stale,
                run_id=run,
            )

        self.both(replaced)
        self.both(replaced)
