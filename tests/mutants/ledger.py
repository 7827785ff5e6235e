from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from holdfast.contracts.tasks.ledger import Ledger
from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.push import FailedDelivery
from holdfast.spi.tasks.records import EntryKey, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import (
    StoredChunk,
    StoredMessage,
    StoredPush,
    StoredStep,
)
from holdfast.spi.tasks.workers import Outcome, StepDraft, TaskClaim
from holdfast.values.errors import ConflictError, LeaseLostError
from holdfast.values.lifecycle import TERMINAL, TaskState
from holdfast.values.owners import Owner
from holdfast.values.tasks.events import TaskEvent
from holdfast.values.tasks.records import Lease, TaskPage, TaskRecord
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_after_a_lease_is_taken_over_no_write_of_the_old_holder_takes_effect",
    "test_a_lease_with_another_fence_or_an_unknown_task_is_lost",
    "test_complete_many_completes_each_task_whose_lease_holds_and_leaves_the_others_alone",
    "test_a_mark_is_stored_only_while_the_lease_holds",
)
class FenceIsUnchecked(InMemoryLedger):
    """Whoever names a working task may write to it."""

    def _held(self, lease: Lease) -> TaskRow:
        row = self._data.tasks.get(lease.task_id)
        if row is None or row.state is not TaskState.WORKING:
            raise LeaseLostError("task", lease.task_id)
        return row


@mutant("tasks", "test_a_lease_that_expired_but_was_not_recovered_is_still_good")
class ExpiredLeaseIsLostByItself(InMemoryLedger):
    """The clock alone takes a lease away."""

    def _held(self, lease: Lease) -> TaskRow:
        row = super()._held(lease)
        if row.lease_expires_at is not None and row.lease_expires_at <= self._engine.now():
            raise LeaseLostError("task", row.id)
        return row


@mutant(
    "tasks",
    "test_an_expired_task_at_max_attempts_is_failed_with_the_reason",
    "test_attempts_never_exceed_max_attempts_however_workers_die",
    "test_every_change_of_state_is_logged_with_who_made_it_fence_attempt_and_note",
    "test_the_marks_of_a_task_are_due_however_it_ends",
)
class CrashIsNoAttempt(InMemoryLedger):
    """An attempt counts only when it is reported: a task may kill its workers for ever."""

    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        for task_id in self._data.working:
            row = self._data.tasks[task_id]
            if row.lease_expires_at is not None and row.lease_expires_at <= self._engine.now():
                row.attempts = max(row.attempts - 1, 0)
        return await super().recover_expired(limit)


@mutant(
    "tasks",
    "test_a_failed_attempt_at_max_attempts_ends_the_task_as_failed",
    "test_attempts_never_exceed_max_attempts_however_workers_die",
)
class FailedAttemptsGoOnForEver(InMemoryLedger):
    """A worker that reports a failed attempt may do so without end."""

    async def transition(self, lease: Lease, outcome: Outcome) -> TaskSnapshot:
        row = self._held(lease)
        limit, row.max_attempts = row.max_attempts, 10**6
        try:
            return await super().transition(lease, outcome)
        finally:
            row.max_attempts = limit


@mutant(
    "tasks",
    "test_a_cancel_that_was_requested_comes_before_whatever_the_worker_reports",
    "test_a_completion_that_races_a_cancel_never_wins_after_it",
    "test_a_cancel_requested_before_complete_many_wins",
)
class CompletionOverwritesCancel(InMemoryLedger):
    """A worker that is done is done, cancel or not."""

    def _settle(
        self, row: TaskRow, wanted: TaskState, note: str, event: str
    ) -> tuple[TaskState, str]:
        if wanted is TaskState.COMPLETED:
            return wanted, note
        return super()._settle(row, wanted, note, event)


@mutant(
    "tasks",
    "test_a_released_task_can_be_claimed_at_once_and_has_not_used_an_attempt",
    "test_what_was_recovered_or_released_goes_on_before_what_came_after_it",
)
class ReleaseCountsAnAttempt(Ledger):
    """A worker that shuts down uses up an attempt of what it hands back."""

    async def release(self, lease: Lease, *, note: str = "") -> TaskRecord:
        return await self.transition(lease, TaskState.SUBMITTED, note=note)


@mutant("tasks", "test_the_same_submit_key_with_the_same_content_is_the_same_task")
class SubmitKeyIsForgottenWithTheTask(InMemoryLedger):
    """A task that has ended does not count for its submit key any more."""

    def _submitted(self, draft: Draft, digest: str) -> TaskRow | None:
        known = super()._submitted(draft, digest)
        return None if known is not None and known.state in TERMINAL else known


