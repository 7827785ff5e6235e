"""News are delivered at least once, in order, and only where they may go."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpcore
import httpx
import pytest
import uvicorn
from a2a.types import a2a_pb2 as a2a
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

import holdfast
from holdfast import State
from holdfast.errors import InvalidInputError
from holdfast.server.addresses import AddressGuard, guarded_client, is_public
from holdfast.server.service import listening
from tests.server.running import example_app, said, sent, serving, talking

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Receiver:
    """A client's web hook, which may refuse at first."""

    def __init__(self, refusals: int = 0, *, redirect: str = "") -> None:
        self.refusals = refusals
        self.redirect = redirect
        self.taken: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.bodies: list[bytes] = []
        self.calls = 0

    async def hook(self, request: Request) -> Response:
        self.calls += 1
        raw = await request.body()
        body = json.loads(raw)
        if self.redirect:
            return RedirectResponse(self.redirect)
        if self.refusals:
            self.refusals -= 1
            return Response(status_code=500)
        self.taken.append((dict(request.headers), body))
        self.bodies.append(raw)
        return Response(status_code=204)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = Starlette(routes=[Route("/hook", self.hook, methods=["POST"])])
        with listening("127.0.0.1", 0) as sock:
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
            run = asyncio.create_task(server._serve([sock]))
            try:
                yield f"http://127.0.0.1:{sock.getsockname()[1]}/hook"
            finally:
                server.should_exit = True
                await run

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.taken) < count:
                await asyncio.sleep(0.01)


def _configured(url: str) -> a2a.SendMessageConfiguration:
    return a2a.SendMessageConfiguration(
        task_push_notification_config=a2a.TaskPushNotificationConfig(
            id="p1",
            url=url,
            token="tok",  # noqa: S106 - the test's own
            authentication=a2a.AuthenticationInfo(scheme="Bearer", credentials="cred"),
        )
    )


async def test_news_arrive_in_order_with_what_proves_the_sender(state: State) -> None:
    receiver = Receiver(refusals=1)
    async with (
        receiver.listening() as url,
        serving(example_app(), state, push_allow_private=True) as service,
        talking(service, streaming=False) as client,
    ):
        [answer] = await sent(client, said("stream 2", configuration=_configured(url)))
        # submitted, working, two pieces with a remark each, completed
        await receiver.until(7)
        headers, first = receiver.taken[0]
        assert headers["x-a2a-notification-token"] == "tok"
        assert headers["authorization"] == "Bearer cred"
        assert first["statusUpdate"]["status"]["state"] == "TASK_STATE_SUBMITTED"
        pieces = [
            body["artifactUpdate"]["artifact"]["parts"][0]["text"]
            for _, body in receiver.taken
            if "artifactUpdate" in body
        ]
        assert pieces == ["line 0\n", "line 1\n"]
        last = receiver.taken[-1][1]["statusUpdate"]
        assert last["status"]["state"] == "TASK_STATE_COMPLETED"
        assert last["taskId"] == answer.task.id
        keys = [headers["idempotency-key"] for headers, _ in receiver.taken]
        assert len(set(keys)) == len(keys) == 7
        async with asyncio.timeout(30):
            while await state.tasks.list_outbox(answer.task.id):
                await asyncio.sleep(0.01)
        assert receiver.calls == 8


async def test_a_redirect_is_not_followed(state: State) -> None:
    target = Receiver()
    async with (
        target.listening() as elsewhere,
        Receiver(redirect=elsewhere).listening() as url,
        serving(example_app(), state, push_allow_private=True) as service,
        talking(service, streaming=False) as client,
    ):
        [answer] = await sent(client, said("say hi", configuration=_configured(url)))
        async with asyncio.timeout(30):
            while True:
                outbox = await state.tasks.list_outbox(answer.task.id)
                if outbox and outbox[0].last_error:
                    break
                await asyncio.sleep(0.01)
        assert outbox[0].last_error == "HTTP 307"
        assert target.calls == 0


