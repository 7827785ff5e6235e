"""The agent card: what can be set on it, and what clients of 1.0 and of 0.3 do with it."""

from __future__ import annotations

from typing import Any

import grpc
import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.compat.v0_3 import types as old
from a2a.compat.v0_3.conversions import to_core_agent_card
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import App, Provider, State, TaskContext
from holdfast.errors import ConfigError, InvalidInputError
from holdfast.server.card import agent_card
from holdfast.server.options import ServiceOptions
from holdfast.testing.postgres_server import free_port
from tests.server.running import MODERN, example_app, http_client, said, sent, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
CARD = "/.well-known/agent-card.json"


def _app(*, secret: bool = True) -> App:
    app = App(
        "guide",
        provider=Provider("Acme", "https://acme.example"),
        input_modes=["text/plain", "image/*"],
        output_modes=["text/markdown"],
        documentation_url="https://acme.example/guide",
    )

    @app.handler(tags=["tides", "moon"], examples=["When is low tide?"], input_modes=["text/plain"])
    async def guide(task: TaskContext) -> str:
        """Knows the tides."""
        return task.message.text

    if secret:

        @app.handler(agent="admin", public=False, output_modes=["application/json"])
        async def admin(task: TaskContext) -> str:
            """Closes the harbour."""
            return task.message.text

    return app


async def _card(http: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await http.get(CARD)).json()
    return found


async def test_what_an_app_and_its_handlers_say_is_on_the_card() -> None:
    card = agent_card(_app(), ServiceOptions())
    assert (card.provider.organization, card.provider.url) == ("Acme", "https://acme.example")
    assert list(card.default_input_modes) == ["text/plain", "image/*"]
    assert list(card.default_output_modes) == ["text/markdown"]
    assert card.documentation_url == "https://acme.example/guide"
    [skill] = card.skills
    assert (list(skill.tags), list(skill.examples)) == (["tides", "moon"], ["When is low tide?"])
    assert (list(skill.input_modes), list(skill.output_modes)) == (["text/plain"], [])


@pytest.mark.parametrize(
    "wrong",
    [{"tags": []}, {"tags": "tides"}, {"input_modes": ["text"]}, {"output_modes": "text/plain"}],
)
async def test_what_cannot_be_on_a_card_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        App("guide").handler(**wrong)
    with pytest.raises(InvalidInputError):
        Provider("", "https://acme.example")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "127.0.0.1:50051"),
        ({"host": "::1"}, "[::1]:50051"),
        ({"public_url": "https://agents.example"}, "agents.example:50051"),
        ({"public_url": "https://agents.example:8443/a2a/v1/"}, "agents.example:50051"),
        ({"public_url": "http://[2001:db8::1]:8000/a2a"}, "[2001:db8::1]:50051"),
        (
            {"public_grpc": "grpc.example:443", "public_url": "https://a.example"},
            "grpc.example:443",
        ),
        ({"public_grpc": "[2001:db8::2]:443"}, "[2001:db8::2]:443"),
    ],
)
async def test_the_grpc_address_is_right(options: dict[str, str], wanted: str) -> None:
    card = agent_card(_app(), ServiceOptions(grpc_port=50051, **options))  # type: ignore[arg-type]
    [found] = [one.url for one in card.supported_interfaces if one.protocol_binding == "GRPC"]
    assert found == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"public_grpc": "grpc.example"},
        {"public_grpc": "https://grpc.example:443"},
        {"public_grpc": "grpc.example:443/path"},
        {"public_grpc": "me@grpc.example:443"},
        {"public_grpc": "grpc.example:99999"},
        {"public_url": "agents.example"},
        {"public_url": "https://"},
        {"public_url": "ftp://agents.example"},
        {"public_url": "https://agents.example:99999"},
    ],
)
async def test_a_public_address_that_nobody_can_reach_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="must be as in"):
        ServiceOptions(**wrong)  # type: ignore[arg-type]