@mutant(
    "tasks",
    "test_the_same_submit_key_with_other_content_is_a_conflict_and_nothing_is_written",
)
class SubmitContentIsNotCompared(InMemoryLedger):
    """A known submit key is the known task, whatever is submitted."""

    def _submitted(self, draft: Draft, digest: str) -> TaskRow | None:
        known, _ = self._data.keys.get((draft.owner, draft.submit_key), (digest, ""))
        return super()._submitted(draft, known)


@mutant("tasks", "test_20_concurrent_submits_with_one_submit_key_make_one_task")
class SubmitKeyIsLookedUpTooEarly(InMemoryLedger):
    """The submit key is looked up, and the task stored a moment later."""

    async def submit(self, draft: Draft) -> TaskSnapshot:
        key = (draft.owner, draft.submit_key)
        if key[1] and key not in self._data.keys:
            await asyncio.sleep(0)
            self._data.keys.pop(key, None)
        return await super().submit(draft)


@mutant(
    "tasks",
    "test_the_first_stored_result_of_a_step_wins",
    "test_a_step_without_a_digest_is_not_compared",
    "test_20_concurrent_results_of_one_step_store_one",
)
class LastStepResultWins(InMemoryLedger):
    """A step that is stored again has the new result."""

    async def record_step(self, lease: Lease, step: StepDraft) -> StoredStep:
        stored = replace(await super().record_step(lease, step), result=step.result)
        self._held(lease).steps[step.key] = stored
        return stored


@mutant("tasks", "test_a_terminal_task_can_be_neither_answered_nor_paused_nor_resumed")
class TerminalIsRevived(InMemoryLedger):
    """A task that has ended can be resumed."""

    def _resume(self, row: TaskRow, note: str) -> None:
        if row.state in TERMINAL:
            row.state = TaskState.PAUSED
        super()._resume(row, note)


@mutant("tasks", "test_a_claim_takes_at_most_one_task_of_a_context")
class BatchIgnoresContexts(InMemoryLedger):
    """A context is free for all tasks of one claim."""

    def _choose(self, claim: TaskClaim) -> list[TaskRow]:
        chosen = super()._choose(claim._replace(serial_contexts=False))
        serial = claim.serial_contexts
        return [row for row in chosen if not (serial and self._context(row).working)]


@mutant(
    "tasks",
    "test_a_context_at_work_is_skipped_until_its_task_leaves_working",
    "test_without_serial_contexts_tasks_of_one_context_run_side_by_side",
)
class OnlyTheBatchIsSerial(InMemoryLedger):
    """What was claimed before does not keep a context busy."""

    def _choose(self, claim: TaskClaim) -> list[TaskRow]:
        busy = {key: context.working for key, context in self._data.contexts.items()}
        for context in self._data.contexts.values():
            context.working = set()
        chosen = super()._choose(claim)
        for key, context in self._data.contexts.items():
            context.working = busy[key]
        return chosen


@mutant("tasks", "test_50_concurrent_claims_of_20_tasks_give_each_once")
class ClaimReadsThenWrites(InMemoryLedger):
    """Tasks are chosen, and taken a moment later."""

    async def claim(self, claim: TaskClaim) -> list[TaskSnapshot]:
        chosen = self._choose(claim._replace(agents=None, serial_contexts=True))
        await asyncio.sleep(0)
        claimed = await super().claim(claim)
        if claimed or not chosen or claim.worker == "w1":
            return claimed
        return [chosen[0].snapshot()]


@mutant("tasks", "test_another_owners_task_is_not_in_a_list")
class ContextShowsEveryOwnersTasks(Ledger):
    """A listing of a context forgets to ask whose the tasks are."""

    async def list(self, **how: Any) -> TaskPage:
        if how.get("session_id") is not None:
            how["owner"] = None
        return await super().list(**how)


@mutant("tasks", "test_another_owners_task_is_not_found_on_any_path")
class AnyTaskCanBeRetried(Ledger):
    """What is retried is not asked whose it is."""

    async def retry(self, task_id: str, **how: Any) -> TaskRecord:
        return await super().retry(task_id, **{**how, "owner": None})


@mutant("tasks", "test_the_numbers_of_the_log_run_from_one_without_a_gap")
class LogHasAGap(InMemoryLedger):
    """A resumed task leaves a number of its log out."""

    def _resume(self, row: TaskRow, note: str) -> None:
        row.transitions += row.state is TaskState.PAUSED
        super()._resume(row, note)


