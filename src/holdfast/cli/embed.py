"""``holdfast embed``: the embedding backlog, and a command that processes it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from holdfast.cli.open_state import shared_settings
from holdfast.cli.options import Json
from holdfast.memory.embedding_worker import EmbeddingWorker
from holdfast.spi.embedding_queue import (
    TAKEN_SECONDS,
    EmbeddingQueue,
    EmbeddingStatus,
)
from holdfast.values.errors import ConfigError
from holdfast.wiring.embedding import Embedding

app = typer.Typer(help="Embed what agents did, for recall by meaning.", no_args_is_help=True)
_out = Console()
_err = Console(stderr=True)
WAIT_POLL_SECONDS = 0.5
Tenant = Annotated[str, typer.Option(help="Whose log; HOLDFAST_TENANT, or 'default'.")]


@app.command()
def status(*, tenant: Tenant = "", as_json: Json = False) -> None:
    """Show which model embeds the log, and how many events wait to be embedded.

    Exit code 0 if none waits, 1 if some do.
    """

    async def work() -> dict[str, Any]:
        async with Embedding.open(shared_settings(), tenant) as embedding:
            found = await embedding.queue.status()
            configured = embedding.embedder.name if embedding.embedder else "none"
            return {"configured": configured, **dataclasses.asdict(found)}

    facts = asyncio.run(work())
    behind = bool(facts["waiting"] or facts["configured"] not in {"none", facts["model"]})
    if as_json:
        typer.echo(json.dumps(facts | {"behind": behind}, indent=2))
        raise typer.Exit(code=int(behind))
    table = Table(show_header=False)
    for label, value in (
        ("configured embedder", facts["configured"]),
        ("the log is embedded by", facts["model"] or "none"),
        ("dimension", facts["dimension"] or "—"),
        ("embedded", facts["embedded"]),
        ("given by their writers", facts["given"]),
        ("of an earlier model, left out of recall", facts["outdated"]),
        ("waiting, at most", facts["waiting"]),
        ("refused by the model", facts["refused"]),
    ):
        table.add_row(label, f"{value:,}" if isinstance(value, int) else str(value))
    _out.print(table)
    if behind:
        _out.print("Run [bold]holdfast embed run[/bold].")
    raise typer.Exit(code=int(behind))


@app.command()
def run(
    *,
    tenant: Tenant = "",
    retry: Annotated[bool, typer.Option(help="Also try again what the model refused.")] = False,
    wait_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long it waits for what other workers have taken.")
    ] = TAKEN_SECONDS + 10,
    as_json: Json = False,
) -> None:
    """Embed all waiting events, with the embedder of HOLDFAST_EMBEDDER.

    If its model is not the log's current model, it becomes the current one: all events are
    embedded again, while agents continue to work. You can interrupt it at any time and run it
    again to continue; several may run at once. It waits for events that another worker has
    claimed, and takes them over if that worker is dead.

    Exit code 0 if no event waits any more, 1 if some do.
    """

    async def work() -> dict[str, Any]:
        async with Embedding.open(shared_settings(), tenant) as embedding:
            worker = embedding.worker
            if worker is None:
                raise ConfigError(
                    "no embedder is configured: set HOLDFAST_EMBEDDER, as in "
                    "HOLDFAST_EMBEDDER=static"
                )
            changed = await worker.adopt()
            if retry:
                await embedding.queue.retry_refused()
            with Progress(
                TextColumn("embedding"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=_err,
                disable=as_json or not _err.is_terminal,
            ) as progress:
                waiting = (await embedding.queue.status()).waiting
                bar = progress.add_task("embedding", total=waiting)
                done, problem, left = await _run_to_the_end(
                    embedding.queue,
                    worker,
                    lambda count: progress.advance(bar, count),
                    wait_seconds=wait_seconds,
                )
            return {
                "model": left.model,
                "adopted": changed,
                "embedded": done,
                "waiting": left.waiting,
                "refused": left.refused,
                "problem": problem,
            }

    facts = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        _out.print(f"embedded {facts['embedded']:,} events by {facts['model']}")
        if facts["refused"]:
            _out.print(f"{facts['refused']:,} were refused: try them again with --retry")
        if facts["waiting"] and not facts["problem"]:
            _err.print(
                f"holdfast: {facts['waiting']:,} events are left, which other workers have taken: "
                "run it again",
                style="red",
            )
        if facts["problem"]:
            _err.print(f"holdfast: {facts['problem']}: run it again to go on", style="red")
    raise typer.Exit(code=1 if facts["problem"] or facts["waiting"] else 0)


async def _run_to_the_end(
    queue: EmbeddingQueue,
    worker: EmbeddingWorker,
    progress: Callable[[int], None],
    *,
    wait_seconds: float,
) -> tuple[int, str, EmbeddingStatus]:
    """Embed until no event waits. Returns the count of events, the last error, and the backlog."""
    end = time.monotonic() + wait_seconds
    total, warned = 0, False
    while True:
        done, problem = await worker.drain(progress)
        total += done
        left = await queue.status()
        if problem or not left.waiting or time.monotonic() >= end:
            return total, problem, left
        if not warned:
            _err.print(f"waiting for {left.waiting:,} events that other workers have taken")
            warned = True
        await asyncio.sleep(WAIT_POLL_SECONDS)
