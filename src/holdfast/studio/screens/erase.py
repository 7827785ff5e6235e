"""Erase a person: shows what would be deleted, asks to type the name, and lists receipts."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.screen import Screen
from holdfast.values.erasure import Counts
from holdfast.values.errors import InvalidInputError

SHOWN = 100


async def erasures(desk: Desk, request: Request) -> Response:
    """Show the erasures, and what an erasure of a subject would delete."""
    query = request.query_params
    counts = None
    if subject := query.get("subject", ""):
        session = query.get("session") or None
        found = await desk.state(request).erase(subject=subject, session=session, dry_run=True)
        counts = found.counts
    return await _page(desk, request, counts)


async def erase(desk: Desk, request: Request) -> Response:
    """Delete all data of a subject, or of one of its sessions, and show the receipt."""
    form = desk.form(request)
    subject = form.get("subject", "")
    if form.get("confirm", "") != subject:
        raise InvalidInputError("confirm", "must be the subject")
    report = await desk.state(request).erase(subject=subject, session=form.get("session") or None)
    return await _page(desk, request, report.counts, json.dumps(report.receipt, indent=2))


async def _page(desk: Desk, request: Request, counts: Counts | None, receipt: str = "") -> Response:
    done = [one async for one in desk.state(request).ops.erasures()]
    query = request.query_params
    return desk.page(
        request,
        "erase.html",
        erasures=done[: -SHOWN - 1 : -1],
        subject=query.get("subject", ""),
        session_id=query.get("session", ""),
        counts=counts,
        receipt=receipt,
    )


SCREEN = Screen("/studio/erase", erasures, {"erase": erase}, operators=True)
