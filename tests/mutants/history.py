from __future__ import annotations

import asyncio
from typing import Any

from holdfast.contracts.history import History
from holdfast.engines.inmemory.transcripts import InMemoryTranscripts
from holdfast.spi.transcripts import Tail, TranscriptKey, another_body
from holdfast.values.errors import ConflictError, InvalidInputError, VersionConflictError
from tests.mutants.registry import mutant


@mutant("history", "test_a_limit_of_zero_is_an_empty_result")
class LimitZeroReturnsAll(History):
    """A limit of zero is taken for no limit."""

    async def get_messages(self, agent_id: Any, **how: Any) -> Any:
        how["limit"] = how.get("limit") or None
        how["recent_limit"] = how.get("recent_limit") or None
        return await super().get_messages(agent_id, **how)


@mutant(
    "history",
    "test_clear_run_removes_that_run_only",
    "test_count_messages_counts_what_get_messages_returns",
)
class ClearRunClearsTheSession(History):
    """clear_run forgets which run."""

    async def clear_run(self, agent_id: Any, *, session_id: str, run_id: str) -> None:
        if not run_id:
            raise InvalidInputError("run_id", "must not be empty")
        await self.clear(agent_id, session_id=session_id)


@mutant("history", "test_clear_run_of_an_empty_run_id_is_refused")
class EmptyRunIsAllUntagged(History):
    """clear_run of an empty run removes every untagged message."""

    async def clear_run(self, agent_id: Any, *, session_id: str, run_id: str) -> None:
        if run_id:
            await super().clear_run(agent_id, session_id=session_id, run_id=run_id)
        else:
            await self._storage.clear(TranscriptKey(str(agent_id), session_id), "")


@mutant(
    "history",
    "test_append_many_is_atomic_one_bad_message_and_none_is_stored",
    "test_append_many_is_contiguous_and_in_order",
    "test_the_same_id_with_another_body_is_a_conflict_and_nothing_is_written",
)
class BatchOneByOne(History):
    """append_many appends one message after the other."""

    async def append_many(self, agent_id: Any, messages: Any, **scope: Any) -> None:
        for at, message in enumerate(messages):
            try:
                await super().append_many(agent_id, [message], **scope)
            except InvalidInputError as error:
                raise InvalidInputError(f"messages[{at}]", str(error)) from error
            await asyncio.sleep(0)


@mutant(
    "history",
    "test_the_same_id_with_another_body_is_a_conflict_and_nothing_is_written",
    "test_the_same_id_with_another_run_is_a_conflict",
)
class SameIdAlwaysANoOp(History):
    """A second body under a known id is silently dropped."""

    async def append_many(self, agent_id: Any, messages: Any, **scope: Any) -> None:
        try:
            await super().append_many(agent_id, messages, **scope)
        except ConflictError:
            return


@mutant("history", "test_sequence_numbers_are_never_reused_after_a_clear")
class ClearForgetsTheCounter(InMemoryTranscripts):
    """clear begins the numbers again."""

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        await super().clear(key, run)
        if run is None and key.session in self._log.sessions:
            self._log.sessions[key.session].seq = 0


@mutant("history", "test_clear_leaves_events_that_are_no_messages")
class ClearTakesTheWholeLog(InMemoryTranscripts):
    """clear removes the agent's decisions with its messages."""

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        self._log.clear(key.session, agent=key.agent, run=run)


@mutant("history", "test_recent_limit_takes_the_newest_and_keeps_them_ascending")
class LastComesNewestFirst(History):
    """recent_limit returns the newest first."""

    async def get_messages(self, agent_id: Any, **how: Any) -> Any:
        found = await super().get_messages(agent_id, **how)
        return found[::-1] if how.get("recent_limit") else found


@mutant("history", "test_a_limit_takes_from_the_oldest", "test_after_seq_is_a_cursor")
class LimitTakesTheNewest(History):
    """limit without an offset takes from the end."""

    async def get_messages(self, agent_id: Any, **how: Any) -> Any:
        limit = how.get("limit")
        found = await super().get_messages(agent_id, **how)
        if limit and not how.get("offset") and not how.get("after_seq"):
            how["limit"] = None
            return (await super().get_messages(agent_id, **how))[-limit:]
        return found


_RETRY = "test_the_same_id_and_body_with_another_time_is_the_same_message_and_the_first_time_stays"


