from __future__ import annotations

from dataclasses import replace

from holdfast.engines.inmemory.schedules import InMemorySchedules
from holdfast.spi.schedules import ScheduleKey, ScheduleRun, StoredSchedule
from holdfast.spi.tasks.records import TaskSnapshot
from holdfast.values.ids import new_id
from tests.mutants.registry import mutant


@mutant(
    "schedules",
    "test_a_tick_makes_one_task_with_its_message_agent_owner_and_time",
    "test_each_tick_of_many_runs_makes_one_task_and_none_is_lost",
    "test_a_clock_that_is_set_back_runs_no_tick_twice",
    "test_missed_ticks_are_skipped_on_request_beyond_the_grace_time",
    "test_missed_ticks_make_one_task_on_request_for_the_last_of_them",
    "test_missed_ticks_make_a_task_each_on_request_up_to_the_limit",
    "test_a_tick_that_a_clients_clock_change_repeats_runs_once",
)
class TicksRunTwice(InMemorySchedules):
    """The tasks are submitted under new keys, and the schedule is not advanced."""

    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        row = self._rows[run.key]
        before = (row.stored.after, row.next_at)
        again = run._replace(drafts=[replace(one, submit_key=new_id()) for one in run.drafts])
        made = await super().run(again)
        if made:
            row.stored = row.stored._replace(after=before[0])
            row.next_at = before[1]
        return made


@mutant(
    "schedules",
    "test_each_tick_of_many_runs_makes_one_task_and_none_is_lost",
    "test_missed_ticks_make_a_task_each_on_request_up_to_the_limit",
    "test_a_clock_that_is_set_back_runs_no_tick_twice",
    "test_a_schedule_with_a_session_id_makes_all_its_tasks_in_that_context",
    "test_a_tick_that_a_clients_clock_change_skips_runs_after_the_gap",
    "test_a_tick_that_a_clients_clock_change_repeats_runs_once",
)
class TicksAreLost(InMemorySchedules):
    """The schedule advances past ticks whose tasks were not submitted."""

    async def run(self, run: ScheduleRun) -> list[TaskSnapshot]:
        return await super().run(run._replace(drafts=run.drafts[-1:]))


@mutant("schedules", "test_a_resumed_schedule_makes_no_tasks_for_the_time_of_its_pause")
class PausesAreCaughtUp(InMemorySchedules):
    """A resumed schedule runs the ticks of its pause."""

    async def set_paused(self, key: ScheduleKey, *, paused: bool) -> StoredSchedule:
        before = (await self.get(key)) if key in self._rows else None
        found = await super().set_paused(key, paused=paused)
        if before is not None and before.paused and not paused:
            row = self._rows[key]
            row.stored = row.stored._replace(after=before.after)
        return found