async def test_a_private_address_is_refused_by_number_and_by_name(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    async with (
        receiver.listening() as url,
        serving(example_app(), state) as service,
        talking(service, streaming=False) as client,
    ):
        port = url.rpartition(":")[2].partition("/")[0]
        for wrong in (url, f"https://127.0.0.1:{port}/hook", "https://[::1]/", "ftp://example.org"):
            with pytest.raises(Exception, match="url"):
                await sent(client, said("say hi", configuration=_configured(wrong)))

        # A name that points inside is found out when it is resolved.
        async def resolved(*_: Any) -> list[str]:
            return ["127.0.0.1"]

        monkeypatch.setattr(AddressGuard, "resolve", resolved)
        hook = f"https://inside.example:{port}/hook"
        task = await state.tasks.submit(
            "tester",
            holdfast.ChatMessage.user("say hi"),
            push=[holdfast.PushConfig("p1", hook)],
        )
        async with asyncio.timeout(30):
            while True:
                outbox = await state.tasks.list_outbox(task.id)
                if outbox and outbox[0].last_error:
                    break
                await asyncio.sleep(0.01)
        assert "not public" in outbox[0].last_error
        assert receiver.calls == 0


async def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that answers differently the second time gains nothing: it is asked once."""
    receiver = Receiver()
    asked: list[str] = []
    async with receiver.listening() as url:
        port = int(url.rpartition(":")[2].partition("/")[0])

        async def resolved(_: AddressGuard, host: str, port: int) -> list[str]:
            del port
            asked.append(host)
            return ["127.0.0.1"]

        guard = AddressGuard(allow_private=True)
        monkeypatch.setattr(AddressGuard, "resolve", resolved)
        async with guarded_client(guard) as client:
            answer = await client.post(f"http://changing.example:{port}/hook", json={})
        assert answer.status_code == 204
        assert asked == ["changing.example"]
        assert receiver.taken[0][0]["host"] == f"changing.example:{port}"


async def test_a_name_that_changes_its_address_gains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The resolver of the system answers with a public address first, and with ours after."""
    answers = [["93.184.215.14"], ["127.0.0.1"], ["93.184.215.14", "::ffff:127.0.0.1"], ["::1"]]
    connected: list[str] = []

    def looked_up(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (one, 443)) for one in answers.pop(0)]

    async def connect(_: Any, host: str, *__: Any) -> httpcore.AsyncNetworkStream:
        connected.append(host)
        raise httpcore.ConnectError("nobody is there")

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    guard = AddressGuard(allow_private=False)
    async with guarded_client(guard) as client:
        with pytest.raises(httpx.ConnectError, match="nobody is there"):
            await client.post("https://changing.example/hook", json={})
        assert len(answers) == 3
        for _ in range(3):
            with pytest.raises(httpx.ConnectError, match="not public"):
                await client.post("https://changing.example/hook", json={})
    assert connected == ["93.184.215.14"]
    guard.close()


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("0.0.0.1", "0.255.255.255"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1"),
        *(
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "ff02::1",
        ),
        *("192.0.0.192", "168.63.129.16", "192.88.99.1", "fec0::1", "3fff::1", "64:ff9b:1::1"),
        *("2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1", "::7f00:1", "2001:0:1::80ff:fffe"),
        *("fe80::1%eth0", "not an address"),
    ],
)
async def test_an_address_that_is_not_of_the_open_internet_is_known(address: str) -> None:
    assert is_public(address) is False


async def test_public_addresses_pass() -> None:
    assert is_public("93.184.215.14")
    assert is_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c")
    guard = AddressGuard(allow_private=False)
    with pytest.raises(InvalidInputError):
        guard.check_url("https://user:pass@example.org/")
    with pytest.raises(httpcore.ConnectError, match="not public"):
        await guard.addresses("localhost", 443)
