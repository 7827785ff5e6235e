"""``HoldfastVersionedTaskStore`` and its stream, driven by the SDK's ``TaskManager``."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from a2a.server.cluster import ConcurrentTaskModificationError
from a2a.server.cluster.version import TaskVersion
from a2a.server.events.event_queue import Event
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_manager import TaskManager
from a2a.server.tasks.task_store import TaskStore
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError

from holdfast import State
from holdfast.adapters.a2a import HoldfastEventStream, HoldfastVersionedTaskStore
from tests.adapters.a2a import random_tasks
from tests.adapters.a2a.users import ANA, BO

pytestmark = pytest.mark.asyncio(loop_scope="session")
MISSING = TaskVersion.MISSING


def _manager(store: TaskStore | HoldfastVersionedTaskStore) -> TaskManager:
    return TaskManager(store, ANA, "t1", "c1", None)


def _event(
    random: Random, names: list[str]
) -> pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent:
    if random.random() < 0.5:
        event = pb.TaskStatusUpdateEvent(task_id="t1", context_id="c1")
        event.status.CopyFrom(random_tasks.status(random, live=True))
        # The SDK tells messages apart by their ids.
        event.status.message.message_id += f" {random.random()}"
        if random.random() < 0.3:
            event.metadata.update({"n": random.randrange(3)})
        return event
    name = random.choice(["a1", "a2", "a3"])
    made = random_tasks.artifact(random, name)
    event = pb.TaskArtifactUpdateEvent(
        task_id="t1", context_id="c1", artifact=made, last_chunk=random.random() < 0.3
    )
    event.append = name in names and random.random() < 0.6
    names.append(name)
    return event


@pytest.mark.parametrize("seed", range(8))
async def test_random_events_make_the_same_task_and_come_back_from_the_stream(
    state: State, seed: int
) -> None:
    random, names = random_tasks.seeded(seed), list[str]()
    store, theirs = HoldfastVersionedTaskStore(state), InMemoryTaskStore()
    mine, other = _manager(store), _manager(theirs)
    sent: list[tuple[Event, TaskVersion]] = []
    for _ in range(30):
        event = _event(random, names)
        if random.random() < 0.1:
            mine.invalidate()
        await mine.process(event)
        await other.process(event)
        sent.append((event, mine.current_version))
        stored = await store.get("t1", ANA)
        assert stored is not None
        assert stored.version == mine.current_version
        assert stored.task == await theirs.get("t1", ANA)
    stream = HoldfastEventStream(state).subscribe("t1", after=TaskVersion(2))
    for event, version in sent:
        versioned = await anext(stream)
        assert (versioned.event, versioned.version) == (event, version)
    await stream.aclose()


async def test_a_whole_task_comes_back_from_the_stream_whole(state: State) -> None:
    store, random = HoldfastVersionedTaskStore(state), random_tasks.seeded(3)
    version, tasks, before = MISSING, list[pb.Task](), None
    for _ in range(8):
        task = random_tasks.task(random, "t1", before, live=True)
        version = await store.save(task, event=task, prev_version=version, context=ANA)
        tasks.append(task)
        before = task
    stream = HoldfastEventStream(state).subscribe("t1", after=MISSING)
    assert [(await anext(stream)).event for _ in tasks] == tasks
    await stream.aclose()


async def test_a_subscriber_on_another_replica_sees_what_happens_until_the_end(
    state: State,
) -> None:
    manager = _manager(HoldfastVersionedTaskStore(state))
    working = pb.TaskStatus(state=pb.TASK_STATE_WORKING)
    await manager.process(pb.Task(id="t1", context_id="c1", status=working))
    stream = HoldfastEventStream(state).subscribe("t1", after=manager.current_version)
    waiting = asyncio.ensure_future(anext(stream))
    done = pb.TaskStatusUpdateEvent(task_id="t1", context_id="c1")
    done.status.state = pb.TASK_STATE_COMPLETED
    await manager.process(done)
    assert (await waiting).event == done
    assert [event async for event in stream] == []
    with pytest.raises(TaskNotFoundError):
        await anext(HoldfastEventStream(state).subscribe("t2", after=MISSING))


async def test_a_subscriber_that_is_cancelled_ends_at_once(state: State) -> None:
    await HoldfastVersionedTaskStore(state).save(
        pb.Task(id="t1"), event=None, prev_version=MISSING, context=ANA
    )
    stream = HoldfastEventStream(state).subscribe("t1", after=TaskVersion(2))
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_of_two_writers_at_once_one_is_told_that_the_other_came_first(state: State) -> None:
    store = HoldfastVersionedTaskStore(state)

    async def save(n: int, version: TaskVersion, event: Event | None = None) -> TaskVersion:
        task = pb.Task(id="t1", context_id="c1", status=pb.TaskStatus(state=pb.TASK_STATE_WORKING))
        task.metadata.update({"n": n})
        return await store.save(task, event=event, prev_version=version, context=ANA)

    for _ in range(3):
        stored = await store.get("t1", ANA)
        version = stored.version if stored else MISSING
        tried = await asyncio.gather(*(save(n, version) for n in range(4)), return_exceptions=True)
        assert sum(isinstance(one, TaskVersion) for one in tried) == 1
        assert sum(isinstance(one, ConcurrentTaskModificationError) for one in tried) == 3
    stored = await store.get("t1", ANA)
    assert stored is not None
    for late in (
        pb.TaskStatusUpdateEvent(task_id="t1", status=stored.task.status),
        pb.TaskArtifactUpdateEvent(task_id="t1", artifact=pb.Artifact(artifact_id="a")),
    ):
        with pytest.raises(ConcurrentTaskModificationError):
            await save(9, TaskVersion(1), late)
    assert await store.get("t1", ANA) == stored


async def test_a_cancel_overwrites_whatever_came_first_but_not_the_end(state: State) -> None:
    store = HoldfastVersionedTaskStore(state)
    canceled = pb.Task(id="t1", context_id="c1")
    canceled.status.state = pb.TASK_STATE_CANCELED
    event = pb.TaskStatusUpdateEvent(task_id="t1", context_id="c1", status=canceled.status)

    async def cancel() -> TaskVersion:
        return await store.save(canceled, event=event, prev_version=TaskVersion(1), context=ANA)

    with pytest.raises(ConcurrentTaskModificationError):
        await cancel()
    await store.save(
        pb.Task(id="t1", context_id="c1"), event=None, prev_version=MISSING, context=ANA
    )
    version = await cancel()
    stored = await store.get("t1", ANA)
    assert stored is not None
    assert (stored.task, stored.version) == (canceled, version)
    with pytest.raises(ConcurrentTaskModificationError):
        await cancel()
    await store.delete("t1", BO)
    assert await store.get("t1", ANA) == stored
    await store.delete("t1", ANA)
    assert await store.get("t1", ANA) is None
    with pytest.raises(ConcurrentTaskModificationError):
        await store.save(stored.task, event=None, prev_version=version, context=ANA)
