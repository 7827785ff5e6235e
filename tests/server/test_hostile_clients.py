"""A real service process, driven by the worst clients that we know and by a fuzzer."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import holdfast
from holdfast import State, TaskState
from holdfast.values.ids import new_ref
from tests.server.fuzzing import Fuzzer, Request
from tests.server.running import MODERN, http_client
from tests.server.test_hostile_requests import BODIES, PATHS, SENDS
from tests.server.test_push_faults import IMPOSSIBLE, Hanging, _answering

pytestmark = pytest.mark.asyncio(loop_scope="session")
REQUESTS_PER_RUN = 2_000
MOST_GROWTH_BYTES = 64 * 1024 * 1024
HALF_OPEN = 320
JSON = {"Content-Type": "application/json"}
AGENT = """
import holdfast
app = holdfast.App("victim")
@app.handler
async def work(task: holdfast.TaskContext) -> str:
    await task.state.update({"seen": task.message.id})
    if task.message.text == "ask":
        await task.ask("which?")
    return "done"
"""


@dataclass(frozen=True)
class Victim:
    """A service process, its log, and a client with a key of it."""

    process: asyncio.subprocess.Process
    url: str
    log: Path
    state: State
    http: httpx.AsyncClient

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    @property
    def rss_bytes(self) -> int:
        """How much memory it has now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        [found] = [line for line in lines if line.startswith("VmRSS:")]
        return int(found.split()[1]) * 1024

    async def send(self, text: str, **fields: Any) -> httpx.Response:
        """A message of a user."""
        message = {"messageId": new_ref(), "role": "ROLE_USER", "parts": [{"text": text}]}
        return await self.http.post("/message:send", json={"message": message | fields})


@asynccontextmanager
async def _victim(folder: Path, database: str) -> AsyncIterator[Victim]:
    (folder / "agents.py").write_text(AGENT)
    kept = {name: value for name, value in os.environ.items() if "HOLDFAST" not in name}
    tenant, log = new_ref(), folder / "log"
    settings = {
        "DATABASE_URL": database,
        "HOLDFAST_TENANT": tenant,
        "HOLDFAST_PUSH_ALLOW_PRIVATE": "1",
    }
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast.cli", "serve", "agents:app", "--port", "0"),
            *("--auth", "--log-json", "--drain-seconds", "5"),
            cwd=folder,
            env=kept | settings,
            stderr=written,
        )
    try:
        async with holdfast.open(database, tenant=tenant) as state:
            key = (await state.keys.create("mallory", scope="operator")).text
            url = await _url(process, log)
            headers = MODERN | {"Authorization": f"Bearer {key}"}
            async with http_client(base_url=url, headers=headers, timeout=120) as http:
                yield Victim(process, url, log, state, http)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8")


async def _url(process: asyncio.subprocess.Process, log: Path) -> str:
    async with asyncio.timeout(60):
        while True:
            text = _read(log)
            assert process.returncode is None, text
            if "serving on " in text:
                return text.partition("serving on ")[2].partition(",")[0]
            await asyncio.sleep(0.05)


async def _named_attacks(victim: Victim, hanging: str) -> None:
    """Each request that once broke something."""
    # Push configs that nothing can be sent to: in the database already, and from a client.
    push = [holdfast.PushConfig(f"p{at}", url) for at, url in enumerate((*IMPOSSIBLE, hanging))]
    hooked = holdfast.ChatMessage.user("hooked")
    await victim.state.tasks.submit("victim", hooked, owner="mallory", push=push)
    for url in IMPOSSIBLE:
        config = {"configuration": {"taskPushNotificationConfig": {"url": url}}}
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
        refused = await victim.http.post("/message:send", json={"message": message} | config)
        assert refused.status_code == 400
    # The session in which the runtime once kept its marks.
    for reserved in ("holdfast.cleanup", "holdfast.", "holdfast.x"):
        assert (await victim.send("x", contextId=reserved)).status_code < 500
    # What does not fit, is too much, or leads nowhere.
    for given in SENDS.values():
        answer = await victim.http.post("/message:send", content=json.dumps(given), headers=JSON)
        assert answer.status_code in {400, 404}
    for body in BODIES.values():
        assert (await victim.http.post("/", content=body, headers=JSON)).status_code == 200
    for method, path, code in PATHS.values():
        assert (await victim.http.request(method, path)).status_code in {code, 400, 404}
    many = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}] * 100_000}
    assert (await victim.http.post("/message:send", json={"message": many})).status_code == 400
    await _endless_body(victim)
    await _revoked_streams(victim)


