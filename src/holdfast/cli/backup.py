"""``holdfast backup`` and ``restore``: all tenants of an embedded folder."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.open_state import shared_settings
from holdfast.values.errors import ConfigError
from holdfast.wiring.engines import EMBEDDED, engine_of_settings, load


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder for the backup.")],
) -> None:
    """Back up the embedded Postgres, with all tenants, while agents work.

    The backup is consistent: it holds all that was committed when it ended. Its checksums are
    compared. For a Postgres server use the server's own tools, or `holdfast export`.

    For example:

        holdfast backup /backups/monday
    """
    directory = _directory("back up")
    size = asyncio.run(load(EMBEDDED).back_up_folder(directory, folder))
    typer.echo(f"backed up {size:,} bytes to {folder}")


def restore(
    folder: Annotated[Path, typer.Argument(help="The folder of a backup.")],
) -> None:
    """Restore a backup into the embedded folder (HOLDFAST_DIR), which must not exist yet.

    The checksums of the backup are compared first. The backup stays as it is.

    For example:

        HOLDFAST_DIR=restored holdfast restore /backups/monday
    """
    target = _directory("restore")
    size = asyncio.run(load(EMBEDDED).restore_folder(folder, target))
    typer.echo(f"restored {size:,} bytes to {target}")


def _directory(what: str) -> str:
    settings = shared_settings()
    if engine_of_settings(settings) is not EMBEDDED:
        raise ConfigError(
            f"{what} is for the embedded Postgres, and DATABASE_URL or STORAGE_TYPE names another: "
            "unset it, or use holdfast export and import"
        )
    return settings.directory
