from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from holdfast.contracts.episodes import EpisodicMemory
from holdfast.engines.inmemory.episodes import InMemoryEpisodes
from holdfast.spi.episodes import NearestEvents
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.id_page import IdPage
from holdfast.values.errors import InvalidInputError
from holdfast.values.events import Session
from holdfast.values.filters import matches
from tests.mutants.registry import mutant


@mutant("episodes", "test_order_within_a_session_is_epoch_and_seq_never_a_clock")
class OrderByClock(EpisodicMemory):
    """A session is read in the order of its events' times."""

    async def recent(self, agent_id: Any, **how: Any) -> Any:
        found = await super().recent(agent_id, **how)
        return sorted(found, key=lambda event: event.occurred_at)


@mutant("episodes", "test_between_takes_the_start_and_leaves_the_end")
class BetweenTakesTheEnd(EpisodicMemory):
    """between takes in what happened at the end of the span."""

    async def between(self, agent_id: Any, start: Any, end: Any, **how: Any) -> Any:
        found = await super().between(agent_id, start, end, **how)
        if found and len(found) < how.get("limit", 1000):
            later = await super().recent(agent_id, session_id=how.get("session_id"))
            found += [event for event in later if event.occurred_at == end]
        return found


@mutant("episodes", "test_an_empty_list_of_types_is_an_empty_result")
class NoTypesAreAllTypes(EpisodicMemory):
    """An empty list of types is taken for every type."""

    async def clear(self, session_id: str, **how: Any) -> int:
        how["types"] = how.get("types") or None
        return await super().clear(session_id, **how)


@mutant("episodes", "test_cleared_events_are_never_recalled")
class ClearLeavesTheIndex(EpisodicMemory):
    """clear forgets that recall holds a copy of its own."""

    async def recall(self, agent_id: Any, query: Any, **how: Any) -> Any:
        hits = await super().recall(agent_id, query, **how)
        if not isinstance(query, str) or how:
            return hits
        held = self.__dict__.setdefault("held", {}).setdefault(query, {})
        held |= {hit.event.id: hit for hit in hits}
        return list(held.values())


@mutant("episodes", "test_the_same_id_and_body_again_is_a_no_op_that_returns_the_first_position")
class RetryReturnsNoPlace(EpisodicMemory):
    """A retry answers with what was sent, not with what is stored."""

    async def append(self, events: Any, *, embeddings: Any = None, patches: Any = ()) -> Any:
        fresh = await super().append(events, embeddings=embeddings, patches=patches)
        seen: set[str] = getattr(self, "_seen", set())
        answer = [dataclasses.replace(one, seq=0) if one.id in seen else one for one in fresh]
        self._seen = seen | {one.id for one in fresh}
        return answer


@mutant("episodes", "test_a_batch_is_contiguous_in_each_of_its_sessions",
        "test_a_batch_is_atomic_one_bad_event_and_none_is_stored",
        "test_the_same_id_with_another_body_is_a_conflict_and_nothing_is_written")  # fmt: skip
class EventByEvent(EpisodicMemory):
    """A batch is stored event by event."""

    async def append(self, events: Any, *, embeddings: Any = None, patches: Any = ()) -> Any:
        if embeddings is not None or patches:
            return await super().append(events, embeddings=embeddings, patches=patches)
        stored: list[Any] = []
        for at, event in enumerate(events):
            try:
                stored += await super().append([event])
            except InvalidInputError as error:
                field = error.field.replace("events[0]", f"events[{at}]")
                raise InvalidInputError(field, "refused") from error
            await asyncio.sleep(0)
        return stored


@mutant("episodes", "test_a_session_has_the_subject_that_it_was_started_with",
        "test_a_fork_is_about_the_subject_of_its_session")  # fmt: skip
class SubjectsAreNotStored(InMemoryEpisodes):
    """A session forgets whom it is about."""

    async def start_session(self, *args: Any) -> Any:
        return await super().start_session(*args[:3])


@mutant("episodes", "test_a_session_with_the_id_of_a_deleted_one_has_its_subject")
class DeletedSessionsHaveNoSubject(InMemoryEpisodes):
    """A deletion forgets whom a session was about."""

    async def delete_session(self, session: str) -> Any:
        gone = self._log.sessions.get(session)
        deleted = await super().delete_session(session)
        if gone is not None:
            self._log.forget_subject(gone.subject)
        return deleted


@mutant(
    "episodes",
    "test_starting_a_session_about_another_subject_is_a_conflict_and_nothing_is_changed",
)
class TheFirstSubjectStays(InMemoryEpisodes):
    """A start of a session about somebody else keeps the first subject, and says nothing."""

    async def start_session(self, session: str, *args: Any) -> Any:
        there = session in self._log.sessions
        return await super().start_session(session, *(args[:2] if there else args))


