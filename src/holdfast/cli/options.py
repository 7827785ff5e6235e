"""Options that many commands have."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Tenant: TypeAlias = Annotated[
    str, typer.Option(help="Whose tasks; HOLDFAST_TENANT, or 'default', unless given.")
]
TaskId: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The task's id, or enough of its end or beginning.")
]

States: TypeAlias = Annotated[
    list[str] | None, typer.Option("--state", help="Only in this state; may be given again.")
]
OfAgent: TypeAlias = Annotated[str | None, typer.Option("--agent", help="Only of this agent.")]
OfOwner: TypeAlias = Annotated[
    str | None, typer.Option("--owner", help="Only of this owner; '' for tasks without one.")
]
OfContext: TypeAlias = Annotated[
    str | None, typer.Option("--context", help="Only of this context.")
]


def time_of(text: str) -> datetime:
    """Return the time that a person typed; without an offset it is of this machine's time zone.

    >>> time_of("2030-01-31T18:30").hour
    18
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: give a date or a time, as in 2030-01-31 or 2030-01-31T18:30"
        ) from None


Since: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        parser=time_of,
        metavar="TIME",
        help="Only those whose state changed at this time or later, as in 2030-01-31T18:30.",
    ),
]
Before: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        parser=time_of,
        metavar="TIME",
        help="Only those whose state last changed before this time, as in 2030-01-31.",
    ),
]
Text: TypeAlias = Annotated[
    str | None, typer.Option(help="Only those whose first message contains this.")
]
IdPrefix: TypeAlias = Annotated[
    str | None, typer.Option(help="Only those whose id begins with this.")
]
HeldBy: TypeAlias = Annotated[
    str | None, typer.Option("--worker", help="Only those that this worker holds.")
]
By: TypeAlias = Annotated[str, typer.Option(help="Who does it; the name is kept in the timeline.")]
