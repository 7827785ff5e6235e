"""The SDK's ``DefaultRequestHandler`` on our stores."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from a2a.server.cluster.version import TaskVersion
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError

import holdfast
from examples.a2a_sdk_agent import message
from holdfast import Settings, State
from holdfast.adapters.a2a import (
    HoldfastEventStream,
    HoldfastPushStore,
    HoldfastTaskStore,
    HoldfastVersionedTaskStore,
)
from holdfast.bench.round_trips import RoundTrips
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref
from tests.adapters.a2a.agents import Agent, handler, with_artifact
from tests.adapters.a2a.users import ANA, BO
from tests.engines.postgres import server
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
ROOT = Path(__file__).parents[3]


def _text(task: pb.Task) -> str:
    return "".join(part.text for one in task.artifacts for part in one.parts)


@pytest.mark.parametrize("versioned", [True, False])
async def test_from_a_message_to_an_artifact(state: State, *, versioned: bool) -> None:
    async with aclosing(handler(state, Agent(), versioned=versioned)) as replica:
        request = message("tide?")
        config = request.configuration.task_push_notification_config
        config.id, config.url = "p1", "https://example.org/hook"
        done = await replica.on_message_send(request, ANA)
        assert isinstance(done, pb.Task)
        assert (done.status.state, _text(done)) == (pb.TASK_STATE_COMPLETED, "low tide at noon")
        assert [one.parts[0].text for one in done.history] == ["tide?", "one moment"]
        assert await replica.on_get_task(pb.GetTaskRequest(id=done.id), ANA) == done
        listed = await replica.on_list_tasks(pb.ListTasksRequest(include_artifacts=True), ANA)
        assert list(listed.tasks) == [done]
        for call in (
            replica.on_get_task(pb.GetTaskRequest(id=done.id), BO),
            replica.on_cancel_task(pb.CancelTaskRequest(id=done.id), BO),
        ):
            with pytest.raises(TaskNotFoundError):
                await call
        assert (await replica.on_list_tasks(pb.ListTasksRequest(), BO)).total_size == 0
        wanted = pb.ListTaskPushNotificationConfigsRequest(task_id=done.id)
        found = await replica.on_list_task_push_notification_configs(wanted, ANA)
        assert [one.url for one in found.configs] == ["https://example.org/hook"]
    stored = await state.tasks.get(done.id, owner="ana")
    assert stored is not None
    assert (stored.adopted, stored.state.value, stored.artifacts[0].complete) == (
        *(True, "completed"),
        versioned,
    )


async def test_a_replica_that_does_not_run_the_task_streams_it(state: State) -> None:
    agent = Agent(asyncio.Event())
    async with (
        aclosing(handler(state, agent)) as running,
        aclosing(handler(state, Agent())) as other,
    ):
        sending = asyncio.ensure_future(running.on_message_send(message("tide?"), ANA))
        await agent.halfway.wait()
        task = await with_artifact(state)
        stream = other.on_subscribe_to_task(pb.SubscribeToTaskRequest(id=task.id), ANA)
        first = await anext(stream)
        assert isinstance(first, pb.Task)
        assert _text(first) == "low tide "
        assert agent.wait is not None
        agent.wait.set()
        seen: list[Any] = [event async for event in stream]
        kinds = [type(event) for event in seen]
        assert kinds == [pb.TaskArtifactUpdateEvent, pb.TaskStatusUpdateEvent]
        assert seen[0].artifact.parts[0].text == "at noon"
        done = await sending
        assert isinstance(done, pb.Task)
        assert done.status.state == pb.TASK_STATE_COMPLETED


async def test_kill_9_between_two_chunks_leaves_what_was_acknowledged(database: str) -> None:
    tenant = new_ref()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.a2a.agents", database, tenant),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert worker.stdout is not None
    task_id = (await worker.stdout.readline()).decode().strip()
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    async with (
        holdfast.open(database, tenant=tenant) as state,
        aclosing(handler(state, Agent())) as replica,
    ):
        task = await replica.on_get_task(pb.GetTaskRequest(id=task_id), ANA)
        assert task is not None
        assert (task.status.state, _text(task)) == (pb.TASK_STATE_WORKING, "low tide ")
        assert await state.tasks.claim("w1") == []
        assert await state.tasks.recover_expired() == []
        stopped = await replica.on_cancel_task(pb.CancelTaskRequest(id=task_id), ANA)
        assert stopped is not None
        assert stopped.status.state == pb.TASK_STATE_CANCELED


def _in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


async def test_three_threads_and_two_loops_use_one_store(state: State) -> None:
    portal = Portal(state)
    store, push = HoldfastTaskStore(portal), HoldfastPushStore(portal)
    versioned = HoldfastVersionedTaskStore(portal)

    async def work(name: str) -> None:
        for at in range(10):
            task = pb.Task(id=f"{name} {at}", context_id="c1")
            await store.save(task, ANA)
            assert await store.get(task.id, ANA) == task
            await push.set_info("t1", pb.TaskPushNotificationConfig(id=task.id), ANA)
        task = pb.Task(id=f"{name} ends", context_id="c1")
        version = await versioned.save(
            task, event=None, prev_version=TaskVersion.MISSING, context=ANA
        )
        task.status.state = pb.TASK_STATE_COMPLETED
        await versioned.save(task, event=task, prev_version=version, context=ANA)
        stream = HoldfastEventStream(portal).subscribe(task.id, after=version)
        assert [one.event async for one in stream] == [task]

    threads = [_in_thread(partial(asyncio.run, work(name))) for name in "ab"]
    await work("own")
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert (await store.list(pb.ListTasksRequest(page_size=100), ANA)).total_size == 33
    assert len(await push.get_info("t1", ANA)) == 30


async def test_an_event_is_one_round_trip(tmp_path: Path) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with empty_database() as url, trips.between(listen, behind.folder / listen.name):
        away = url.replace(str(behind.folder), str(tmp_path))
        settings = Settings(auto_migrate=True, max_connections=1)
        async with holdfast.open(away, settings=settings) as state:
            store = HoldfastVersionedTaskStore(state)

            async def counted(name: str) -> list[int]:
                task, found = pb.Task(id=name, context_id="c1"), list[int]()
                version, before = TaskVersion.MISSING, trips.count
                status = pb.TaskStatusUpdateEvent(task_id=name, status=task.status)
                chunk = pb.TaskArtifactUpdateEvent(
                    task_id=name, artifact=pb.Artifact(artifact_id="a1")
                )
                for event in (None, status, chunk, task):
                    version = await store.save(task, event=event, prev_version=version, context=ANA)
                    found.append(trips.count - before)
                    before = trips.count
                    if event is chunk:
                        task.artifacts.append(chunk.artifact)
                await store.get(name, ANA)
                return [*found, trips.count - before]

            # The first time, the statements are prepared.
            await counted("t1")
            assert await counted("t2") == [1, 1, 1, 2, 1]
