"""Workers, the service, Studio and the command line run sealed."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast import ANY_OWNER, ChatMessage, Settings, State, TaskRecord, TaskState
from holdfast.cli.commands import app
from holdfast.content import TextBlock, load_result
from tests.cli.command import start
from tests.engines.postgres_database import migrated_database
from tests.sealing.conftest import Place, rows_of
from tests.server.running import MODERN, example_app, http_client, serving
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

CANARY = "zanzibarquokka"
KEYS = "k1:" + bytes(range(32)).hex()
AGENTS = """
import asyncio, pathlib
import holdfast

app = holdfast.App("writer")

@app.handler
async def work(task):
    async def fetch(text):
        with pathlib.Path("journal").open("a") as journal:
            journal.write("fetched\\n")
        return text * 20_000

    pages = await task.step("fetch", fetch, task.message.text)
    await task.artifact("out.txt", task.message.text + "\\n", append=True)
    await task.state.update({"of": task.message.text})
    await task.memory.record("decision", {"use": task.message.text})
    await task.history.append(holdfast.ChatMessage.assistant(task.message.text))
    pathlib.Path(f"begun{task.fence}").touch()
    if task.fence == 1:
        await asyncio.sleep(3600)
    answer = await task.ask("Which " + task.message.text + "?", options=["this", "that"])
    return {"answer": answer, "pages": pages}
"""


async def _until(state: State, task: TaskRecord, wanted: TaskState) -> TaskRecord:
    async with asyncio.timeout(90):
        while True:
            found = await state.tasks.get(task.id, owner=ANY_OWNER)
            if found is not None and found.state is wanted:
                return found
            await asyncio.sleep(0.02)


async def _wait(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not reached():
            await asyncio.sleep(0.02)


async def _end(worker: subprocess.Popen[str]) -> None:
    worker.kill()
    await asyncio.to_thread(worker.wait)


async def test_a_sealed_worker_is_killed_and_another_takes_over(tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "agents.py").write_text, AGENTS)
    journal, begun = tmp_path / "journal", tmp_path / "begun1"

    def start_now(name: str) -> subprocess.Popen[str]:
        return start(
            tmp_path,
            *("worker", "agents:app", "--name", name, "--lease-seconds", "4"),
            *("--recovery-seconds", "0.2", "--poll-seconds", "0.2"),
            DATABASE_URL=url,
            HOLDFAST_SEAL="env:",
            HOLDFAST_KEYS=KEYS,
        )

    async with migrated_database() as url:
        settings = Settings(seal="env:", keys=KEYS, max_connections=4)
        async with holdfast.open(url, settings=settings) as state:
            task = await state.tasks.submit("writer", ChatMessage.user(CANARY), owner="ana")
            first = start_now("w1")
            try:
                await _wait(begun.exists)
            finally:
                await _end(first)
            second = start_now("w2")
            try:
                asked = await _until(state, task, TaskState.INPUT_REQUIRED)
                assert asked.status_message is not None
                assert asked.status_message.text == f"Which {CANARY}?"
                await state.for_owner("ana").tasks.respond(task.id, ChatMessage.user("this"))
                done = await _until(state, task, TaskState.COMPLETED)
            finally:
                await _end(second)
            assert done.fence == 3
            assert await asyncio.to_thread(journal.read_text) == "fetched\n"
            result = await load_result(state, done)
            assert result == {"answer": "this", "pages": CANARY * 20_000}
            [artifact] = done.artifacts
            assert artifact.parts == [TextBlock(f"{CANARY}\n")]
            said = await state.for_owner("ana").history.get_messages(
                "writer", session_id=task.session_id
            )
            # What the first worker appended is there once.
            assert [one.text for one in said if one.role == "assistant"].count(CANARY) == 1
            raw = await rows_of(url)
            assert task.id in raw
            assert CANARY not in raw
            assert CANARY.encode().hex() not in raw


async def test_the_service_and_studio_run_sealed(place: Place) -> None:
    state = await place.open()
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": f"file 9 {CANARY}"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    async with (
        serving(example_app(), state) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        found = (await http.post("/", json=body)).json()["result"]["task"]
        assert CANARY in json.dumps(found)
    async with Visitor(state) as visitor:
        assert CANARY in await visitor.page("/studio/tasks")
        assert CANARY in await visitor.page(f"/studio/tasks/{found['id']}")
        searched = await visitor.get("/studio/tasks?q=quokka")
        assert searched.status_code == 501
        assert "cannot be searched" in searched.text
    assert CANARY not in await place.dump()


async def test_the_command_line_shows_and_submits_sealed_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with migrated_database() as url:
        monkeypatch.delenv("STORAGE_TYPE", raising=False)
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("HOLDFAST_SEAL", "env:")
        monkeypatch.setenv("HOLDFAST_KEYS", KEYS)
        task = json.loads(await _run("tasks", "submit", "writer", CANARY, "--json"))["id"]
        assert CANARY in await _run("tasks", "list", "--json")
        assert CANARY in await _run("tasks", "show", task, "--json")
        assert "cannot be searched" in await _run("tasks", "list", "--text", "quokka", code=1)
        monkeypatch.delenv("HOLDFAST_SEAL")
        assert "HOLDFAST_SEAL" in await _run("tasks", "show", task, code=1)


async def _run(*args: str, code: int = 0) -> str:
    # The command has an event loop of its own.
    found = await asyncio.to_thread(CliRunner().invoke, app, args)
    assert found.exit_code == code, found.output
    return found.stdout if code == 0 else f"{found.output}{found.exception}"
