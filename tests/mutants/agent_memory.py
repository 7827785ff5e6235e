from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

from holdfast.contracts.working_memory import WorkingMemory
from holdfast.memory.agent_memory import StoredMemory
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.wakes import WakeStatus
from tests.mutants.registry import mutant


@mutant(
    "memory",
    "test_the_same_event_id_and_payload_again_is_a_no_op_that_returns_the_first_position",
    "test_the_same_event_id_and_payload_with_another_time_is_the_same_event_and_the_first_time_stays",
)
class RetryHasItsOwnTime(StoredMemory):
    """A retry returns the stored event with the time of the retry."""

    async def record(self, type: str, payload: Any, **how: Any) -> Any:
        found = await super().record(type, payload, **how)
        when = how.get("occurred_at") or getattr(payload, "created_at", None) or datetime.now(UTC)
        return dataclasses.replace(found, occurred_at=when)


@mutant("memory", "test_two_equal_records_without_an_event_id_stay_two")
class SameWordsAreOneEvent(StoredMemory):
    """What says the same as the newest event is taken for a retry of it."""

    async def record(self, type: str, payload: Any, **how: Any) -> Any:
        newest = await self.recent(1)
        if newest and not how and not isinstance(payload, ChatMessage):
            older = [one for one in await self.recent(5) if one.payload == payload]
            if older and older[-1].type == type:
                return older[-1]
        return await super().record(type, payload, **how)


@mutant("memory", "test_without_a_session_state_is_a_document_of_the_agents_own")
class OneDocumentForAllAgents(StoredMemory):
    """Without a session, all agents share one working document."""

    @property
    def state(self) -> WorkingMemory:
        found = super().state
        return found if self._session else dataclasses.replace(found, session_id="agent:")


@mutant("memory", "test_recall_finds_what_was_said_in_an_earlier_session",
        "test_a_message_of_the_transcript_is_recalled_too",
        "test_recall_is_narrowed_by_session_type_and_time",
        "test_hydrate_with_a_query_recalls_from_all_sessions",
        "test_assemble_puts_state_facts_and_recalled_events_before_the_recent_window",
        "test_assemble_shows_nothing_twice")  # fmt: skip
class RecallStaysInTheSession(StoredMemory):
    """recall looks into the memory's own session only."""

    async def recall(self, query: Any, limit: int = 5, **how: Any) -> Any:
        how["session_id"] = how.get("session_id") or self._session
        return await super().recall(query, limit, **how)


@mutant("memory", "test_record_many_refuses_an_event_of_another_agent_or_session")
class TakesAnybodysEvents(StoredMemory):
    """record_many makes another agent's event its own."""

    def _recordable(self, field: str, one: Any) -> Any:
        try:
            return super()._recordable(field, one)
        except InvalidInputError as error:
            if not error.field.endswith(".agent_id"):
                raise
            return dataclasses.replace(one, agent_id=self.agent_id)


@mutant("memory", "test_hydrate_knows_a_session_by_its_state_alone")
class EmptyIsNew(StoredMemory):
    """A session whose state is empty and that has no events counts as new."""

    async def hydrate(self, query: Any = None, **how: Any) -> Any:
        found = await super().hydrate(query, **how)
        if found.state or found.recent:
            return found
        return dataclasses.replace(found, status=WakeStatus.NEW)


@mutant("memory", "test_assemble_stays_within_its_budget",
        "test_assemble_reports_what_it_left_out_and_why")  # fmt: skip
class BudgetIsARoughGuide(StoredMemory):
    """assemble takes a tenth more than its budget."""

    async def assemble(self, query: str, budget_tokens: int, **how: Any) -> Any:
        found = await super().assemble(query, budget_tokens + budget_tokens // 10 + 10, **how)
        return dataclasses.replace(found, budget_tokens=budget_tokens)


@mutant(
    "memory", "test_the_same_event_id_with_another_payload_is_a_conflict_and_nothing_is_written"
)
class FirstWriterWins(StoredMemory):
    """Another payload under a known id is dropped without a word."""

    async def record(self, type: str, payload: Any, **how: Any) -> Any:
        try:
            return await super().record(type, payload, **how)
        except ConflictError:
            [known] = [one for one in await self.recent(100) if one.id == how.get("event_id")]
            return known
