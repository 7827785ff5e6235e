from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.backends.inmemory.turnlog import InMemoryTurnLog
from holdfast.kernel.storage.turnlog import ClaimedTurn, LogPosition, TurnEntry, check_entry
from tests.mutants.registry import mutant


@mutant("turn_log", "test_many_who_append_the_same_event_at_once_make_one_entry")
class SeenIsCheckedTooEarly(InMemoryTurnLog):
    """An append looks for its event id, waits, and then appends."""

    async def append(self, entry: TurnEntry) -> LogPosition:
        check_entry(entry)
        key = entry.session_id, entry.event_id
        fresh = key not in self._data.seen
        await asyncio.sleep(0)
        if fresh:
            self._data.seen.pop(key, None)
        return await super().append(entry)


@mutant("turn_log", "test_an_entry_is_claimed_by_one_consumer_at_a_time")
class ClaimIsMarkedTooLate(InMemoryTurnLog):
    """Two consumers that come at the same moment get the same entries."""

    async def claim(self, consumer: str, **options: Any) -> list[ClaimedTurn]:
        before = dict(self._data.unclaimed)
        turns = await super().claim(consumer, **options)
        claimed = dict(self._data.claimed)
        self._data.unclaimed = before
        await asyncio.sleep(0)
        self._data.unclaimed = {
            number: entry for number, entry in self._data.unclaimed.items() if number not in claimed
        }
        return turns


@mutant("turn_log", "test_nothing_expires_before_it_is_acknowledged")
class OldEntriesAreTrimmed(InMemoryTurnLog):
    """What nobody has flushed for a year is dropped."""

    async def claim(self, consumer: str, **options: Any) -> list[ClaimedTurn]:
        turns = await super().claim(consumer, **options)
        now = self._engine.now()
        return [turn for turn in turns if (now - turn.appended_at).days < 365]


@mutant("turn_log", "test_acknowledge_is_idempotent")
class AcknowledgeCountsItsInput(InMemoryTurnLog):
    """The answer is how many ids were given, not how many entries were removed."""

    async def acknowledge(self, ids: Sequence[str]) -> int:
        removed = await super().acknowledge(ids)
        return len(ids) if removed else 0


@mutant("turn_log", "test_numbers_go_on_after_everything_was_acknowledged")
class NumbersStartAgain(InMemoryTurnLog):
    """A session whose entries are all flushed and forgotten starts at 1 again."""

    async def append(self, entry: TurnEntry) -> LogPosition:
        self._forget(self._engine.now())
        if self._data.last and not self._data.seen:
            self._data.positions.pop(entry.session_id, None)
        return await super().append(entry)
