"""Studio in a service, over a real socket: sessions by API keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from holdfast import ChatMessage, State
from holdfast.errors import ConfigError
from holdfast.ops import KeyScope
from holdfast.server.limits import KeyLimits
from holdfast.server.options import ServiceOptions
from holdfast.server.service import Service
from holdfast.studio.mount import StudioMount
from tests.server.running import example_app, http_client
from tests.studio.visiting import token_of

pytestmark = pytest.mark.asyncio
SHARED = "a random text that all instances share, long enough"


@asynccontextmanager
async def _serving(
    state: State, *, auth: bool = True, secret: str = ""
) -> AsyncIterator[tuple[str, StudioMount]]:
    options, closing = ServiceOptions(port=0, auth=auth, drain_seconds=5.0), asyncio.Event()
    mount = StudioMount(state, options, secret=secret, closing=closing)
    service = Service(
        example_app(), state, options, workers=0, mounts={"/studio": mount.asgi}, closing=closing
    )
    run = asyncio.create_task(service.run())
    try:
        yield service.url, mount
    finally:
        service.stop()
        async with asyncio.timeout(60):
            await run


async def _key(state: State, owner: str, scope: KeyScope = KeyScope.OWNER) -> str:
    return (await state.keys.create(owner, scope=scope)).text


@asynccontextmanager
async def _logged_in(url: str, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client(base_url=url, follow_redirects=True) as client:
        response = await client.post("/studio/login", data={"key": key})
        assert response.status_code == 200, response.text
        yield client


async def test_a_key_opens_what_its_owner_sees(state: State) -> None:
    await state.tasks.submit("tester", ChatMessage.user("of ana"), owner="ana")
    await state.tasks.submit("tester", ChatMessage.user("of bob"), owner="bob")
    seen = {}
    async with _serving(state) as (url, _):
        for owner, scope in (
            ("ana", KeyScope.OWNER),
            ("bob", KeyScope.READER),
            ("eve", KeyScope.OPERATOR),
        ):
            async with _logged_in(url, await _key(state, owner, scope)) as client:
                text = (await client.get("/studio/tasks")).text
                seen[owner] = ("of ana" in text, "of bob" in text, 'method="post"' in text)
    assert seen == {
        "ana": (True, False, True),
        "bob": (False, True, False),
        "eve": (True, True, True),
    }


async def test_a_wrong_key_opens_nothing(state: State) -> None:
    async with _serving(state) as (url, _), http_client(base_url=url) as client:
        assert (await client.get("/studio")).status_code == 401
        for key in ("", "hf_x_y", "x" * 5000):
            response = await client.post("/studio/login", data={"key": key})
            assert response.status_code == 403
        assert (await client.get("/studio")).status_code == 401


async def test_a_session_ends_with_its_key(state: State) -> None:
    made = await state.keys.create("ana")
    async with _serving(state) as (url, _), _logged_in(url, made.text) as client:
        token = token_of((await client.get("/studio/tasks")).text)
        await state.keys.revoke(made.key.id)
        assert (await client.get("/studio/tasks")).status_code == 401
        data = {"csrf": token, "do": "submit", "agent": "tester", "text": "late"}
        assert (await client.post("/studio/tasks", data=data)).status_code == 401
    assert (await state.tasks.list(count=True)).total == 0


async def test_a_cookie_opens_studio_only(state: State) -> None:
    async with (
        _serving(state) as (url, _),
        _logged_in(url, await _key(state, "ana")) as client,
    ):
        assert (await client.get("/tasks", headers={"A2A-Version": "1.0"})).status_code == 401
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.get("/studiox")).status_code == 401


async def test_instances_with_one_secret_accept_each_others_sessions(state: State) -> None:
    key = await _key(state, "ana")
    async with (
        _serving(state, secret=SHARED) as (first, _),
        _serving(state, secret=SHARED) as (second, _),
        _serving(state) as (third, _),
        _logged_in(first, key) as client,
    ):
        assert (await client.get(f"{second}/studio/tasks")).status_code == 200
        assert (await client.get(f"{third}/studio/tasks")).status_code == 401


async def test_without_keys_a_link_opens_it_and_the_rest_is_served_too(state: State) -> None:
    async with (
        _serving(state, auth=False) as (url, mount),
        http_client(base_url=url, follow_redirects=True) as client,
    ):
        assert (await client.get(mount.link(url))).status_code == 200
        assert (await client.get("/health")).status_code == 200
        wrong = await client.get("/studio", headers={"Host": "evil.example"})
        assert wrong.status_code == 421


async def test_an_open_stream_does_not_hold_the_service_up(state: State) -> None:
    async with AsyncExitStack() as after:
        async with _serving(state) as (url, _):
            client = await after.enter_async_context(_logged_in(url, await _key(state, "ana")))
            request = client.build_request("GET", "/studio/live")
            lines = (await client.send(request, stream=True)).aiter_lines()
            assert "ready" in await anext(lines)
        # The service has ended, and with it the stream.
        assert [line async for line in lines if line.startswith("event: changed")] == []


async def test_the_stream_of_an_owner_names_no_task_of_another(state: State) -> None:
    async with (
        _serving(state) as (url, _),
        _logged_in(url, await _key(state, "ana")) as ana,
        _logged_in(url, await _key(state, "ops", KeyScope.OPERATOR)) as operator,
    ):
        for client, sees in ((ana, False), (operator, True)):
            request = client.build_request("GET", "/studio/live")
            lines = (await client.send(request, stream=True)).aiter_lines()
            assert '"waiting": 0' in await _next_data(lines)
            bobs = await state.tasks.submit("tester", ChatMessage.user("of bob"), owner="bob")
            if sees:
                assert bobs.id in await _next_data(lines)
            anas = await state.tasks.submit("tester", ChatMessage.user("of ana"), owner="ana")
            # What changes later is sent later: a task of another owner would stand before it.
            found = await _next_data(lines)
            assert anas.id in found
            assert bobs.id not in found


async def _next_data(lines: AsyncIterator[str]) -> str:
    async with asyncio.timeout(60):
        async for line in lines:
            if line.startswith("data:"):
                return line
    raise AssertionError("the stream has ended")


async def test_a_short_secret_is_refused(state: State) -> None:
    with pytest.raises(ConfigError, match="32 characters"):
        StudioMount(state, ServiceOptions(), secret="hunter2")  # noqa: S106 - a bad one


async def test_a_stream_ends_with_its_key(state: State) -> None:
    made = await state.keys.create("ana")
    async with _serving(state) as (url, _), _logged_in(url, made.text) as client:
        request = client.build_request("GET", "/studio/live")
        lines = (await client.send(request, stream=True)).aiter_lines()
        assert "ready" in await anext(lines)
        await state.keys.revoke(made.key.id)
        async with asyncio.timeout(60):
            async for _line in lines:
                pass


async def test_a_key_has_eight_streams_however_fast_they_are_opened(state: State) -> None:
    made = await state.keys.create("ana")
    async with _serving(state) as (url, _), _logged_in(url, made.text) as client:
        requests = [client.build_request("GET", "/studio/live") for _ in range(12)]
        answers = await asyncio.gather(*(client.send(one, stream=True) for one in requests))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [200] * 8 + [429] * 4
        for answer in answers:
            await answer.aclose()


async def test_a_key_is_held_to_its_rate(state: State) -> None:
    options = ServiceOptions(auth=True, key_rate=2.0)
    mount = StudioMount(state, options, limits=KeyLimits(options, clock=lambda: 0.0))
    transport = httpx.ASGITransport(app=mount.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        data = {"key": await _key(state, "ana")}
        assert (await client.post("/studio/login", data=data)).status_code == 303
        codes = [(await client.get("/studio/tasks")).status_code for _ in range(3)]
        assert (await client.get("/studio/static/studio.css")).status_code == 200
    assert codes == [200, 200, 429]