@mutant(
    "tasks",
    "test_the_first_chunk_of_a_later_attempt_replaces_what_an_earlier_attempt_wrote",
    "test_nothing_is_appended_after_the_last_chunk_of_an_attempt",
    "test_chunks_of_a_stored_step_are_put_back_among_those_of_a_later_attempt",
)
class LaterAttemptIsAppended(InMemoryLedger):
    """A resumed stream goes on where the dead one stopped: partial and full."""

    def _last(self, row: TaskRow, artifact_id: str) -> StoredChunk | None:
        held = row.chunks.get(artifact_id, [])
        return held[-1][0] if held else None


@mutant("tasks", "test_the_same_answer_twice_is_taken_once")
class AnswerCountsAgainOnceTheTaskWorks(InMemoryLedger):
    """A repeated answer is known only while the task has not been taken up again."""

    async def respond(
        self,
        key: TaskKey,
        answer: StoredMessage,
        result: str,
        form: str | None,
        by: str = "",
    ) -> TaskSnapshot | str:
        row = self._owned(*key)
        if row.state is TaskState.WORKING and answer.id in row.messages:
            raise ConflictError("message", answer.id)
        return await super().respond(key, answer, result, form, by)


@mutant(
    "tasks",
    "test_a_pause_that_was_requested_holds_a_task_on_its_way_to_the_queue",
    "test_an_expired_task_with_a_pause_requested_is_paused",
)
class PauseIsOnlyAHint(InMemoryLedger):
    """A requested pause is forgotten when the worker does not confirm it."""

    def _settle(
        self, row: TaskRow, wanted: TaskState, note: str, event: str
    ) -> tuple[TaskState, str]:
        reached, why = super()._settle(row, wanted, note, event)
        if reached is TaskState.PAUSED and wanted is TaskState.SUBMITTED:
            row.pause_requested = False
            return wanted, why
        return reached, why


@mutant("tasks", "test_a_messages_limit_of_zero_is_no_messages")
class HistoryLengthOfZeroIsAll(Ledger):
    """Nothing asked for is read as nothing said."""

    async def get(self, task_id: str, **how: Any) -> TaskRecord | None:
        how["messages_limit"] = how.get("messages_limit") or None
        return await super().get(task_id, **how)


@mutant(
    "tasks",
    "test_follow_from_a_cursor_repeats_nothing_and_misses_nothing",
    "test_follow_of_an_ended_task_ends_at_once",
)
class FollowRepeatsTheCursor(Ledger):
    """A resumed stream begins with the event that was seen last."""

    async def follow(
        self, task_id: str, *, after_seq: int = 0, owner: Owner = None
    ) -> AsyncIterator[TaskEvent]:
        async for event in super().follow(task_id, after_seq=max(after_seq - 1, 0), owner=owner):
            yield event


@mutant("tasks", "test_a_late_failure_report_does_not_disturb_the_next_claimer")
class FailureReportsAreNotFenced(InMemoryLedger):
    """Who lost a delivery can still put it off."""

    async def mark_failed(self, key: EntryKey, failure: FailedDelivery) -> bool:
        delivery = self._data.lanes.get(key[:2], {}).get(key.seq)
        attempts = failure.attempts if delivery is None else delivery.attempts
        return await super().mark_failed(key, failure._replace(attempts=attempts))


@mutant("tasks", "test_deleting_a_push_config_removes_its_deliveries")
class DeletedPushConfigStillHears(InMemoryLedger):
    """What was on its way to a deleted push config waits for the next of that name."""

    async def delete_push_config(self, key: TaskKey, config_id: str) -> bool:
        lane = self._data.lanes.pop((key.task_id, config_id), None)
        deleted = await super().delete_push_config(key, config_id)
        if lane is not None:
            self._kept = {(key.task_id, config_id): lane}
        return deleted

    async def upsert_push_config(
        self, key: TaskKey, config: StoredPush, max_configs: int | None
    ) -> bool:
        done = await super().upsert_push_config(key, config, max_configs)
        self._data.lanes.update(getattr(self, "_kept", {}))
        return done


@mutant("tasks", "test_a_task_whose_lease_has_not_expired_is_not_recovered")
class RecoveryIsHasty(InMemoryLedger):
    """A lease is taken back a moment before it expires."""

    async def recover_expired(self, limit: int) -> list[TaskSnapshot]:
        now = self._engine.now()
        for task_id in self._data.working:
            row = self._data.tasks[task_id]
            until = row.lease_expires_at
            if until is not None and now < until <= now + timedelta(seconds=0.5):
                row.lease_expires_at = now
        return await super().recover_expired(limit)
