"""Studio as an ASGI app: the screens behind their guard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from holdfast.server.limits import KeyLimits
from holdfast.server.loop_shares import LoopShares
from holdfast.studio import live
from holdfast.studio.access import Access
from holdfast.studio.desk import Desk
from holdfast.studio.guard import SESSION, Guard, Login, Valid
from holdfast.studio.pages import FOLDER
from holdfast.studio.screens import (
    boards,
    dead_letters,
    erase,
    facts,
    graph,
    health,
    inbox,
    keys,
    palette,
    recall,
    recall_tests,
    search,
    sessions,
    task,
    tasks,
    tenants,
)
from holdfast.studio.screens.screen import Handler, Screen
from holdfast.values.errors import HoldfastError, NotFoundError
from holdfast.wiring.state import State

SCREENS: Sequence[Screen] = (
    inbox.SCREEN,
    tasks.SCREEN,
    task.SCREEN,
    boards.LIST,
    boards.SCREEN,
    sessions.LIST,
    sessions.SCREEN,
    recall.SCREEN,
    recall_tests.SCREEN,
    search.SCREEN,
    palette.SCREEN,
    facts.SCREEN,
    graph.SCREEN,
    health.SCREEN,
    dead_letters.SCREEN,
    keys.SCREEN,
    erase.SCREEN,
    tenants.SCREEN,
    live.SCREEN,
)

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def studio(
    state: State,
    access: Access,
    *,
    hosts: frozenset[str] | None,
    secure: bool = False,
    read_only: bool = False,
    closing: asyncio.Event | None = None,
    login: Login | None = None,
    valid: Valid | None = None,
    limits: KeyLimits | None = None,
    shares: LoopShares | None = None,
) -> Guard:
    """Return Studio on the stores of a state, mounted at ``/studio``.

    With ``read_only`` no route takes a POST. ``login`` opens sessions by API keys. ``valid`` tests
    whether the key of a session is still valid. ``limits`` limit the requests of a key, and
    ``shares`` divide the time of the event loop with the callers of a service. Streams end when
    ``closing`` is set. ::

        app = studio(state, Access(), hosts=frozenset({"localhost"}))
    """
    desk = Desk(state, access, read_only=read_only, closing=closing or asyncio.Event())
    routes: list[Route | Mount] = [
        Mount("/studio/static", StaticFiles(directory=FOLDER / "static"), name="static")
    ]
    for screen in SCREENS:
        routes.append(Route(screen.path, _page(desk, screen), methods=["GET"]))
        if screen.actions and not read_only:
            routes.append(Route(screen.path, _action(desk, screen), methods=["POST"]))

    async def lost(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 404
        if SESSION not in request.scope:
            return Response("there is no such file\n", code)
        text = "There is no such page." if code == 404 else "This page takes no such request."
        return desk.error(request, code, text)

    inner = Starlette(routes=routes, exception_handlers={404: lost, 405: lost})
    inner.router.redirect_slashes = False
    guard = Guard(
        inner,
        access,
        hosts=hosts,
        secure=secure,
        login=login,
        valid=valid,
        limits=limits,
        shares=shares,
    )
    desk.valid = guard.valid
    return guard


def _page(desk: Desk, screen: Screen) -> Endpoint:
    return _handled(desk, screen, screen.page)


def _action(desk: Desk, screen: Screen) -> Endpoint:
    async def act(desk: Desk, request: Request) -> Response:
        wanted = desk.form(request).get("do", "")
        action = screen.actions.get(wanted)
        if action is None:
            raise NotFoundError("action", wanted)
        if not desk.writes(request):
            return desk.error(request, 403, "This session may only read.")
        return await action(desk, request)

    return _handled(desk, screen, act)


def _handled(desk: Desk, screen: Screen, handler: Handler) -> Endpoint:
    async def handled(request: Request) -> Response:
        if screen.operators and not desk.session(request).operator:
            # As if there were no such page: an owner learns nothing of the operators'.
            raise HTTPException(404)
        if desk.session(request).operator:
            desk.samples(request)
        try:
            return await handler(desk, request)
        except HoldfastError as error:
            return desk.failed(request, error)

    return handled
