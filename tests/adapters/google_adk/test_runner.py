"""The services under ADK's own runner, in several processes, threads and loops."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

import holdfast
from holdfast import Settings
from holdfast.adapters.google_adk import HoldfastArtifactService, HoldfastSessionService
from holdfast.bench.round_trips import RoundTrips
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref
from tests.adapters.google_adk.agents import APP
from tests.engines.postgres import server
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
WHERE: dict[str, Any] = {"app_name": APP, "user_id": "ana", "session_id": "s1"}


async def _process(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.google_adk.agents", *arguments),
        stdout=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )


async def test_an_agent_goes_on_where_another_process_left(database: str) -> None:
    tenant, answers = new_ref(), []
    for prompt in ("the harbour of Riga", "and tomorrow?"):
        process = await _process("turn", database, tenant, prompt)
        out, _ = await process.communicate()
        assert process.returncode == 0
        answers.append(out.decode().strip())
    # The second turn reads the four events of the first, its prompt, its call and the result.
    assert answers == ["read 3, remembered 0", "read 7, remembered 1"]
    async with holdfast.open(database, tenant=tenant) as state:
        session = await HoldfastSessionService(state).get_session(**WHERE)
        assert session is not None
        assert session.state == {
            "noted": "and tomorrow?",
            "said": answers[1],
            "user:notes": 2,
        }
        assert [one.author for one in session.events] == ["user", "pilot", "pilot", "pilot"] * 2
        artifacts = HoldfastArtifactService(state)
        for version, text in enumerate(("the harbour of Riga", "and tomorrow?")):
            part = await artifacts.load_artifact(**WHERE, filename="note.txt", version=version)
            assert part == types.Part(text=text)


async def test_a_kill_leaves_no_event_without_its_states(database: str) -> None:
    tenant = new_ref()
    process = await _process("count", database, tenant)
    assert process.stdout is not None
    acknowledged = [int(await process.stdout.readline()) for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    more, _ = await process.communicate()
    acknowledged += [int(one) for one in more.decode().split()]
    async with holdfast.open(database, tenant=tenant) as state:
        service = HoldfastSessionService(state)
        session = await service.get_session(**WHERE)
        assert session is not None
        stored = [one.actions.state_delta["n"] for one in session.events]
        assert stored == list(range(len(stored)))
        assert len(acknowledged) <= len(stored) <= len(acknowledged) + 1
        last = stored[-1]
        assert session.state == {"n": last, "user:n": last, "app:n": last}
        await service.append_event(session, Event(author="user"))


async def test_any_thread_and_loop_may_use_a_service(database: str) -> None:
    def of_a_thread(service: HoldfastSessionService, name: str) -> None:
        async def work() -> None:
            session = await service.create_session(app_name=APP, user_id=name)
            for at in range(5):
                delta = {"n": at, f"app:{name}": at}
                event = Event(author="user", actions=EventActions(state_delta=delta))
                await service.append_event(session, event)

        asyncio.run(work())

    with Portal.open(database, tenant=new_ref()) as portal:
        service = HoldfastSessionService(portal)
        await asyncio.gather(*(asyncio.to_thread(of_a_thread, service, name) for name in "abc"))
        found = (await service.list_sessions(app_name=APP)).sessions
        assert sorted(one.user_id for one in found) == ["a", "b", "c"]
        assert {one.state["n"] for one in found} == {4}
        assert found[0].state == {"n": 4, "app:a": 4, "app:b": 4, "app:c": 4}


async def test_round_trips_on_the_wire(tmp_path: Path) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with empty_database() as url, trips.between(listen, behind.folder / listen.name):
        away = url.replace(str(behind.folder), str(tmp_path))
        settings = Settings(auto_migrate=True, max_connections=1)
        async with holdfast.open(away, settings=settings) as state:
            service = HoldfastSessionService(state)

            async def counted(name: str) -> dict[str, int]:
                where, found, before = {**WHERE, "session_id": name}, dict[str, int](), trips.count

                def count(call: str) -> None:
                    nonlocal before
                    found[call], before = trips.count - before, trips.count

                await service.create_session(**where)
                count("create")
                session = await service.get_session(**where)
                assert session is not None
                count("get")
                delta = {"a": 1, "user:a": 1, "app:a": 1}
                for call in ("append", "append again"):
                    event = Event(author="user", actions=EventActions(state_delta=delta))
                    await service.append_event(session, event)
                    count(call)
                await service.get_session(**where, config=GetSessionConfig(num_recent_events=0))
                count("get without events")
                await service.list_sessions(app_name=APP)
                count("list")
                await service.get_user_state(app_name=APP, user_id="ana")
                count("user state")
                await service.delete_session(**where)
                count("delete")
                return found

            # The first time, the statements are prepared.
            await counted("s1")
            assert await counted("s2") == {
                "create": 3,
                "get": 2,
                "append": 1,
                "append again": 1,
                "get without events": 1,
                "list": 1,
                "user state": 1,
                "delete": 3,
            }
