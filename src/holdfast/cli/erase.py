"""``holdfast erase``: deletes all data of a scope, and checks receipts."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from holdfast.cli.open_state import none_there, open_shared
from holdfast.cli.options import Json
from holdfast.erasure.receipts import ReceiptKey, check_receipts, parse_receipts
from holdfast.values.as_json import jsonable
from holdfast.values.erasure import ErasureRecord, ErasureReport
from holdfast.values.formats import ago
from holdfast.wiring.erasure import erasure_scope
from holdfast.wiring.settings import Settings

app = typer.Typer(
    help="Delete all data of a tenant, a person, an agent or a session, with a receipt.",
    no_args_is_help=True,
)
_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)

Tenant = Annotated[
    str, typer.Option(help="In which tenant; HOLDFAST_TENANT, or 'default', unless given.")
]
Subject = Annotated[
    str | None, typer.Option(help="Whose data: the owner of tasks, sessions and memory.")
]
Agent = Annotated[str | None, typer.Option(help="The agent, of the subject if one is given.")]
Session = Annotated[str | None, typer.Option(help="The session, of the subject if one is given.")]
Whole = Annotated[bool, typer.Option("--whole-tenant", help="Everything of the tenant.")]


@app.command()
def run(
    *,
    subject: Subject = None,
    agent: Agent = None,
    session: Session = None,
    whole_tenant: Whole = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before deleting.")] = False,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Delete all data of one scope in every store, and print the receipt.

    It counts the records first, and asks for confirmation. If it is interrupted, run it again with
    the same scope: it continues.
    The receipt does not name whose data were deleted. With HOLDFAST_RECEIPT_KEY it is signed.

    For example:

        holdfast erase run --subject ana --dry-run

        holdfast erase run --subject ana --yes --json >> receipts.jsonl

        holdfast erase run --whole-tenant --tenant acme
    """

    async def work() -> ErasureReport:
        async with open_shared(tenant) as state:
            erase = partial(
                state.erase,
                tenant=state.tenant if whole_tenant else None,
                subject=subject,
                agent=agent,
                session=session,
            )
            found = await erase(dry_run=True)
            if dry_run:
                return found
            if not yes:
                _show_counts(found.counts, to=_err)
                typer.confirm(f"Delete them from tenant {state.tenant}?", abort=True, err=True)
            with _err.status("erasing") as status:
                total = 0

                def advance(store: str, count: int) -> None:
                    nonlocal total
                    total += count
                    status.update(f"erasing: {total} records, now {store}")

                return await erase(progress=advance)

    report = asyncio.run(work())
    if not as_json:
        _show_counts(report.counts, to=_out)
    if as_json or not dry_run:
        typer.echo(json.dumps(report.counts if dry_run else report.receipt))


def _show_counts(counts: dict[str, int], *, to: Console) -> None:
    if not counts:
        to.print("nothing is stored in this scope")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("store")
    table.add_column("records", justify="right")
    for store, count in counts.items():
        table.add_row(store, f"{count:,}")
    to.print(table)


@app.command("list")
def list_erasures(*, tenant: Tenant = "", as_json: Json = False) -> None:
    """List the erasures of a tenant, with their receipts; those that have not finished are open."""

    async def work() -> list[ErasureRecord]:
        async with open_shared(tenant) as state:
            return [one async for one in state.ops.erasures()]

    found = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(found), indent=2))
        return
    if not found:
        typer.echo(none_there("erasures", tenant, filtered=False))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("receipt", "of", "started", "records", "state"):
        table.add_column(name)
    for one in found:
        number = str(one.number) if one.finished else "-"
        state = "finished" if one.finished else "open: run it again with the same scope"
        table.add_row(
            *(number, one.kind, ago(one.started_at), f"{sum(one.counts.values()):,}", state)
        )
    _out.print(table)


@app.command()
def verify(
    file: Annotated[
        Path, typer.Argument(help="Receipts as JSON, one a line.", exists=True, dir_okay=False)
    ],
    *,
    subject: Subject = None,
    agent: Agent = None,
    session: Session = None,
    whole_tenant: Whole = False,
    tenant: Annotated[str, typer.Option(help="The tenant of the scope.")] = "default",
) -> None:
    """Check the signatures of receipts, and that each follows the one before.

    With HOLDFAST_RECEIPT_KEY they must be signed by this key. If a scope is given, one of them must
    be its receipt.

    For example:

        holdfast erase verify receipts.jsonl --tenant acme --subject ana
    """
    text = Settings.from_environment().receipt_key
    key = ReceiptKey(text) if text else None
    receipts = parse_receipts(file.read_text(encoding="utf-8"))
    wrong = check_receipts(receipts, public_key=None if key is None else key.public_key)
    if whole_tenant or (subject, agent, session) != (None, None, None):
        scope = erasure_scope(
            tenant,
            tenant=tenant if whole_tenant else None,
            subject=subject,
            agent=agent,
            session=session,
        )
        if key is None:
            wrong.append("a scope can be checked with HOLDFAST_RECEIPT_KEY only: set it")
        elif not any(
            one.get("scope") == {"kind": scope.kind, "digest": key.scope_digest(tenant, scope)}
            for one in receipts
        ):
            wrong.append("none of the receipts is of this scope")
    for one in wrong:
        _err.print(one, markup=False)
    if wrong or not receipts:
        _err.print(f"{len(receipts)} receipts: not valid")
        raise typer.Exit(1)
    signer = receipts[-1]["key"]
    typer.echo(f"{len(receipts)} receipts are valid, signed by {signer}")
