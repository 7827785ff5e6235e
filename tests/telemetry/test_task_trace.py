"""The span that submitted a task: stored with it, hidden, bounded, and no part of its identity."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

import holdfast
from holdfast import ChatMessage, State
from holdfast.errors import ConflictError, InvalidInputError
from holdfast.spi.tasks.records import StoredTask, TaskSnapshot
from holdfast.values.identity import AgentId
from holdfast.values.tasks.new_task import NewTask
from holdfast.values.tasks.reports import StatusReport
from holdfast.values.tasks.trace import TRACE_KEY, check_traceparent, take_traceparent
from tests.engines.postgres_database import migrated_database
from tests.telemetry.spans import Kept

pytestmark = pytest.mark.asyncio(loop_scope="session")
HELLO = ChatMessage.user("hello")
FORGED = {TRACE_KEY: f"00-{'a' * 32}-{'b' * 16}-01"}


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[tuple[State, Kept]]:
    kept = Kept()
    if request.param == "memory":
        async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
            yield state, kept
        return
    async with (
        migrated_database() as url,
        holdfast.open(url, telemetry=kept.telemetry) as state,
    ):
        yield state, kept


def _traceparent(span: Any) -> str:
    found = span.get_span_context()
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


async def test_a_task_keeps_the_span_of_its_submit_and_shows_only_its_own_metadata(
    opened: tuple[State, Kept],
) -> None:
    state, kept = opened
    made = await state.tasks.submit("writer", HELLO, metadata={"a": 1})
    [span] = await kept.ended()
    assert made.traceparent == _traceparent(span)
    read = await state.tasks.get(made.id)
    assert read is not None
    assert (read.metadata, read.traceparent) == ({"a": 1}, made.traceparent)
    [claimed] = await state.tasks.claim("w1")
    assert (claimed.task.metadata, claimed.task.traceparent) == ({"a": 1}, made.traceparent)
    [listed] = (await state.tasks.list()).tasks
    assert listed.metadata == {"a": 1}


async def test_many_tasks_and_a_repeated_one_are_traced_too(opened: tuple[State, Kept]) -> None:
    state, kept = opened
    made = await state.tasks.submit_many([NewTask("writer", HELLO)] * 2)
    assert {one.traceparent for one in made} == {_traceparent((await kept.ended())[-1])}
    await state.tasks.cancel(made[0].id)
    again = await state.tasks.retry(made[0].id)
    assert again.traceparent == _traceparent((await kept.ended())[-1])
    assert again.metadata == {}


async def test_a_retry_in_another_span_or_without_any_is_the_same_submit(
    opened: tuple[State, Kept],
) -> None:
    state, kept = opened
    plain = State(state._connections, state.tenant, owns=False)
    first = await state.tasks.submit("writer", HELLO, submit_key="k1", metadata={"a": 1})
    again = await state.tasks.submit("writer", HELLO, submit_key="k1", metadata={"a": 1})
    assert (again.id, again.traceparent) == (first.id, first.traceparent)
    with kept.tracer.start_as_current_span("another trace"):
        third = await plain.tasks.submit("writer", HELLO, submit_key="k1", metadata={"a": 1})
    assert third.id == first.id
    state._connections.tracing = None
    untraced = state.for_tenant(state.tenant)
    fourth = await untraced.tasks.submit("writer", HELLO, submit_key="k1", metadata={"a": 1})
    assert (fourth.id, fourth.metadata) == (first.id, {"a": 1})
    with pytest.raises(ConflictError):
        await untraced.tasks.submit("writer", HELLO, submit_key="k1", metadata={"a": 2})


async def test_nobody_can_choose_the_stored_span(opened: tuple[State, Kept]) -> None:
    state, _ = opened
    [parent] = [await state.tasks.submit("writer", HELLO)]
    [claimed] = await state.tasks.claim("w1")
    assert claimed.task.id == parent.id
    step = holdfast.spi.StepKey("child", kind="child")
    calls: list[Any] = [
        state.tasks.submit("writer", HELLO, metadata=FORGED),
        state.tasks.submit_many([NewTask("writer", HELLO, metadata=FORGED)]),
        state.tasks.submit_child(claimed.lease, step, "reader", HELLO, metadata=FORGED),
        state.tasks.adopt("t1", agent="writer", metadata=FORGED),
        state.tasks.adopt("t1", agent="writer", reports=[StatusReport("working", metadata=FORGED)]),
        state.schedules.upsert("s1", "* * * * *", agent="writer", message=HELLO, metadata=FORGED),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=TRACE_KEY):
            await call
    assert len((await state.tasks.list()).tasks) == 1


@pytest.mark.parametrize(
    "odd",
    [
        *("", "00-a-b-01", f"01-{'a' * 32}-{'b' * 16}-01", f"00-{'A' * 32}-{'b' * 16}-01"),
        *(f"00-{'a' * 32}-{'b' * 16}-01\n", f"00-{'a' * 32}-{'b' * 16}-011", "x" * 10_000, 7, None),
    ],
)
async def test_stored_text_that_is_no_span_is_ignored_and_never_written(odd: Any) -> None:
    with pytest.raises(InvalidInputError, match="traceparent"):
        check_traceparent(odd)
    assert take_traceparent({TRACE_KEY: odd}) == ""


async def test_a_record_hides_the_key_whatever_is_stored_under_it() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    text = f'{{"a": 1, "{TRACE_KEY}": [1, 2]}}'
    task = StoredTask("t1", "c1", "", AgentId("", "writer"), text, 5, "", "", now, now)
    found = TaskSnapshot(task).load()
    assert (found.metadata, found.traceparent) == ({"a": 1}, "")
