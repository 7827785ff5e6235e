"""The tenants that have data, for the operator of this machine."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk
from holdfast.studio.screens.screen import Screen

SHOWN = 100


async def tenants(desk: Desk, request: Request) -> Response:
    """List the tenants; a user who logged in with an API key sees only its tenant."""
    session = desk.session(request)
    found = [session.tenant]
    more = ""
    if session.local:
        after = request.query_params.get("after", "")
        found = await desk.base.ops.tenants(after=after, limit=SHOWN)
        more = urlencode({"after": found[-1]}) if len(found) == SHOWN else ""
    return desk.page(request, "tenants.html", tenants=found, next=more)


SCREEN = Screen("/studio/tenants", tenants, operators=True)
