"""Push notifications are signed, and the secrets of push configs are never shown."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

import holdfast
from holdfast import PushConfig, State
from holdfast.server.push_request import signature_headers
from holdfast.testing.postgres_server import free_port
from tests.server.running import MODERN, example_app, http_client, said, sent, talking
from tests.server.running import serving as serving_app
from tests.server.test_push import Receiver
from tests.server.test_push_faults import _until_all_failed

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGE = Path(__file__).parents[2] / "docs/how-to/serve-a2a.md"
SECRET = "correct horse battery staple"  # noqa: S105 - the test's own
Verify = Callable[..., bool]


def _documented() -> Verify:
    """The example of the documentation, as it stands there."""
    [block] = [
        one
        for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "def verify(" in one
    ]
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 - our own page
    found: Verify = names["verify"]
    return found


def _config(url: str, **how: Any) -> a2a.SendMessageConfiguration:
    config = a2a.TaskPushNotificationConfig(id="p1", url=url, **how)
    return a2a.SendMessageConfiguration(task_push_notification_config=config)


def _auth(scheme: str, credentials: str) -> a2a.AuthenticationInfo:
    return a2a.AuthenticationInfo(scheme=scheme, credentials=credentials)


@pytest.mark.parametrize(
    ("how", "secret", "sent_too"),
    [
        ({"authentication": _auth("HMAC-SHA256", SECRET)}, SECRET, set()),
        (
            {"token": "tok", "authentication": _auth("hmac-sha256", SECRET)},
            SECRET,
            {"x-a2a-notification-token"},
        ),
        ({"token": SECRET}, SECRET, {"x-a2a-notification-token"}),
        (
            {"token": SECRET, "authentication": _auth("Bearer", "other")},
            SECRET,
            {"x-a2a-notification-token", "authorization"},
        ),
        ({"authentication": _auth("Bearer", SECRET)}, SECRET, {"authorization"}),
    ],
    ids=["hmac", "hmac and token", "token", "token and bearer", "bearer"],
)
async def test_a_notification_passes_the_documented_check(
    state: State, how: dict[str, Any], secret: str, sent_too: set[str]
) -> None:
    verify, receiver = _documented(), Receiver(refusals=1)
    async with (
        receiver.listening() as url,
        serving_app(example_app(), state, push_allow_private=True) as service,
        talking(service, streaming=False) as client,
    ):
        await sent(client, said("say hi", configuration=_config(url, **how)))
        await receiver.until(3)
    for (headers, _), body in zip(receiver.taken, receiver.bodies, strict=True):
        assert verify(headers, body, secret)
        assert not verify(headers, body + b" ", secret)
        assert not verify(headers, body, "another secret")
        stamp = int(headers["x-holdfast-timestamp"])
        assert not verify(headers | {"x-holdfast-timestamp": str(stamp - 1)}, body, secret)
        old = signature_headers(PushConfig("p1", url, token=secret), body, at=stamp - 3600)
        assert not verify({name.lower(): value for name, value in old.items()}, body, secret)
        assert {"x-a2a-notification-token", "authorization"} & set(headers) == sent_too
        if not any(secret in headers[name] for name in sent_too):
            assert secret not in str(headers)


async def test_a_config_without_a_secret_is_not_signed(state: State) -> None:
    receiver = Receiver()
    async with (
        receiver.listening() as url,
        serving_app(example_app(), state, push_allow_private=True) as service,
        talking(service, streaming=False) as client,
    ):
        await sent(client, said("say hi", configuration=_config(url)))
        await receiver.until(3)
    assert not any("signature" in name for headers, _ in receiver.taken for name in headers)


async def _everything(http: httpx.AsyncClient, task_id: str) -> list[str]:
    """All answers over HTTP that have to do with a push config."""
    path = f"/tasks/{task_id}/pushNotificationConfigs"
    config = {
        "id": "p1",
        "url": "https://example.org/hook",
        "token": SECRET,
        "authentication": {"scheme": "Bearer", "credentials": SECRET},
    }

    async def rpc(method: str, params: dict[str, Any], **headers: str) -> str:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await http.post("/", json=call, headers=headers)
        assert "error" not in answer.json(), answer.text
        return answer.text

    answers = [
        (await http.post(path, json=config)).text,
        (await http.get(f"{path}/p1")).text,
        (await http.get(path)).text,
    ]
    one = {"taskId": task_id, "id": "p1"}
    answers += [
        await rpc("CreateTaskPushNotificationConfig", config | {"taskId": task_id}),
        await rpc("GetTaskPushNotificationConfig", one),
        await rpc("ListTaskPushNotificationConfigs", {"taskId": task_id}),
    ]
    old = {"A2A-Version": "0.3"}
    own = {"id": task_id, "pushNotificationConfigId": "p1"}
    old_config = config | {"authentication": {"schemes": ["Bearer"], "credentials": SECRET}}
    answers += [
        await rpc(
            "tasks/pushNotificationConfig/set",
            {"taskId": task_id, "pushNotificationConfig": old_config},
            **old,
        ),
        await rpc("tasks/pushNotificationConfig/get", own, **old),
        await rpc("tasks/pushNotificationConfig/list", {"id": task_id}, **old),
        (await http.get(f"/v1{path}/p1", headers=old)).text,
    ]
    return answers


async def test_no_answer_has_a_secret_in_clear(
    state: State, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    port = free_port()
    async with (
        serving_app(example_app(), state, grpc_port=port) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
        talking(service, streaming=False) as client,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        [asked] = await sent(client, said("ask me"))
        answers = await _everything(http, asked.task.id)
        stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]
        made = await stub.CreateTaskPushNotificationConfig(
            a2a.TaskPushNotificationConfig(
                id="p1",
                task_id=asked.task.id,
                url="https://example.org/hook",
                token=SECRET,
                authentication=_auth("Bearer", SECRET),
            ),
            wait_for_ready=True,
        )
        got = await stub.GetTaskPushNotificationConfig(
            a2a.GetTaskPushNotificationConfigRequest(task_id=asked.task.id, id="p1")
        )
        listed = await stub.ListTaskPushNotificationConfigs(
            a2a.ListTaskPushNotificationConfigsRequest(task_id=asked.task.id)
        )
        answers += [str(made), str(got), str(listed)]
        for answer in answers:
            assert "example.org" in answer
            assert SECRET not in answer
            assert "***" in answer
        # What is stored is the secret itself.
        stored = await state.tasks.get_push_config(asked.task.id, "p1")
        assert stored is not None
        assert stored.token == stored.authentication["credentials"] == SECRET
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("token", "authentication"),
    [("***", None), ("", _auth("Bearer", "***")), ("", _auth("HMAC-SHA256", ""))],
)
async def test_what_stands_for_a_secret_is_not_taken_for_one(
    state: State, token: str, authentication: a2a.AuthenticationInfo | None
) -> None:
    """Else who may not see a secret could have it sent to a URL of their own."""
    async with (
        serving_app(example_app(), state) as service,
        talking(service, streaming=False) as client,
    ):
        config = _config("https://example.org/", token=token, authentication=authentication)
        with pytest.raises(Exception, match="secret"):
            await sent(client, said("say hi", configuration=config))
    assert (await state.tasks.list(count=True)).total == 0


async def test_a_delivery_that_fails_records_no_secret(
    state: State, caplog: pytest.LogCaptureFixture
) -> None:
    """A config that was stored by other means may have a secret that is no header."""
    bad = f"{SECRET}\n"
    configs = [
        PushConfig("p0", "https://example.org/", token=bad),
        PushConfig("p1", "https://example.org/", "", {"scheme": "Bearer", "credentials": bad}),
        PushConfig("p2", "https://example.org/", "", {"scheme": "HMAC-SHA256", "credentials": bad}),
    ]
    async with serving_app(example_app(), state):
        task = await state.tasks.submit("tester", holdfast.ChatMessage.user("say hi"), push=configs)
        for problem in await _until_all_failed(state, task):
            assert "must be printable ASCII" in problem
            assert SECRET not in problem
    assert SECRET not in caplog.text
    assert SECRET not in repr(await state.tasks.list_outbox(task.id))