@mutant("episodes", "test_a_subject_that_is_not_an_id_is_refused_and_no_session_is_started")
class AnySubject(EpisodicMemory):
    """Any subject is taken."""

    async def start_session(self, agent_id: Any, session_id: Any = None, **how: Any) -> Any:
        try:
            return await super().start_session(agent_id, session_id, **how)
        except InvalidInputError:
            return await super().start_session(agent_id, session_id)


@mutant("episodes", "test_end_session_keeps_the_first_end")
class EndMovesTheEnd(InMemoryEpisodes):
    """Ending a session again moves its end."""

    async def end_session(self, session: str) -> Any:
        if session in self._log.sessions:
            self._log.sessions[session].ended_at = None
        return await super().end_session(session)


@mutant(
    "episodes",
    "test_the_same_id_and_body_with_another_time_is_the_same_event_and_the_first_time_stays",
)
class ARetryReturnsItsOwnTime(InMemoryEpisodes):
    """The log keeps the first event, and the caller gets the time of the retry."""

    async def append(self, entries: Any, vectors: Any, patches: Any = ()) -> Any:
        stored = await super().append(entries, vectors, patches)
        return [
            PositionedEntry.of(one.entry, one.epoch, one.seq, given.occurred_at)
            for one, given in zip(stored, entries, strict=True)
        ]


@mutant("episodes", "test_recent_returns_as_many_as_asked_for_whenever_so_many_pass")
class WhereAfterTheLimit(InMemoryEpisodes):
    """The newest are taken first, and filtered then."""

    async def recent(self, scope: Any, limit: int | None, after_seq: int = 0) -> Any:
        passing = await super().recent(scope, len(self._rows(scope)))
        newest = await super().recent(dataclasses.replace(scope, where=None), limit, after_seq)
        return [one for one in newest if one in passing]


@mutant("episodes", "test_all_agents_are_those_of_the_owner_who_asks_or_those_that_nobody_owns",
        "test_all_agents_of_any_owner_are_those_of_the_tenant")  # fmt: skip
class AllAgentsOfAllOwners(InMemoryEpisodes):
    """All agents are those of the tenant, whoever asks."""

    async def between(self, scope: Any, after: Any, limit: int) -> Any:
        return await super().between(dataclasses.replace(scope, owner=None), after, limit)


@mutant("episodes", "test_recall_of_more_than_100_agents_is_refused_and_the_error_names_the_fix")
class RecallOfAnyNumberOfAgents(InMemoryEpisodes):
    """recall by a vector searches any number of agents."""

    async def nearest(self, scope: Any, vector: Any, limit: int) -> Any:
        try:
            return await super().nearest(scope, vector, limit)
        except InvalidInputError:
            return NearestEvents(None, [])


@mutant("episodes", "test_where_has_the_limits_of_every_filter")
class WhereWithoutLimits(EpisodicMemory):
    """A filter of payloads has no limit."""

    def use_limits(self, limits: Any) -> None:
        super().use_limits(dataclasses.replace(limits, filter_terms=0))


@mutant("episodes", "test_where_sees_the_scalars_at_the_top_level_of_a_payload_and_nothing_else",
        "test_where_does_not_see_a_text_of_more_than_256_bytes")  # fmt: skip
class WhereSeesTheWholePayload(InMemoryEpisodes):
    """A filter sees lists, objects and long texts too."""

    async def recent(self, scope: Any, limit: int | None, after_seq: int = 0) -> Any:
        if scope.where is None:
            return await super().recent(scope, limit, after_seq)
        every = await super().recent(dataclasses.replace(scope, where=None), None)
        passing = [one for one in every if matches(scope.where, one.payload)]
        return passing[max(len(passing) - (limit or 0), 0) :]


@mutant(
    "episodes",
    "test_a_fork_has_the_log_of_its_session_up_to_a_number_and_goes_on_from_there",
    "test_a_fork_is_recalled_by_words_and_by_the_vectors_of_its_writers",
    "test_a_fork_names_its_session_and_the_number_also_after_that_session_is_deleted",
    "test_a_fork_that_is_repeated_is_the_same_fork",
    "test_a_fork_into_a_session_that_is_or_was_another_is_a_conflict_and_nothing_is_written",
)
class ForksWhole(InMemoryEpisodes):
    """fork copies the whole log, whatever number is given."""

    async def fork(self, session: str, at: int | None, into: str) -> Session:
        del at
        return await super().fork(session, None, into)


