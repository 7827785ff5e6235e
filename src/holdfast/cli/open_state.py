"""Opens the configured state, for commands that share it with other processes."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from pathlib import Path

import typer

from holdfast.values.errors import ConfigError, UnavailableError
from holdfast.wiring.engines import EMBEDDED, INMEMORY, engine_of_settings, location, where_of
from holdfast.wiring.front_door import Opening
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.cli")
FIRST_PAUSE_SECONDS = 0.25
LAST_PAUSE_SECONDS = 5.0


def shared_settings(*, alone: bool = False) -> Settings:
    """Return the settings of the environment; embedded Postgres if it configures no storage.

    Raises for a state in memory, because other processes cannot read it. With ``alone`` it does
    not: the command needs no other process. ::

        settings = shared_settings()
    """
    chosen = Settings.from_environment()
    spec = engine_of_settings(chosen)
    if spec is INMEMORY and not alone:
        variable = "STORAGE_TYPE" if chosen.storage_type else "DATABASE_URL"
        raise ConfigError(
            f"{variable} is memory, which other processes cannot read: "
            "unset it for the embedded Postgres in .holdfast, or set DATABASE_URL to a server"
        )
    return chosen if spec else dataclasses.replace(chosen, storage_type=EMBEDDED.name)


def open_shared(
    tenant: str | None = None, *, alone: bool = False, creates: bool = False
) -> Opening:
    """Open the configured state, for a tenant or for ``HOLDFAST_TENANT``.

    Raises ``ConfigError`` where embedded Postgres has no folder yet, unless the command
    ``creates`` data: one that only reads leaves no folder behind. ::

        async with open_shared("acme") as state:
            await state.tasks.list(owner=ANY_OWNER)
    """
    settings = shared_settings(alone=alone)
    if creates:
        announce_creation(settings)
    else:
        check_folder(settings)
    return open_state(settings=settings, tenant=tenant or None)


def check_folder(settings: Settings) -> None:
    """Raise ``ConfigError`` if the settings name an embedded Postgres whose folder is missing.

    ::

        check_folder(shared_settings())
    """
    if engine_of_settings(settings) is EMBEDDED and not _is_made(settings):
        raise ConfigError(
            f"there is no state in {settings.directory!r} yet: `holdfast worker`, "
            "`holdfast serve`, `holdfast tasks submit` or "
            f"holdfast.open({location(Path(settings.directory))!r}) makes one. "
            "To look elsewhere, set HOLDFAST_DIR or DATABASE_URL"
        )


def announce_creation(settings: Settings) -> None:
    """Print a line if opening is going to create an embedded Postgres, which takes seconds.

    ::

        announce_creation(shared_settings())
    """
    if engine_of_settings(settings) is EMBEDDED and not _is_made(settings):
        typer.echo(f"Making a Postgres in {settings.directory} (a few seconds, once) …", err=True)


def _is_made(settings: Settings) -> bool:
    return (Path(settings.directory).expanduser() / "data" / "PG_VERSION").exists()


def none_there(what: str, tenant: str = "", *, filtered: bool = False) -> str:
    """Return the text for an empty list: where the command looked, and how to look elsewhere.

    ::

        typer.echo(none_there("tasks", tenant))
    """
    settings = shared_settings()
    missing = f"no {what} match" if filtered else f"no {what}"
    looked = f"{missing} in {where_of(settings)}, tenant {tenant or settings.tenant}"
    elsewhere = (
        "HOLDFAST_DIR or DATABASE_URL"
        if engine_of_settings(settings) is EMBEDDED
        else "DATABASE_URL"
    )
    return f"{looked}\nTo look elsewhere, set {elsewhere}, or give --tenant."


async def opened(opening: Callable[[], Opening], *, wait_seconds: float) -> State:
    """Open a state whose servers may not be up yet: retry for ``wait_seconds`` and log each retry.

    Errors that waiting cannot fix, such as a wrong password or a missing database, are raised at
    once. ::

        async with await opened(open_shared, wait_seconds=60) as state:
            ...
    """
    end = time.monotonic() + wait_seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await opening()
        except UnavailableError as error:
            left = end - time.monotonic()
            if left <= 0:
                raise
            _log.warning("not up yet, waiting for up to %.0f seconds: %s", left, error)
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 2, LAST_PAUSE_SECONDS)
