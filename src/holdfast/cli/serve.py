"""``holdfast serve``: serves an app over A2A, with health and metrics."""

from __future__ import annotations

import asyncio
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.load_app import load_app
from holdfast.cli.logs import start_logs
from holdfast.cli.open_state import open_shared, shared_settings
from holdfast.cli.worker import run_until_signal
from holdfast.values.errors import ConfigError, MissingExtraError
from holdfast.wiring.engines import EMBEDDED, engines_of, missing_extras
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

if TYPE_CHECKING:
    from holdfast.server.limits import KeyLimits
    from holdfast.server.loop_shares import LoopShares
    from holdfast.server.options import ServiceOptions
    from holdfast.studio.mount import StudioMount

_log = logging.getLogger("holdfast.server")


def serve(
    app: Annotated[
        str, typer.Argument(help="The app, as module:app; the current folder is searched too.")
    ],
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 is any that is free.")
    ] = 8000,
    public_url: Annotated[
        str, typer.Option(help="Where clients reach it, for the agent card, behind a balancer.")
    ] = "",
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Only serve; `holdfast worker` does the tasks.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="How many tasks run at once.")] = 10,
    grpc_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Also serve A2A over gRPC, on this port.")
    ] = None,
    public_grpc: Annotated[
        str, typer.Option(help="Where clients reach gRPC, as host:port, for the agent card.")
    ] = "",
    old_card: Annotated[
        bool,
        typer.Option("--old-card", help="Add the fields of A2A 0.3 to the card for everybody."),
    ] = False,
    auth: Annotated[
        bool | None,
        typer.Option(
            "--auth/--no-auth", help="Require API keys; by default on all addresses but loopback."
        ),
    ] = None,
    anyone: Annotated[
        bool,
        typer.Option(
            "--i-know-anyone-can-call", help="Serve without API keys where others can reach it."
        ),
    ] = False,
    max_request_bytes: Annotated[
        int, typer.Option(min=1024, help="The largest request that is accepted.")
    ] = 4 * 1024 * 1024,
    max_answer_bytes: Annotated[
        int,
        typer.Option(min=1024, help="How many bytes of messages and artifacts one answer has."),
    ] = 16 * 1024 * 1024,
    tls_cert: Annotated[
        str, typer.Option(help="Serve HTTPS, and gRPC over TLS: the certificate chain (PEM).")
    ] = "",
    tls_key: Annotated[str, typer.Option(help="The private key of --tls-cert (PEM).")] = "",
    max_connections: Annotated[
        int, typer.Option(min=1, help="How many HTTP connections may be open.")
    ] = 1_000,
    max_connections_per_address: Annotated[
        int, typer.Option(min=1, help="How many of them from one address; raise it behind a proxy.")
    ] = 500,
    key_requests: Annotated[
        int, typer.Option(min=1, help="How many requests of one API key are answered at a time.")
    ] = 100,
    key_streams: Annotated[
        int, typer.Option(min=0, help="How many streams one API key may have open.")
    ] = 100,
    key_rate: Annotated[
        float, typer.Option(min=0.0, help="How many requests per second one API key may send.")
    ] = 0.0,
    reply_seconds: Annotated[
        float,
        typer.Option(min=0.0, help="How long a stream waits for a reply before it shows the task."),
    ] = 1.0,
    drain_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long open requests may take after SIGTERM.")
    ] = 30.0,
    studio: Annotated[
        bool,
        typer.Option("--studio/--no-studio", help="Serve Studio at /studio, if it is installed."),
    ] = True,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Serve an app: A2A 1.0 over JSON-RPC and HTTP+JSON with streams, /health and /metrics.

    A worker runs in the same process unless you pass --no-worker. You can start any number of
    instances on one Postgres (DATABASE_URL): all return the same results.

    With STORAGE_TYPE=memory it needs no database and keeps nothing, for development. This works
    only on loopback and with the worker in the same process.

    On loopback no API key is needed; on other addresses clients need one from
    `holdfast keys create`. On SIGTERM or Ctrl-C it ends streams, drains the worker and ends with
    exit code 0.

    For example:

        holdfast serve my_agents:app

        holdfast serve my_agents:app --host 0.0.0.0 --public-url https://agents.example.org

        holdfast serve my_agents:app --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    try:
        # Imported here: the service is a separate extra.
        from holdfast.server.limits import KeyLimits  # noqa: PLC0415
        from holdfast.server.loop_shares import LoopShares  # noqa: PLC0415
        from holdfast.server.options import ServiceOptions, is_loopback  # noqa: PLC0415
        from holdfast.server.service import Service  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        lacking = MissingExtraError("the service", "server" if grpc_port is None else "grpc")
        used = engines_of(shared_settings(alone=True), default=EMBEDDED)
        raise missing_extras(used, beside=lacking) or lacking from None
    found = load_app(app)
    if auth is False and not is_loopback(host) and not anyone:
        raise ConfigError(
            f"without API keys every client that reaches {host} can use the service: "
            "remove --no-auth, or pass --i-know-anyone-can-call"
        )
    asks_keys = not is_loopback(host) if auth is None else auth
    # A service with its worker and without keys shares its state with no process: memory is fine.
    alone = not no_worker and not asks_keys
    settings = shared_settings(alone=alone)
    options = ServiceOptions(
        host=host,
        port=port,
        public_url=public_url,
        auth=asks_keys,
        grpc_port=grpc_port,
        public_grpc=public_grpc,
        old_card=old_card,
        max_request_bytes=max_request_bytes,
        max_answer_bytes=max_answer_bytes,
        max_connections=max_connections,
        max_connections_per_address=max_connections_per_address,
        key_requests=key_requests,
        key_streams=key_streams,
        key_rate=key_rate,
        tls_cert=tls_cert,
        tls_key=tls_key,
        reply_seconds=reply_seconds,
        drain_seconds=drain_seconds,
        dedupe_message_ids=settings.dedupe_message_ids,
        push_allow_private=settings.push_allow_private,
    )
    start_logs(as_json=log_json)

    async def work() -> int:
        async with open_shared(alone=alone, creates=True) as state:
            if set(state.engines.values()) == {"inmemory"}:
                _log.warning("state is in memory, for development: it ends with this process")
            closing, limits, shares = asyncio.Event(), KeyLimits(options), LoopShares()
            mount = None
            if studio:
                mount = _studio(state, options, settings, closing, limits=limits, shares=shares)
            service = Service(
                found,
                state,
                options,
                workers=0 if no_worker else concurrency,
                mounts={"/studio": mount.asgi} if mount else None,
                closing=closing,
                limits=limits,
                shares=shares,
            )
            keys = "with API keys" if options.auth else "without API keys"
            _log.info("app %s: serving on %s, %s", found.name, service.url, keys)
            if mount is not None:
                _log.info("Studio: %s", mount.link(service.url))
            return await run_until_signal(service)

    raise typer.Exit(asyncio.run(work()))


def _studio(
    state: State,
    options: ServiceOptions,
    settings: Settings,
    closing: asyncio.Event,
    *,
    limits: KeyLimits,
    shares: LoopShares,
) -> StudioMount | None:
    """Return Studio for the service, if its extra is installed."""
    if find_spec("jinja2") is None:
        return None
    from holdfast.studio.mount import StudioMount  # noqa: PLC0415 - the extra is there

    return StudioMount(
        state,
        options,
        secret=settings.studio_secret,
        closing=closing,
        limits=limits,
        shares=shares,
    )
