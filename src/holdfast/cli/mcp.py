"""``holdfast mcp``: serves memory to clients of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import logging
import os
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from holdfast.cli.logs import start_logs
from holdfast.cli.open_state import shared_settings
from holdfast.cli.worker import run_until_signal
from holdfast.values.errors import ConfigError, MissingExtraError
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.mcp")


def mcp(
    *,
    url: Annotated[
        str,
        typer.Option(help="Where the state is: a folder or a URL; the environment's unless given."),
    ] = "",
    tenant: Annotated[
        str, typer.Option(help="Whose data it is; HOLDFAST_TENANT, or 'default', unless given.")
    ] = "",
    owner: Annotated[
        str, typer.Option(help="The owner whose memory it is; not with --http: API keys have one.")
    ] = "",
    agent: Annotated[str, typer.Option(help="The agent that remembers.")] = "mcp",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")
    ] = False,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of stdio.")
    ] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --http: the port; 0 is any that is free.")
    ] = 8001,
    auth: Annotated[
        bool | None,
        typer.Option(
            "--auth/--no-auth",
            help="With --http: require API keys; by default on all but loopback.",
        ),
    ] = None,
    tls_cert: Annotated[
        str, typer.Option(help="With --http: serve HTTPS; the certificate chain (PEM).")
    ] = "",
    tls_key: Annotated[str, typer.Option(help="The private key of --tls-cert (PEM).")] = "",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Serve memory over MCP: a knowledge graph, facts, recall, to-do boards and durable tasks.

    A desktop client starts it and speaks to it on standard input and output; logs go to standard
    error. The tools of the graph are those of MCP's reference memory server, so it can replace it.

    With --http any number of clients use it, each with the memory of the owner of its API key
    (`holdfast keys create`). On loopback no API key is needed unless you pass --auth.

    For example:

        holdfast mcp --url ~/agent-memory

        holdfast mcp --http --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    start_logs(as_json=log_json)
    # Imported here: MCP is a separate extra.
    from holdfast.adapters.mcp import Caller, MemoryGraph, memory_server  # noqa: PLC0415
    from holdfast.adapters.mcp.transports import StdioServer  # noqa: PLC0415

    async def over_stdio() -> int:
        async with _opened(url, tenant) as state:
            view = state.for_owner(owner)
            caller = Caller(view, agent, MemoryGraph(view.items), writes=not read_only)
            _log.info("memory of agent %s, tenant %s: ready on stdio", agent, state.tenant)
            server = StdioServer(memory_server(lambda _request: caller, subscriptions=True))
            code = await run_until_signal(server)
        if server.waits_for_input:
            logging.shutdown()
            os._exit(code)
        return code

    if not http:
        raise typer.Exit(asyncio.run(over_stdio()))
    if owner:
        raise ConfigError("--owner is for stdio: with --http, an API key has the owner")
    options = _options(host, port, auth=auth, tls_cert=tls_cert, tls_key=tls_key)

    async def over_http() -> int:
        async with _opened(url, tenant) as state:
            return await _serve(state, options, agent, writes=not read_only)

    raise typer.Exit(asyncio.run(over_http()))


def _options(host: str, port: int, *, auth: bool | None, tls_cert: str, tls_key: str) -> Any:
    if find_spec("a2a") is None:
        raise MissingExtraError("holdfast mcp --http", "server")
    # Imported here: the service is a separate extra.
    from holdfast.server.options import ServiceOptions, is_loopback  # noqa: PLC0415

    if auth is False and not is_loopback(host):
        raise ConfigError(
            f"without API keys every client that reaches {host} could read all memory: "
            "remove --no-auth"
        )
    asks = not is_loopback(host) if auth is None else auth
    if asks and not is_loopback(host) and not tls_cert:
        _log.warning("without TLS, API keys travel in clear text: pass --tls-cert, or use a proxy")
    return ServiceOptions(host=host, port=port, auth=asks, tls_cert=tls_cert, tls_key=tls_key)


async def _serve(state: State, options: Any, agent: str, *, writes: bool) -> int:
    from holdfast.adapters.mcp import Caller, memory_server  # noqa: PLC0415
    from holdfast.adapters.mcp.transports import Graphs, HttpEndpoint  # noqa: PLC0415
    from holdfast.server.gated import GatedService  # noqa: PLC0415

    graphs = Graphs()

    def caller_of(request: Any) -> Caller:
        caller, view = service.caller(request)
        return Caller(view, agent, graphs.of(view), writes=writes and caller.writes)

    endpoint = HttpEndpoint(memory_server(caller_of), local=not options.auth)
    service = GatedService(state, options, {"/mcp": endpoint})
    keys = "with API keys" if options.auth else "without API keys"
    async with endpoint.running():
        _log.info("memory of agent %s: serving on %s/mcp, %s", agent, service.url, keys)
        return await run_until_signal(service)


def _opened(url: str, tenant: str) -> Any:
    if url:
        return open_state(url, tenant=tenant or None)
    return open_state(settings=shared_settings(), tenant=tenant or None)
