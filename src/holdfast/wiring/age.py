"""Apache AGE for the graph, on the same Postgres with a pool of its own."""

from __future__ import annotations

from holdfast.backends.postgres.age import AgeGraph
from holdfast.backends.postgres.age_engine import Age
from holdfast.contracts.graph import CypherGraph
from holdfast.wiring.connections import Connections
from holdfast.wiring.parts import Part
from holdfast.wiring.request import OpenRequest


async def put_beside(found: Connections, request: OpenRequest) -> None:
    """Let AGE keep the graph of an opened state."""
    age = await opened(request)
    found.use_graph(part_of(age), lambda tenant: CypherGraph(AgeGraph(age, tenant=tenant)))


async def opened(request: OpenRequest) -> Age:
    """A connected engine; ``NotSupportedError`` says what the server lacks."""
    settings = request.settings
    return await Age.open(
        request.url,
        command_timeout_seconds=settings.command_timeout_seconds,
        allow_unsafe=settings.allow_unsafe,
    )


def part_of(age: Age) -> Part:
    """The engine as a part of a ``State``."""
    return Part(
        age.name,
        ("graph",),
        "committed: on disk when a write returns",
        age.ping,
        age.aclose,
        version=f"AGE {age.capabilities.age}",
        capabilities=("Cypher",),
    )
