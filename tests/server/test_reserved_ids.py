"""No client can choose an id that only the library may use, by whatever door it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2_grpc

from holdfast import State
from holdfast.server.service import listening
from tests.server.running import MODERN, example_app, http_client, said, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
MESSAGE = {"parts": [{"text": "x"}], "messageId": "m", "role": "ROLE_USER"}
REFUSED: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("message.contextId", {"contextId": "holdfast.cleanup"}, {}),
    ("message.messageId", {"messageId": "holdfast.m"}, {}),
    ("Idempotency-Key", {}, {"Idempotency-Key": "holdfast.k"}),
]


@pytest.mark.parametrize(("field", "given", "headers"), REFUSED)
async def test_an_id_that_begins_as_ours_do_is_refused_by_its_name(
    state: State, field: str, given: dict[str, Any], headers: dict[str, str]
) -> None:
    send = {"message": MESSAGE | given}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send}
    async with (
        serving(example_app(), state) as service,
        http_client(base_url=service.url, headers={**MODERN, **headers}, timeout=60) as http,
    ):
        answer = (await http.post("/", json=rpc)).json()
        assert answer["error"]["code"] == -32602
        assert answer["error"]["message"].startswith(f"{field}: must not begin with 'holdfast.'")
        assert (await http.post("/message:send", json=send)).status_code == 400
    assert (await state.tasks.list(owner=None, count=True)).total == 0


async def test_by_grpc_too(state: State) -> None:
    with listening("127.0.0.1", 0) as sock:
        port: int = sock.getsockname()[1]
    async with (
        serving(example_app(), state, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        request = said("say hi", context_id="holdfast.cleanup")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await make(channel).SendMessage(request, wait_for_ready=True)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "message.contextId" in caught.value.details()
    assert (await state.tasks.list(owner=None, count=True)).total == 0
