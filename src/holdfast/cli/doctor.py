"""``holdfast doctor``: checks that every configured engine answers and is durable."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.open_state import check_folder, shared_settings
from holdfast.values.errors import ConfigError, pip_line
from holdfast.wiring.doctor import examine, problems
from holdfast.wiring.health import EngineHealth
from holdfast.wiring.settings import unknown_variables

_out = Console()
_MARKS = {"ok": "[green]ok[/]", "degraded": "[yellow]degraded[/]", "down": "[red]down[/]"}


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with code 1 on every warning, and on variables HOLDFAST_… that are unknown.",
        ),
    ] = False,
) -> None:
    """Connect to every configured engine and show its condition.

    Checks STORAGE_TYPE or DATABASE_URL, REDIS_URL, BLOB_URL and HOLDFAST_GRAPH. For each engine it
    shows the version, the latency, what an acknowledged write survives, its capabilities, and what
    to change. With Redis and Postgres together it also shows the acknowledgement level in effect,
    and how far Postgres is behind. Exit code 0 if all engines answer, 1 if one does not.

    With --strict, for CI and before a process starts, the exit code is also 1 if there is anything
    to change: a degraded engine, storage that keeps nothing, a login that bypasses row-level
    security or owns the schema, a Redis that does not sync each write, an unknown variable, no
    package for metrics. Each is printed to standard error.

    For example:

        holdfast doctor --strict --json
    """
    if strict and (unknown := unknown_variables()):
        raise ConfigError("; ".join(unknown))

    check_folder(shared_settings(alone=True))

    async def work() -> list[EngineHealth]:
        with nullcontext() if as_json else _out.status("looking"):
            return [engine async for engine in examine()]

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
    else:
        table = Table("engine", "status", "what it says", show_lines=True)
        for one in found:
            table.add_row(one.engine, _MARKS[one.status], "\n".join(_said(one)))
        _out.print(table)
    wrong = [*problems(found), *_lacking()] if strict else []
    for problem in wrong:
        typer.echo(f"strict: {problem}", err=True)
    if wrong or any(one.status == "down" for one in found):
        raise typer.Exit(1)


def _lacking() -> Iterator[str]:
    if find_spec("prometheus_client") is None:
        yield f"metrics: no package to serve them: {pip_line('server')}"


def _said(one: EngineHealth) -> Iterator[str]:
    if one.status == "down":
        yield escape(one.detail)
        return
    answers = f"answers in {one.latency_seconds * 1000:.1f} ms"
    yield f"{escape(one.version or 'in this process')}, {answers}"
    if one.where:
        yield f"where: {escape(one.where)}"
    if one.engine == "hybrid":
        yield f"acknowledgement level: {escape(one.durability)}"
        yield f"consolidation lag: {escape(one.detail)}"
    else:
        yield f"durability: {escape(one.durability)}"
    if one.sealed:
        yield f"sealed: {escape(one.sealed)}"
    if one.capabilities:
        yield f"can: {escape(', '.join(one.capabilities))}"
    for warning in one.warnings:
        yield f"[yellow]to change:[/] {escape(warning)}"
