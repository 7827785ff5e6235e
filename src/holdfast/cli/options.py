"""Options that many commands have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Tenant: TypeAlias = Annotated[
    str, typer.Option(help="Whose tasks; HOLDFAST_TENANT, or 'default', unless given.")
]
TaskId: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The task's id, or enough of its beginning or end.")
]
