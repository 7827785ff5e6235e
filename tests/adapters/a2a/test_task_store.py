"""``HoldfastTaskStore`` beside the SDK's own store."""

from __future__ import annotations

import asyncio

import pytest
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import encode_page_token

from holdfast import ChatMessage, State
from holdfast.adapters.a2a import HoldfastTaskStore
from holdfast.errors import AlreadyExistsError, IllegalTransitionError
from tests.adapters.a2a import random_tasks
from tests.adapters.a2a.users import ANA, BO, call_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("seed", range(12))
async def test_random_saves_and_reads_are_those_of_the_sdks_store(state: State, seed: int) -> None:
    ours, theirs, random = HoldfastTaskStore(state), InMemoryTaskStore(), random_tasks.seeded(seed)
    for _ in range(25):
        name = random.choice(["t1", "t2", "t\n3", "holdfast.t4", ""])
        call = random.choice([ANA, ANA, call_of("")])
        owned = f"{name} of {call.user.user_name}"
        before = await theirs.get(owned, call)
        assert await ours.get(owned, call) == before
        if before is not None and random.random() < 0.1:
            await ours.delete(owned, call)
            await theirs.delete(owned, call)
            continue
        task = random_tasks.task(random, owned, before, live=True)
        await ours.save(task, call)
        await theirs.save(task, call)
        assert await ours.get(owned, call) == task
    for call in (ANA, BO, call_of("")):
        for size in (1, 3, 50):
            request = pb.ListTasksRequest(page_size=size)
            while True:
                mine, other = await ours.list(request, call), await theirs.list(request, call)
                assert mine == other
                if not other.next_page_token:
                    break
                request.page_token = other.next_page_token


async def test_filters_of_a_listing_are_those_of_the_sdk(state: State) -> None:
    ours, theirs, random = HoldfastTaskStore(state), InMemoryTaskStore(), random_tasks.seeded(7)
    for at in range(12):
        task = random_tasks.task(random, f"t{at}", None, live=False)
        task.status.state = pb.TaskState.Name(1 + at % 8)
        task.context_id = f"c{at % 3}"
        for store in (ours, theirs):
            await store.save(task, ANA)
    requests = [pb.ListTasksRequest(status=number) for number in pb.TaskState.values()]
    requests += [pb.ListTasksRequest(context_id=name) for name in ("c0", "c9", "c\n")]
    for nanoseconds in (0, 10**17, 5 * 10**17 + 1, 10**18):
        requests.append(pb.ListTasksRequest())
        requests[-1].status_timestamp_after.FromNanoseconds(nanoseconds)
    for request in requests:
        assert await ours.list(request, ANA) == await theirs.list(request, ANA)
    for name in ("t3", "t7"):
        earlier = pb.ListTasksRequest(page_token=encode_page_token(name), page_size=2)
        assert await ours.list(earlier, ANA) == await theirs.list(earlier, ANA)
    for token in ("nonsense", "eyJ0cyI6MX0", encode_page_token("t99"), "\u00e9"):
        with pytest.raises(InvalidParamsError):
            await theirs.list(pb.ListTasksRequest(page_token=token), ANA)
        with pytest.raises(InvalidParamsError):
            await ours.list(pb.ListTasksRequest(page_token=token), ANA)
    with pytest.raises(InvalidParamsError):
        await ours.list(pb.ListTasksRequest(page_token=encode_page_token("t3")), BO)


async def test_every_path_is_for_one_owner_and_one_tenant(state: State) -> None:
    store = HoldfastTaskStore(state)
    other = HoldfastTaskStore(state.for_tenant("other " + state.tenant))
    task = pb.Task(id="t1", context_id="c1", status=pb.TaskStatus(state=pb.TASK_STATE_WORKING))
    theirs = pb.Task(id="t1", context_id="c2")
    await store.save(task, ANA)
    await other.save(theirs, ANA)
    assert await store.get("t1", BO) is None
    assert (await store.list(pb.ListTasksRequest(), BO)).total_size == 0
    await store.delete("t1", BO)
    with pytest.raises(AlreadyExistsError):
        await store.save(theirs, BO)
    assert await store.get("t1", ANA) == task
    await other.delete("t1", ANA)
    assert await other.get("t1", ANA) is None
    assert await store.get("t1", ANA) == task


async def test_tasks_of_workers_and_of_other_agents_are_not_seen(state: State) -> None:
    mine = await state.tasks.submit("writer", ChatMessage.user("hello"), owner="ana")
    await HoldfastTaskStore(state, agent="other").save(pb.Task(id="t1"), ANA)
    store = HoldfastTaskStore(state, agent="writer")
    for name in (mine.id, "t1"):
        assert await store.get(name, ANA) is None
        await store.delete(name, ANA)
        assert await state.tasks.get(name) is not None


async def test_two_writers_at_once_both_end_and_one_of_them_is_last(state: State) -> None:
    store = HoldfastTaskStore(state)
    await store.save(pb.Task(id="t1", context_id="c1"), ANA)
    tasks = [pb.Task(id="t1", context_id="c1") for _ in range(6)]
    for at, task in enumerate(tasks):
        task.metadata.update({"n": at})
    await asyncio.gather(*(store.save(task, ANA) for task in tasks))
    assert await store.get("t1", ANA) in tasks


async def test_what_a_stored_task_cannot_become_is_an_error_and_nothing_is_written(
    state: State,
) -> None:
    store, random = HoldfastTaskStore(state), random_tasks.seeded(1)
    task = pb.Task(id="t1", artifacts=[random_tasks.artifact(random, name) for name in "ab"])
    await store.save(task, ANA)
    for names in ("a", "ba", "aba"):
        artifacts = [random_tasks.artifact(random, name) for name in names]
        with pytest.raises(InvalidParamsError, match="artifacts of task 't1'"):
            await store.save(pb.Task(id="t1", artifacts=artifacts), ANA)
    assert await store.get("t1", ANA) == task
    task.status.state = pb.TASK_STATE_COMPLETED
    await store.save(task, ANA)
    await store.save(task, ANA)
    again = pb.Task(id="t1", artifacts=task.artifacts)
    with pytest.raises(IllegalTransitionError):
        await store.save(again, ANA)
    assert await store.get("t1", ANA) == task
