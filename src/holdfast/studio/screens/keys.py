"""API keys: create one, shown once; rotate; revoke."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.studio.desk import Desk, back
from holdfast.studio.screens.screen import Screen
from holdfast.studio.screens.sent_forms import UNKNOWN, begin, end
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.keys import KeyScope, NewApiKey

_DAY = 86_400.0
REPEATED = "repeated"
"""The parameter with the key that a form made when it was sent before."""


async def keys(desk: Desk, request: Request) -> Response:
    """Show the keys of the tenant."""
    return await _page(desk, request)


async def _page(desk: Desk, request: Request, made: NewApiKey | None = None) -> Response:
    found = await desk.state(request).keys.list_keys()
    repeated = request.query_params.get(REPEATED, "")
    return desk.page(
        request,
        "keys.html",
        keys=found,
        made=made,
        scopes=[*KeyScope],
        repeated=repeated == UNKNOWN,
        made_before=next((one for one in found if one.id == repeated), None),
        new_id=new_id,
    )


async def create(desk: Desk, request: Request) -> Response:
    """Create a key, and show its text this one time; a form that is sent twice makes one key."""
    token, state = desk.form(request).get("submit_key", ""), desk.state(request)
    if not token:
        return await _page(desk, request, await _create(desk, request))
    before = await begin(state, token)
    if before is not None:
        return RedirectResponse(f"/studio/keys?{urlencode({REPEATED: before})}", 303)
    made = None
    try:
        made = await _create(desk, request)
    finally:
        await end(state, token, None if made is None else made.key.id)
    return await _page(desk, request, made)


async def _create(desk: Desk, request: Request) -> NewApiKey:
    form = desk.form(request)
    days = form.get("days", "")
    if days and not (days.isascii() and days.isdigit() and len(days) < 5 and 0 < int(days) < 3651):
        raise InvalidInputError("days", "must be a whole number from 1 to 3650")
    return await desk.state(request).keys.create(
        form.get("owner", ""),
        name=form.get("name", ""),
        scope=form.get("scope") or KeyScope.OWNER,
        ttl_seconds=int(days) * _DAY if days else None,
    )


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