@mutant("episodes", "test_delete_session_removes_the_session_and_its_log_and_nothing_of_another")
class DeleteLeavesTheLog(InMemoryEpisodes):
    """delete_session removes the record, and recall still finds the events."""

    async def delete_session(self, session: str) -> bool:
        return self._log.sessions.pop(session, None) is not None


@mutant("episodes", "test_sequence_numbers_are_never_reused_after_delete_session")
class DeleteForgetsTheCounter(InMemoryEpisodes):
    """A session that is created again begins at 1."""

    async def delete_session(self, session: str) -> bool:
        found = self._log.sessions.get(session)
        if found is not None:
            found.seq = 0
        return await super().delete_session(session)


@mutant(
    "episodes",
    "test_a_session_created_again_after_delete_session_has_nothing_of_the_old_one",
    "test_delete_session_is_idempotent_and_says_whether_there_was_one",
)
class DeleteIsClear(InMemoryEpisodes):
    """delete_session leaves the record of the session."""

    async def delete_session(self, session: str) -> bool:
        self._log.clear(session)
        return session in self._log.sessions


@mutant("episodes", "test_sessions_are_listed_by_last_activity_in_pages")
class ActivityIsTheNewestTime(InMemoryEpisodes):
    """Sessions are listed by their start, whatever was asked for."""

    async def list_sessions(self, scope: Any, limit: int, after: Any) -> Any:
        found = await super().list_sessions(scope, 10**9, after)
        found.sort(key=lambda one: (one.started_at, one.id), reverse=True)
        return found[:limit]


@mutant(
    "episodes",
    "test_sessions_of_all_agents_are_those_of_the_owner_who_asks_or_those_that_nobody_owns",
)
class SessionsOfAllOwners(InMemoryEpisodes):
    """Sessions of all agents are those of the tenant, whoever asks."""

    async def list_sessions(self, scope: Any, limit: int, after: Any) -> Any:
        return await super().list_sessions(dataclasses.replace(scope, owner=None), limit, after)


@mutant("episodes", "test_after_seq_skips_the_events_up_to_that_position")
class AfterSeqTakesThePosition(InMemoryEpisodes):
    """after_seq returns the event at that position too."""

    async def recent(self, scope: Any, limit: int | None, after_seq: int = 0) -> Any:
        return await super().recent(scope, limit, max(after_seq - 1, 0))


@mutant("episodes", "test_get_returns_events_by_their_ids_in_the_order_of_the_ids")
class GetInTheOrderOfTheLog(EpisodicMemory):
    """get returns events in the order of the log."""

    async def get(self, session_id: str, ids: list[str]) -> Any:
        return sorted(await super().get(session_id, ids), key=lambda one: one.seq)


@mutant("episodes", "test_a_conflict_of_an_event_leaves_all_states_as_they_were")
class StatesFirst(InMemoryEpisodes):
    """The states are patched before the events are checked."""

    async def append(self, entries: Any, vectors: Any, patches: Any = ()) -> Any:
        for write, expected in patches:
            self._states.check(write, expected)
            self._states.put(write)
        return await super().append(entries, vectors)


@mutant("episodes", "test_a_patch_of_another_version_is_a_version_conflict_and_no_event_is_stored")
class EventsFirst(InMemoryEpisodes):
    """The events are stored before the versions of the states are compared."""

    async def append(self, entries: Any, vectors: Any, patches: Any = ()) -> Any:
        stored = await super().append(entries, vectors)
        if patches:
            await super().append((), None, patches)
        return stored


@mutant("episodes", "test_a_retry_whose_events_are_all_stored_patches_nothing_again")
class ARetryPatchesAgain(InMemoryEpisodes):
    """Every append patches, also a retry."""

    async def append(self, entries: Any, vectors: Any, patches: Any = ()) -> Any:
        for write, expected in patches:
            self._states.check(write, expected)
        stored = await super().append(entries, vectors)
        for write, _ in patches:
            self._states.put(write)
        return stored


@mutant("episodes", "test_listed_agents_are_those_of_the_owner_who_asks_or_those_that_nobody_owns")
class ListsAgentsOfEveryOwner(InMemoryEpisodes):
    """The page of a tenant has the agents of its owners too."""

    async def agents(self, page: IdPage) -> list[str]:
        return await super().agents(dataclasses.replace(page, other=""))


@mutant("episodes", "test_deleted_events_are_never_recalled_nor_in_a_transcript")
class DeletesFromTheLogAlone(InMemoryEpisodes):
    """A deleted event stays in the index of words."""

    async def delete_events(self, session: str, ids: list[str]) -> int:
        record = self._log.sessions.get(session)
        rows = [record.rows[one] for one in ids if one in record.rows] if record else []
        for row in rows:
            assert record is not None
            del record.rows[row.id]
        return len(rows)
