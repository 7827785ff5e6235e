"""The writers of this process that wait for the commit of an event, and the event's outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.spi.hybrid.durable_log import Outcome
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.hybrid.hot_log import HotTurn


@dataclass(slots=True)
class Waiting:
    """An entry that a writer waits for; ``outcome`` is set once a commit of this process has it."""

    one: PositionedEntry
    outcome: Outcome | None = None

    @property
    def name(self) -> tuple[str, str]:
        """The session and event id, by which a flushed turn is found."""
        return self.one.entry.session, self.one.entry.id


class Commits:
    """The entries that writers wait for, by shard. Each flush of this process sets their outcomes.

    ::

        with commits.waiting("acme", 7, positioned) as waits:
            await flush()
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], dict[tuple[str, str], list[Waiting]]] = {}

    @contextmanager
    def waiting(
        self, tenant: str, shard: int, entries: Sequence[PositionedEntry]
    ) -> Iterator[list[Waiting]]:
        """Register entries to wait for, until the block ends."""
        named = self._waiting.setdefault((tenant, shard), {})
        waits = [Waiting(one) for one in entries]
        for wait in waits:
            named.setdefault(wait.name, []).append(wait)
        try:
            yield waits
        finally:
            for wait in waits:
                others = [one for one in named[wait.name] if one is not wait]
                if others:
                    named[wait.name] = others
                else:
                    del named[wait.name]

    def named(
        self, tenant: str, shard: int, turns: Sequence[HotTurn], outcomes: Sequence[Outcome]
    ) -> None:
        """Set the outcome of every waiting entry that is among these committed turns."""
        waiting = self._waiting.get((tenant, shard))
        if waiting:
            for turn, outcome in zip(turns, outcomes, strict=True):
                for wait in waiting.get((turn.session, turn.event_id), ()):
                    if wait.one.position == (turn.epoch, turn.seq):
                        wait.outcome = outcome
