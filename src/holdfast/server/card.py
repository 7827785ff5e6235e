"""The agent card: what the app can do and how to reach it."""

from __future__ import annotations

from a2a.types import a2a_pb2 as a2a

from holdfast.runtime.app import App
from holdfast.server.options import ServiceOptions

EXTENSION = "urn:holdfast:contexts-and-control:v1"
"""Names the methods that are ours: contexts/list, tasks/pause and so on."""

_MODES = ["text/plain", "application/json", "application/octet-stream"]


def agent_card(app: App, options: ServiceOptions) -> a2a.AgentCard:
    """The card of an app, with a skill for each of its handlers."""
    url = options.public_url_or_default
    interfaces = [
        a2a.AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0"),
        a2a.AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0"),
    ]
    if options.grpc_port is not None:
        host = url.partition("://")[2].rsplit(":", 1)[0]
        interfaces.append(
            a2a.AgentInterface(
                url=f"{host}:{options.grpc_port}", protocol_binding="GRPC", protocol_version="1.0"
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
            extended_agent_card=False,
            extensions=[
                a2a.AgentExtension(
                    uri=EXTENSION,
                    description="contexts/list, contexts/get, contexts/clear, tasks/feedback, "
                    "tasks/pause, tasks/resume and tasks/list over JSON-RPC",
                )
            ],
        ),
        default_input_modes=_MODES,
        default_output_modes=_MODES,
        skills=[
            a2a.AgentSkill(
                id=str(handler.agent),
                name=str(handler.agent),
                description=handler.description or f"Tasks for {handler.agent}.",
                tags=["durable"],
            )
            for handler in app.handlers
        ],
    )
    if options.auth:
        card.security_schemes["key"].http_auth_security_scheme.CopyFrom(
            a2a.HTTPAuthSecurityScheme(scheme="bearer", description="an API key of the service")
        )
        needed = a2a.SecurityRequirement()
        needed.schemes["key"].CopyFrom(a2a.StringList())
        card.security_requirements.append(needed)
    return card
