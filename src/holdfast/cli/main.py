"""The ``holdfast`` command; each group of commands is in its own file."""

from __future__ import annotations

import sys

from holdfast.values.errors import HoldfastError, MissingExtraError


def main() -> None:
    """Run the command. A ``HoldfastError`` prints one line to standard error, with exit code 1."""
    try:
        from holdfast.cli.commands import command  # noqa: PLC0415 - typer may not be installed
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich", "dotenv"}:
            raise
        sys.exit(str(MissingExtraError("the command line", "cli")))
    try:
        command()()
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)  # noqa: T201 - the command's own output
        sys.exit(1)