@mutant("history", _RETRY)
class TheTimeCounts(InMemoryTranscripts):
    """A retry with another time is another message."""

    async def append(self, entries: Any) -> None:
        for entry in entries:
            there = self._log.transcript(entry.session, entry.agent).get(entry.id)
            if there is not None and there.occurred_at != entry.occurred_at:
                raise another_body(entry.session, entry.id)
        await super().append(entries)


@mutant("history", _RETRY)
class TheLastTimeStays(InMemoryTranscripts):
    """A retry overwrites the time of the first one."""

    async def append(self, entries: Any) -> None:
        await super().append(entries)
        for entry in entries:
            rows = self._log.transcript(entry.session, entry.agent)
            rows[entry.id].occurred_at = entry.occurred_at


@mutant("history", "test_the_same_id_of_another_agent_in_the_session_is_a_conflict")
class TheAgentDoesNotCount(InMemoryTranscripts):
    """A known id of another agent is taken for a retry."""

    async def append(self, entries: Any) -> None:
        session = self._log.sessions.get(entries[0].session)
        known = session.rows if session else {}
        others = {row.id for row in known.values() if row.agent != entries[0].agent}
        await super().append([one for one in entries if one.id not in others])


@mutant("history", "test_of_concurrent_poppers_no_two_get_the_same_message")
class PopReadsThenRemoves(InMemoryTranscripts):
    """pop reads the newest message, and removes it a moment later."""

    async def pop(self, key: TranscriptKey) -> Any:
        rows = list(self._log.transcript(key.session, key.agent).values())
        await asyncio.sleep(0)
        if rows and rows[-1].id in self._log.transcript(key.session, key.agent):
            await super().pop(key)
        return rows[-1].to_row(rows[-1].seq) if rows else None


@mutant("history", "test_pop_leaves_other_agents_other_sessions_and_events_that_are_no_messages")
class PopTakesTheNewestEvent(InMemoryTranscripts):
    """pop removes the newest event of the session, whoever's."""

    async def pop(self, key: TranscriptKey) -> Any:
        session = self._log.sessions.get(key.session)
        if session is None or not session.rows:
            return None
        newest = list(session.rows.values())[-1]
        self._log.remove(session, [newest])
        return newest.to_row(newest.seq)


@mutant("history", "test_a_popped_message_is_in_no_page_count_or_recall")
class PopHidesInTheTranscriptOnly(InMemoryTranscripts):
    """pop leaves the event in the log, where recall finds it."""

    async def pop(self, key: TranscriptKey) -> Any:
        rows = self._log.transcript(key.session, key.agent)
        if not rows:
            return None
        _, newest = rows.popitem()
        return newest.to_row(newest.seq)


@mutant("history", "test_a_popped_message_may_be_appended_again_and_gets_a_new_number")
class PopGivesTheNumberBack(InMemoryTranscripts):
    """The number of a popped message is used again."""

    async def pop(self, key: TranscriptKey) -> Any:
        popped = await super().pop(key)
        if popped is not None:
            self._log.sessions[key.session].seq -= 1
        return popped


@mutant(
    "history",
    "test_replace_tail_with_another_expected_last_seq_is_a_version_conflict_and_nothing_is_written",
    "test_of_concurrent_replacers_who_expect_the_same_number_one_wins",
)
class ReplacesWhateverIsThere(InMemoryTranscripts):
    """replace_tail does not look at the number of the newest message."""

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        rows = list(self._log.transcript(key.session, key.agent).values())
        actual = rows[-1].seq if rows else 0
        return await super().replace_tail(key, tail._replace(expected_last_seq=actual))


@mutant(
    "history",
    "test_replace_tail_with_an_id_that_stays_elsewhere_is_a_conflict_and_nothing_is_written",
)
class ReplacesOneAfterTheOther(InMemoryTranscripts):
    """replace_tail removes first, and then finds out that it cannot append."""

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        empty = tail._replace(entries=())
        last = await super().replace_tail(key, empty)
        return await super().replace_tail(key, tail._replace(expected_last_seq=last))


@mutant("history", "test_a_retry_of_replace_tail_has_no_further_effect")
class ARetryIsAConflict(InMemoryTranscripts):
    """A retry of replace_tail finds the number that it made itself, and is refused."""

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        rows = list(self._log.transcript(key.session, key.agent).values())
        actual = rows[-1].seq if rows else 0
        if actual != tail.expected_last_seq:
            raise VersionConflictError(
                "transcript", key.session, expected=tail.expected_last_seq, actual=actual
            )
        return await super().replace_tail(key, tail)
