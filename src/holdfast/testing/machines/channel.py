"""Random publishing, reading and following of one channel."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.channels import ChannelEvent

PICK = st.integers(0, 7)
IDS = st.none() | st.sampled_from(["e1", "e2", "e3"])
EVENTS: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"n": 1}, {"n": 2}])


def _seen(value: Any) -> Any:
    """Events without what each side mints for itself."""
    if isinstance(value, list):
        return [_seen(one) for one in value]
    return (value.id if value.id.startswith("e") else "minted"), value.event


class ChannelMachine(EngineMachine):
    """Events of a minute, read from cursors old and new."""

    contract = "channels"
    options: ClassVar[dict[str, Any]] = {"retention_seconds": 60}

    def __init__(self) -> None:
        super().__init__()
        self.cursors: list[tuple[str | None, str | None]] = [(None, None)]

    def _pick(self, pick: int) -> tuple[str | None, str | None]:
        return self.cursors[-1 - pick % len(self.cursors)]

    @rule(event=EVENTS, event_id=IDS)
    def publish(self, event: dict[str, Any], event_id: str | None) -> None:
        """Send, or send again."""

        async def call(store: Any) -> Any:
            sent = await store.publish(event, id=event_id)
            return sent if event_id else ChannelEvent("", sent.cursor, event, sent.published_at)

        left, right = self.each(call, call, _seen)
        if isinstance(left, ChannelEvent):
            self.cursors.append((left.cursor, right.cursor))

    @invariant()
    def same_events(self) -> None:
        """Both hold the same after every step."""
        self.both(lambda store: store.read(), lambda events: [_seen(one)[1] for one in events])

    @rule(pick=PICK, limit=st.integers(0, 4))
    def read(self, pick: int, limit: int) -> None:
        """Read a batch."""
        left, right = self._pick(pick)
        self.each(
            lambda store: store.read(cursor=left, limit=limit),
            lambda store: store.read(cursor=right, limit=limit),
            lambda events: [_seen(one)[1] for one in events],
        )

    @rule(pick=PICK)
    def follow(self, pick: int) -> None:
        """A stream hands out exactly what a read would, and then waits."""

        async def follow(store: Any, after: str | None) -> list[dict[str, Any]]:
            expected = await store.read(cursor=after)
            async with aclosing(store.subscribe(cursor=after)) as stream:
                seen = [await anext(stream) for _ in expected]
            assert seen == expected
            return [one.event for one in seen]

        left, right = self._pick(pick)
        self.each(lambda store: follow(store, left), lambda store: follow(store, right))

    @rule()
    def clear(self) -> None:
        """Delete all events."""
        self.both(lambda store: store.clear())

    @rule()
    def tail(self) -> None:
        """Remember where the channel ends."""

        async def call(store: Any) -> Any:
            tail = await store.tail()
            assert await store.read(cursor=tail) == []
            return tail

        self.cursors.append(self.each(call, call, type))

    @rule(seconds=st.sampled_from([1, 20, 60]))
    def wait(self, seconds: int) -> None:
        """Let events expire."""
        self.elapse(seconds)
