"""Random appends, claims and acknowledgements of few events."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from holdfast.kernel.storage.turnlog import Backlog, ClaimedTurn, LogPosition, TurnEntry
from holdfast.testing.machines.machine import EngineMachine

SESSIONS = st.sampled_from(["s1", "s2"])
EVENTS = st.sampled_from([f"e{n}" for n in range(12)])
PAYLOADS = st.sampled_from([b"same", b"same", b"same", b"other"])
IDLE = st.sampled_from([0, 30, 60])


def _turns(turns: list[ClaimedTurn]) -> list[Any]:
    return [(turn.entry, turn.position, turn.deliveries) for turn in turns]


def _counts(backlog: Backlog) -> tuple[int, int, bool]:
    return backlog.unclaimed, backlog.claimed, backlog.oldest_age_seconds >= 30


class TurnLogMachine(EngineMachine):
    """Producers that repeat themselves and consumers that die."""

    contract = "turn_log"

    def __init__(self) -> None:
        super().__init__()
        self.claimed: list[tuple[str, str]] = [("nothing", "nothing")]

    @initialize(events=st.lists(EVENTS, max_size=4))
    def begin(self, events: list[str]) -> None:
        """Have entries to claim, whatever comes."""
        self.append_many("s1", events, b"same")

    @rule(session=SESSIONS, event=EVENTS, payload=PAYLOADS)
    def append(self, session: str, event: str, payload: bytes) -> None:
        """Append, again, or with another payload."""
        self.both(lambda store: store.append(TurnEntry(event, session, payload)))

    @rule(session=SESSIONS, events=st.lists(EVENTS, max_size=4), payload=PAYLOADS)
    def append_many(self, session: str, events: list[str], payload: bytes) -> None:
        """Append a batch, of which some may be there."""
        entries = [TurnEntry(event, session, payload) for event in events]
        self.both(lambda store: store.append_many(entries))

    @rule(limit=st.integers(0, 4), idle=IDLE, consumer=st.sampled_from(["w1", "w2"]))
    def claim(self, limit: int, idle: int, consumer: str) -> None:
        """Take a batch, also from the dead."""

        async def call(store: Any) -> Any:
            return await store.claim(consumer, limit=limit, min_idle_seconds=idle)

        left, right = self.each(call, call, _turns)
        self.claimed += [(one.id, other.id) for one, other in zip(left, right, strict=True)]

    @rule(picks=st.lists(st.integers(0, 7), max_size=4))
    def acknowledge(self, picks: list[int]) -> None:
        """Finish some, perhaps again."""
        pairs = [self.claimed[-1 - pick % len(self.claimed)] for pick in picks]
        self.each(
            lambda store: store.acknowledge([left for left, _ in pairs]),
            lambda store: store.acknowledge([right for _, right in pairs]),
        )

    @invariant()
    def same_backlog(self) -> None:
        """Both hold as much after every step."""
        self.both(lambda store: store.pending(), _counts)

    @rule(session=SESSIONS, epoch=st.integers(0, 3), seq=st.integers(0, 40))
    def advance(self, session: str, epoch: int, seq: int) -> None:
        """Raise a session, or try to lower it."""
        self.both(lambda store: store.advance(session, LogPosition(epoch, seq)))

    @rule(seconds=st.sampled_from([1, 30, 60, 3600]))
    def wait(self, seconds: int) -> None:
        """Let claims go idle and ids be forgotten."""
        self.elapse(seconds)