async def test_grpc_on_ipv6_is_reached_at_the_address_of_the_card(state: State) -> None:
    port = free_port("::1")
    async with serving(example_app(), state, host="::1", grpc_port=port) as service:
        async with http_client(base_url=service.url) as http:
            interfaces = (await _card(http))["supportedInterfaces"]
        [url] = [one["url"] for one in interfaces if one["protocolBinding"] == "GRPC"]
        async with grpc.aio.insecure_channel(url) as channel:
            stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]
            answer = await stub.SendMessage(said("say hi"), wait_for_ready=True)
        assert answer.task.status.message.parts[0].text == "done: hi"


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("auth", [False, True])
async def test_a_client_of_0_3_finds_what_it_requires_and_can_send(
    state: State, binding: str, auth: bool
) -> None:
    headers = {"Authorization": f"Bearer {(await state.keys.create('ana')).text}"} if auth else {}
    async with (
        serving(_app(), state, auth=auth, grpc_port=free_port()) as service,
        http_client(base_url=service.url, headers=headers, timeout=60) as http,
    ):
        shown = (await http.get(CARD, headers={"A2A-Version": "0.3"})).json()
        assert (await http.get("/.well-known/agent.json")).json() == shown
        # The types of 0.3 refuse a card without what that version requires.
        card = old.AgentCard.model_validate(shown)
        assert (card.url, card.preferred_transport) == (f"{service.url}/", "JSONRPC")
        assert card.protocol_version == "0.3.0"
        assert card.supports_authenticated_extended_card is True
        assert (card.security is not None) is auth
        offered = {one.transport for one in card.additional_interfaces or []}
        assert offered == {"HTTP+JSON"}
        # A client of 1.0 is not offered the old ones.
        versions = {one["protocolVersion"] for one in shown["supportedInterfaces"]}
        assert versions == {"1.0"}

        config = ClientConfig(
            httpx_client=http, supported_protocol_bindings=[binding], streaming=False
        )
        client = ClientFactory(config).create(to_core_agent_card(card))
        [answer] = await sent(client, said("low tide?"))
        assert answer.task.status.message.parts[0].text == "low tide?"
        more = await client.get_extended_agent_card(a2a.GetExtendedAgentCardRequest())
        assert [one.id for one in more.skills] == ["guide", "admin"]


async def test_the_extended_card_is_for_callers_with_a_key(state: State) -> None:
    key = (await state.keys.create("ana")).text
    port = free_port()
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}}
    bearer = {"Authorization": f"Bearer {key}"}
    async with (
        serving(_app(), state, auth=True, grpc_port=port) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        shown = await _card(http)
        assert shown["capabilities"]["extendedAgentCard"] is True
        assert [one["id"] for one in shown["skills"]] == ["guide"]

        assert (await http.get("/extendedAgentCard")).status_code == 401
        assert (await http.post("/", json=rpc)).status_code == 401
        rest = (await http.get("/extendedAgentCard", headers=bearer)).json()
        over_rpc = (await http.post("/", json=rpc, headers=bearer)).json()["result"]
        stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]
        over_grpc = await stub.GetExtendedAgentCard(
            a2a.GetExtendedAgentCardRequest(),
            metadata=[("authorization", bearer["Authorization"])],
            wait_for_ready=True,
        )
        for card in (rest, over_rpc):
            assert [one["id"] for one in card["skills"]] == ["guide", "admin"]
            versions = {one["protocolVersion"] for one in card["supportedInterfaces"]}
            assert versions == {"1.0"}
        assert [one.id for one in over_grpc.skills] == ["guide", "admin"]


async def test_an_app_without_more_to_say_has_no_extended_card(state: State) -> None:
    async with (
        serving(_app(secret=False), state) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        assert not (await _card(http))["capabilities"].get("extendedAgentCard")
        answer = await http.get("/extendedAgentCard")
        assert answer.status_code == 400
        assert "the same for everybody" in answer.text


async def test_the_fields_of_0_3_are_for_who_asks_unless_they_are_for_everybody(
    state: State,
) -> None:
    for everybody in (False, True):
        async with (
            serving(example_app(), state, old_card=everybody) as service,
            http_client(base_url=service.url) as http,
        ):
            answer = await http.get(CARD)
            assert ("url" in answer.json()) is everybody
            assert (await http.get(CARD, headers=MODERN)).json() == answer.json()
            old_one = await http.get(CARD, headers={"A2A-Version": "0.3"})
            assert old_one.json()["url"] == f"{service.url}/"
            assert "a2a-version" in old_one.headers["vary"].lower()
            assert (old_one.headers["etag"] == answer.headers["etag"]) is everybody
