"""API keys: create one, shown once; rotate; revoke."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.keys import KeyScope, NewApiKey

_DAY = 86_400.0


async def keys(desk: Desk, request: Request) -> Response:
    """Show the keys of the tenant."""
    return await _page(desk, request)


async def _page(desk: Desk, request: Request, made: NewApiKey | None = None) -> Response:
    found = await desk.state(request).keys.list_keys()
    return desk.page(request, "keys.html", keys=found, made=made, scopes=[*KeyScope])


async def create(desk: Desk, request: Request) -> Response:
    """Create a key, and show its text this one time."""
    form = desk.form(request)
    days = form.get("days", "")
    if days and not (days.isascii() and days.isdigit() and len(days) < 5 and 0 < int(days) < 3651):
        raise InvalidInputError("days", "must be a whole number from 1 to 3650")
    made = await desk.state(request).keys.create(
        form.get("owner", ""),
        name=form.get("name", ""),
        scope=form.get("scope") or KeyScope.OWNER,
        ttl_seconds=int(days) * _DAY if days else None,
    )
    return await _page(desk, request, made)


async def rotate(desk: Desk, request: Request) -> Response:
    """Create a key in place of an old one, and show its text this one time."""
    made = await desk.state(request).keys.rotate(desk.form(request).get("key", ""))
    return await _page(desk, request, made)


async def revoke(desk: Desk, request: Request) -> Response:
    """Revoke a key: its holder is refused from now on."""
    form = desk.form(request)
    if not await desk.state(request).keys.revoke(form.get("key", "")):
        raise NotFoundError("key", form.get("key", ""))
    return back(form, "/studio/keys")


async def delete(desk: Desk, request: Request) -> Response:
    """Delete a key that was revoked or has expired."""
    form = desk.form(request)
    if not await desk.state(request).keys.delete(form.get("key", "")):
        raise NotFoundError("key", form.get("key", ""))
    return back(form, "/studio/keys")


SCREEN = Screen(
    "/studio/keys",
    keys,
    {"create": create, "rotate": rotate, "revoke": revoke, "delete": delete},
    operators=True,
)
