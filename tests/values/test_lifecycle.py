from __future__ import annotations

import pytest

from holdfast.values.errors import IllegalTransitionError, InvalidInputError
from holdfast.values.lifecycle import (
    EDGES,
    TERMINAL,
    WAITING,
    Actor,
    TaskState,
    check_edge,
    check_state,
    is_legal,
)
from scripts.lifecycle_page import PAGE, page


def _next(state: TaskState) -> set[TaskState]:
    return {edge.to_state for edge in EDGES if edge.from_state is state}


def _reachable(start: set[TaskState]) -> set[TaskState]:
    seen: set[TaskState] = set()
    while start:
        seen |= start
        start = {after for state in start for after in _next(state)} - seen
    return seen


def test_nothing_leaves_a_terminal_state() -> None:
    assert [edge for edge in EDGES if edge.from_state in TERMINAL] == []


def test_every_live_state_can_reach_every_terminal_one() -> None:
    for state in set(TaskState) - TERMINAL:
        assert _reachable({state}) >= TERMINAL


def test_every_state_is_reached_from_the_start() -> None:
    start = {edge.to_state for edge in EDGES if edge.from_state is None}
    assert start == {TaskState.SUBMITTED}
    assert _reachable(start) == set(TaskState)


def test_there_is_one_edge_for_each_pair_of_states_and_none_leads_back_at_once() -> None:
    pairs = [(edge.from_state, edge.to_state) for edge in EDGES]
    assert len(set(pairs)) == len(pairs)
    assert all(before != after for before, after in pairs)


def test_only_a_worker_begins_work_and_only_from_the_queue() -> None:
    [claim] = [edge for edge in EDGES if edge.to_state is TaskState.WORKING]
    assert claim.from_state is TaskState.SUBMITTED
    assert claim.actors == {Actor.WORKER}


def test_a_client_moves_a_task_only_while_nobody_works_on_it() -> None:
    for edge in EDGES:
        if edge.from_state is TaskState.WORKING:
            assert Actor.CLIENT not in edge.actors


def test_recovery_touches_only_working_tasks_and_never_completes_one() -> None:
    taken = [edge for edge in EDGES if Actor.RECOVERY in edge.actors]
    assert {edge.from_state for edge in taken} == {TaskState.WORKING}
    assert TaskState.COMPLETED not in {edge.to_state for edge in taken}


def test_every_live_state_but_working_can_be_canceled_by_a_client() -> None:
    for state in set(TaskState) - TERMINAL - {TaskState.WORKING}:
        assert is_legal(state, TaskState.CANCELED, Actor.CLIENT)


def test_an_answer_leads_from_every_waiting_state_to_the_queue() -> None:
    for state in WAITING:
        assert is_legal(state, TaskState.SUBMITTED, Actor.CLIENT)


@pytest.mark.parametrize("before", [None, *TaskState])
@pytest.mark.parametrize("after", list(TaskState))
@pytest.mark.parametrize("actor", list(Actor))
def test_check_edge_agrees_with_the_table(
    before: TaskState | None, after: TaskState, actor: Actor
) -> None:
    allowed = any(
        (edge.from_state, edge.to_state) == (before, after) and actor in edge.actors
        for edge in EDGES
    )
    assert is_legal(before, after, actor) is allowed
    if allowed:
        check_edge("t1", before, after, actor)
        return
    with pytest.raises(IllegalTransitionError) as caught:
        check_edge("t1", before, after, actor)
    assert (caught.value.key, caught.value.to_state) == ("t1", after)
    assert caught.value.from_state == (before or "nothing")


def test_a_state_is_known_by_its_name() -> None:
    assert all(check_state("to", state.value) is state for state in TaskState)
    for unknown in ("", "done", "COMPLETED", None, 1, ["working"]):
        with pytest.raises(InvalidInputError, match="submitted, working"):
            check_state("to", unknown)


def test_the_reference_page_is_made_from_the_table() -> None:
    assert PAGE.read_text() == page(), "run python scripts/lifecycle_page.py"