async def _endless_body(victim: Victim) -> None:
    """A GET whose body does not end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", victim.port)
    key = victim.http.headers["authorization"]
    head = f"GET /tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\n"
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with suppress(OSError):
        for _ in range(500):
            writer.write(chunk)
            await writer.drain()
        raise AssertionError("500 MiB were taken")
    with suppress(OSError):
        await reader.read()
    writer.close()


async def _revoked_streams(victim: Victim) -> None:
    """Streams of a key that ends while they are open."""
    made = await victim.state.keys.create("mallory")
    task = (await victim.send("ask")).json()["task"]["id"]
    headers = {"Authorization": f"Bearer {made.text}"}
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(
                victim.http.stream("GET", f"/tasks/{task}:subscribe", headers=headers)
            )
            for _ in range(5)
        ]
        assert {one.status_code for one in streams} == {200}
        await victim.state.keys.revoke(made.key.id)
        for one in streams:
            assert "revoked" in (await one.aread()).decode()


async def _fuzz(victim: Victim, seed: int) -> dict[int, int]:
    """Send the fuzzer's requests, ten at a time. Returns how often each status came back."""
    task = (await victim.send("ask")).json()["task"]["id"]
    requests = Fuzzer(seed=seed, task=task).requests(REQUESTS_PER_RUN)
    seen: dict[int, int] = {}

    async def client() -> None:
        for request in requests:
            status = await (_raw(victim, request) if request.raw else _request(victim, request))
            seen[status] = seen.get(status, 0) + 1

    await asyncio.gather(*(client() for _ in range(10)))
    return seen


async def _request(victim: Victim, request: Request) -> int:
    headers = {name.encode(): value.encode("latin-1") for name, value in request.headers.items()}
    built = victim.http.build_request(
        request.method, request.path, content=request.body, headers=headers
    )
    answer = await victim.http.send(built, stream=True)
    try:
        # Streams do not end: their first event is enough.
        await anext(answer.aiter_bytes(), b"")
    finally:
        await answer.aclose()
    assert answer.status_code != 500, request
    return answer.status_code


async def _raw(victim: Victim, request: Request) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", victim.port)
    found = b""
    with suppress(OSError):
        writer.write(request.raw)
        writer.write_eof()
        found = await reader.read()
    writer.close()
    return int(found[9:12]) if found.startswith(b"HTTP/1.1 ") else 0


async def _recovers(victim: Victim) -> None:
    """A task of a worker that died is taken back, in this tenant and in another one."""
    for place in (victim.state, victim.state.for_tenant(new_ref())):
        task = await place.tasks.submit("elsewhere", holdfast.ChatMessage.user("x"))
        [claimed] = await place.tasks.claim("dead", agents=["elsewhere"], lease_seconds=0.1)
        assert claimed.task.id == task.id
        async with asyncio.timeout(120):
            while True:
                found = await place.tasks.get(task.id)
                assert found is not None
                if found.state is TaskState.SUBMITTED:
                    break
                await asyncio.sleep(0.05)
        await place.tasks.cancel(task.id)


async def test_a_service_survives_hostile_clients(tmp_path: Path, database: str) -> None:
    hanging, memory = Hanging(drip=True), []
    async with (
        _victim(tmp_path, database) as victim,
        _answering(hanging.serve) as hook,
        AsyncExitStack() as stack,
    ):
        for _ in range(HALF_OPEN):
            _, writer = await asyncio.open_connection("127.0.0.1", victim.port)
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\n")
            stack.callback(writer.close)
        for _ in range(2):
            await _named_attacks(victim, hook)
            seen = await _fuzz(victim, seed=2030)
            assert sum(seen.values()) == REQUESTS_PER_RUN
            assert {200, 400, 404} <= seen.keys()
            memory.append(victim.rss_bytes)
        assert hanging.connections > 0
        health = await victim.http.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        assert (await victim.send("still there?")).json()["task"]["status"]["state"] == (
            "TASK_STATE_COMPLETED"
        )
        await _recovers(victim)
        assert victim.process.returncode is None
        assert memory[1] - memory[0] <= MOST_GROWTH_BYTES, memory
        traced = {line for line in _read(victim.log).splitlines() if "Traceback" in line}
        assert not traced, "\n".join(sorted(traced))
