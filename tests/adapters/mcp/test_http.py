"""The memory server over HTTP: API keys, owners, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

import holdfast
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
RIGA = {"name": "Riga", "entityType": "city", "observations": ["has a harbour"]}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "read_graph", "arguments": {}},
}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


@asynccontextmanager
async def _serving(database: str, tenant: str, *options: str) -> AsyncIterator[str]:
    """The command in a process of its own; its URL."""
    command = [sys.executable, "-m", "holdfast.cli", "mcp", "--url", database]
    server = await asyncio.create_subprocess_exec(
        *(*command, "--tenant", tenant, "--http", "--port", "0", *options),
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stderr is not None
    try:
        line = ""
        while "serving on" not in line:
            line = (await server.stderr.readline()).decode()
            assert line, "the server ended"
        yield line.split("serving on ")[1].split(",")[0]
    finally:
        server.send_signal(signal.SIGTERM)
        await server.communicate()
    assert server.returncode == 0


@pytest_asyncio.fixture(loop_scope="session")
async def tenant() -> str:
    """A tenant of this test."""
    return new_ref()


@asynccontextmanager
async def _client(url: str, key: str = "") -> AsyncIterator[Any]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def _call(client: Any, name: str, **arguments: Any) -> Any:
    found = await client.call_tool(name, arguments)
    assert not found.is_error, found.content[0].text
    return found.structured_content


async def test_each_key_has_the_memory_of_its_owner(database: str, tenant: str) -> None:
    async with holdfast.open(database, tenant=tenant) as state:
        ana, ana2 = [(await state.keys.create("ana")).text for _ in range(2)]
        ben = (await state.keys.create("ben")).text
        reader = (await state.keys.create("ana", scope="reader")).text
        elsewhere = (await state.for_tenant(new_ref()).keys.create("ana")).text
    async with _serving(database, tenant, "--auth") as url:
        async with _client(url, ana) as client:
            await _call(client, "create_entities", entities=[RIGA])
            await _call(client, "remember", text="Riga has a harbour")
        async with _client(url, ana2) as client:
            assert (await _call(client, "read_graph"))["entities"] == [RIGA]
        for other in (ben, elsewhere):
            async with _client(url, other) as client:
                assert (await _call(client, "read_graph"))["entities"] == []
                assert (await _call(client, "recall", query="harbour"))["facts"] == []
        async with _client(url, reader) as client:
            assert (await _call(client, "read_graph"))["entities"] == [RIGA]
            refused = await client.call_tool("delete_entities", {"entityNames": ["Riga"]})
            assert refused.is_error
        async with _client(url, ana) as client:
            assert (await _call(client, "read_graph"))["entities"] == [RIGA]


async def test_without_a_valid_key_there_is_no_answer(database: str, tenant: str) -> None:
    async with holdfast.open(database, tenant=tenant) as state:
        made = await state.keys.create("ana")
    async with _serving(database, tenant, "--auth") as url, httpx.AsyncClient() as http:
        for headers in ({}, {"authorization": "Bearer hf_no"}, {"authorization": "Basic YTpi"}):
            answer = await http.post(url, json=CALL, headers={**HEADERS, **headers})
            assert answer.status_code == 401
        key = {**HEADERS, "authorization": f"Bearer {made.text}"}
        assert (await http.post(url, json=CALL, headers=key)).status_code == 200
        async with holdfast.open(database, tenant=tenant) as state:
            assert await state.keys.revoke(made.key.id)
        assert (await http.post(url, json=CALL, headers=key)).status_code == 401


async def test_what_is_no_request_is_refused(database: str, tenant: str) -> None:
    async with _serving(database, tenant) as url, httpx.AsyncClient() as http:
        assert (await http.post(url, json=CALL, headers=HEADERS)).status_code == 200
        # A page in a browser, and a host name that a page made resolve to this address.
        page = {**HEADERS, "origin": "https://pages.example"}
        assert (await http.post(url, json=CALL, headers=page)).status_code == 403
        rebound = {**HEADERS, "host": "pages.example"}
        assert (await http.post(url, json=CALL, headers=rebound)).status_code == 421
        assert (await http.get(url, headers=HEADERS)).status_code == 405
        assert (await http.delete(url, headers=HEADERS)).status_code == 405
        assert (await http.post(f"{url}/other", json=CALL, headers=HEADERS)).status_code == 404
        huge = await http.post(url, content=b"x" * 5_000_000, headers=HEADERS)
        assert huge.status_code == 413
        broken = await http.post(url, content=b"{", headers=HEADERS)
        assert broken.status_code == 400
        health = await http.get(url.replace("/mcp", "/health"))
        assert health.status_code == 200


async def test_ids_that_are_reserved_are_refused(database: str, tenant: str) -> None:
    async with holdfast.open(database, tenant=tenant) as state:
        ben = (await state.keys.create("ben")).text
        ana = state.for_owner("ana")
        board = await ana.boards.create_task_list("c1", ["read"])
    async with _serving(database, tenant, "--auth") as url, _client(url, ben) as client:
        for name in (board.id, f"holdfast.owner:3:ana:{board.id}"):
            found = await client.call_tool("add_cards", {"board": name, "titles": ["mine"]})
            assert found.is_error
        stored = "holdfast.owner:3:ana:c1"
        found = await client.call_tool("read_boards", {"conversation": stored})
        assert found.is_error


async def test_a_second_process_sees_what_the_first_wrote(database: str, tenant: str) -> None:
    async with (
        _serving(database, tenant) as one,
        _serving(database, tenant) as two,
        _client(one) as first,
        _client(two) as second,
    ):
        for at in range(3):
            await _call(first, "create_entities", entities=[{**RIGA, "name": f"a{at}"}])
            await _call(second, "create_entities", entities=[{**RIGA, "name": f"b{at}"}])
        names = [row["name"] for row in (await _call(first, "read_graph"))["entities"]]
    assert names == ["a0", "b0", "a1", "b1", "a2", "b2"]


async def test_an_address_that_others_reach_needs_keys(database: str) -> None:
    command = [sys.executable, "-m", "holdfast.cli", "mcp", "--url", database, "--http"]
    server = await asyncio.create_subprocess_exec(
        *(*command, "--host", "0.0.0.0", "--no-auth"),  # noqa: S104 - it is refused
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    _, reply = await server.communicate()
    assert server.returncode != 0
    assert b"--no-auth" in reply
