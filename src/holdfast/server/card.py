"""The agent card: the app's skills and the URLs of its interfaces."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import a2a_pb2 as a2a
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.runtime.app import App
from holdfast.runtime.handlers import Handler
from holdfast.server.options import ServiceOptions

EXTENSION = "urn:holdfast:contexts-and-control:v1"
"""URI of the extension with Holdfast's own methods: contexts/list, tasks/pause and so on."""

OLD_VERSION = "0.3.0"
OLD_PATH = "/.well-known/agent.json"
"""Path of the card in earlier versions of A2A."""


@dataclass(frozen=True, slots=True)
class Cards:
    """The public card, and the extended card for callers with a key, if the two differ.

    ``extended_old`` is the extended card with the interfaces of A2A 0.3, for clients of 0.3.
    """

    public: a2a.AgentCard
    extended: a2a.AgentCard | None
    extended_old: a2a.AgentCard | None

    @classmethod
    def of(cls, app: App, options: ServiceOptions) -> Cards:
        """Return the cards of an app."""
        public = agent_card(app, options)
        if not public.capabilities.extended_agent_card:
            return cls(public, None, None)
        extended = agent_card(app, options, extended=True)
        return cls(public, extended, _with_old_interfaces(extended, options))


def agent_card(app: App, options: ServiceOptions, *, extended: bool = False) -> a2a.AgentCard:
    """Return the card of an app, with a skill for each handler: public ones, or all if extended."""
    url = options.public_url_or_default
    interfaces = [
        a2a.AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0"),
        a2a.AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0"),
    ]
    if options.grpc_port is not None:
        interfaces.append(
            a2a.AgentInterface(
                url=options.public_grpc_or_default,
                protocol_binding="GRPC",
                protocol_version="1.0",
            )
        )
    card = a2a.AgentCard(
        name=app.name,
        description=app.description or f"The agent {app.name}.",
        version=app.version,
        supported_interfaces=interfaces,
        capabilities=a2a.AgentCapabilities(
            streaming=True,
            push_notifications=True,
            extended_agent_card=not all(one.skill.public for one in app.handlers),
            extensions=[
                a2a.AgentExtension(
                    uri=EXTENSION,
                    description="contexts/list, contexts/get, contexts/clear, tasks/feedback, "
                    "tasks/pause, tasks/resume and tasks/list over JSON-RPC",
                )
            ],
        ),
        default_input_modes=app.input_modes,
        default_output_modes=app.output_modes,
        skills=[_skill(one) for one in app.handlers if extended or one.skill.public],
    )
    if app.provider is not None:
        card.provider.organization = app.provider.organization
        card.provider.url = app.provider.url
    if app.documentation_url:
        card.documentation_url = app.documentation_url
    if options.auth:
        card.security_schemes["key"].http_auth_security_scheme.CopyFrom(
            a2a.HTTPAuthSecurityScheme(scheme="bearer", description="an API key of the service")
        )
        needed = a2a.SecurityRequirement()
        needed.schemes["key"].CopyFrom(a2a.StringList())
        card.security_requirements.append(needed)
    return card


def _skill(handler: Handler) -> a2a.AgentSkill:
    skill = handler.skill
    return a2a.AgentSkill(
        id=str(handler.agent),
        name=str(handler.agent),
        description=handler.description or f"Tasks for {handler.agent}.",
        tags=skill.tags,
        examples=skill.examples,
        input_modes=skill.input_modes,
        output_modes=skill.output_modes,
    )


def _with_old_interfaces(card: a2a.AgentCard, options: ServiceOptions) -> a2a.AgentCard:
    """Return the card with interfaces of 0.3, in the form that the SDK converts to a card of 0.3.

    gRPC is left out: it does not serve 0.3.
    """
    old = a2a.AgentCard()
    old.CopyFrom(card)
    url = options.public_url_or_default
    for binding, where in (("JSONRPC", f"{url}/"), ("HTTP+JSON", url)):
        old.supported_interfaces.append(
            a2a.AgentInterface(url=where, protocol_binding=binding, protocol_version=OLD_VERSION)
        )
    return old


def old_card_json(card: a2a.AgentCard, options: ServiceOptions) -> dict[str, Any]:
    """Return the card as JSON with the fields that a client of 0.3 requires, and those of 1.0.

    The interfaces of 0.3 are in the fields of 0.3 only, so that no client of 1.0 chooses them.
    """
    shown: dict[str, Any] = agent_card_to_dict(_with_old_interfaces(card, options))
    return shown | {"supportedInterfaces": MessageToDict(card)["supportedInterfaces"]}


def card_routes(card: a2a.AgentCard, options: ServiceOptions) -> list[Route]:
    """Return the routes of the public card, with the headers that caches need.

    The schema of 1.0 allows no fields of 0.3. So only clients that ask for 0.3 get them: by the
    version header, or by the path that older clients use.
    """
    old = _File(old_card_json(card, options))
    new = old if options.old_card else _File(MessageToDict(card))

    async def serve(request: Request) -> Response:
        asked = request.headers.get("a2a-version", "").strip()
        return (old if asked.startswith("0") else new).answer(request)

    async def serve_old(request: Request) -> Response:
        return old.answer(request)

    return [
        Route(AGENT_CARD_WELL_KNOWN_PATH, serve, methods=["GET"]),
        Route(OLD_PATH, serve_old, methods=["GET"]),
    ]


class _File:
    """An endpoint for JSON that does not change while the service runs."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._body = json.dumps(value, separators=(",", ":")).encode()
        self._etag = f'"{hashlib.sha256(self._body).hexdigest()[:32]}"'
        self._headers = {
            "ETag": self._etag,
            "Cache-Control": "public, max-age=60",
            "Last-Modified": formatdate(usegmt=True),
            "Vary": "A2A-Version",
        }

    def answer(self, request: Request) -> Response:
        """Return the JSON, or 304 if the client has it."""
        known = request.headers.get("if-none-match", "").split(",")
        if {one.strip().removeprefix("W/") for one in known} & {self._etag, "*"}:
            return Response(status_code=304, headers=self._headers)
        return Response(self._body, media_type="application/json", headers=self._headers)
