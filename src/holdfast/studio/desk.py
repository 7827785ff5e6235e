"""What every screen uses: the stores that a browser session sees, its form, and pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from holdfast.studio.access import Access, Session
from holdfast.studio.guard import FORM, PREFIX, SESSION, theme_of
from holdfast.studio.notices import PARAMETER, PICKED, notice_of
from holdfast.studio.pages import render
from holdfast.studio.problems import PROBLEM
from holdfast.studio.samples import Samples
from holdfast.values.errors import (
    ConflictError,
    EngineError,
    HoldfastError,
    InvalidInputError,
    NotFoundError,
    NotSupportedError,
)
from holdfast.values.identity import AgentId
from holdfast.wiring.state import State

_MOST_VIEWS = 1_000
_MOST_AGENTS = 100
_MOST_OWNED = 100
_MOST_SAMPLED = 20
_STATUS = {
    NotFoundError: 404,
    InvalidInputError: 422,
    ConflictError: 409,
    NotSupportedError: 501,
    EngineError: 503,
}


SECTIONS = frozenset({"tasks", "boards", "sessions", "recall", "facts", "graph", "search"})
"""The screens that an error page links back to."""

SECTIONS_OF_OPERATORS = frozenset({"health", "dead-letters", "keys", "erase", "tenants"})


async def _always(_session: Session) -> bool:
    return True


@dataclass(slots=True)
class Desk:
    """Serves the screens on the stores of a state.

    ::

        desk = Desk(state, Access(), read_only=True)
    """

    base: State
    access: Access
    read_only: bool = False
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops: streams end then."""

    valid: Callable[[Session], Awaitable[bool]] = field(default=_always)
    """Returns whether a session is still valid."""

    _samples: dict[str, Samples] = field(default_factory=dict)
    _states: dict[tuple[str, str | None], State] = field(default_factory=dict)

    def session(self, request: Request) -> Session:
        """Return the session of a request."""
        found: Session = request.scope[SESSION]
        return found

    def state(self, request: Request) -> State:
        """Return the stores that the session of a request may see."""
        session = self.session(request)
        return self._view(session.tenant, session.owner)

    def memory_state(self, request: Request) -> State:
        """Return the stores of an owner's memory: an operator chooses the owner by ``?owner=``."""
        session = self.session(request)
        chosen = request.query_params.get("owner", "")
        if session.operator and chosen:
            return self._view(session.tenant, chosen)
        return self._view(session.tenant, session.owner)

    async def agents(self, request: Request) -> list[AgentId]:
        """Return agents whose memory the session may see, to choose from."""
        try:
            return await self.memory_state(request).episodes.list_agents(limit=_MOST_AGENTS)
        except NotSupportedError:
            # No log of events here: the reader types the name.
            return []

    async def owners(self, request: Request) -> list[str]:
        """Return owners of the newest tasks, for an operator to choose from."""
        if not self.session(request).operator:
            return []
        page = await self.state(request).tasks.list(limit=_MOST_OWNED)
        return sorted({one.owner for one in page.tasks if one.owner})

    def samples(self, request: Request) -> Samples:
        """Return the measurements of the session's tenant; the first call starts to measure."""
        tenant = self.session(request).tenant
        if tenant not in self._samples and len(self._samples) >= _MOST_SAMPLED:
            # Not kept: so many tenants are measured already.
            return Samples(self._view(tenant, None), self.closing)
        found = self._samples.setdefault(tenant, Samples(self._view(tenant, None), self.closing))
        found.start()
        return found

    def _view(self, tenant: str, owner: str | None) -> State:
        key = (tenant, owner)
        if key not in self._states:
            if len(self._states) >= _MOST_VIEWS:
                self._states.clear()
            found = self.base if tenant == self.base.tenant else self.base.for_tenant(tenant)
            self._states[key] = found if owner is None else found.for_owner(owner)
        return self._states[key]

    def form(self, request: Request) -> Mapping[str, str]:
        """Return the fields of the form that a request carries."""
        found: Mapping[str, str] = request.scope[FORM]
        return found

    def writes(self, request: Request) -> bool:
        """Return whether the session may change data."""
        return not self.read_only and self.session(request).writes

    def page(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """Return a rendered page, with the values that all pages need."""
        session, problem = self.session(request), request.scope.get(PROBLEM)
        if problem is not None and status == HTTPStatus.OK:
            status = HTTPStatus.UNPROCESSABLE_ENTITY
        text = render(
            name,
            problem=problem,
            csrf=self.access.form_token(session),
            theme=theme_of(request),
            session=session,
            owner=request.query_params.get("owner", "") if session.operator else "",
            engines=", ".join(sorted(set(self.base.engines.values()))),
            path=request.url.path,
            here=_here(request),
            writes=self.writes(request),
            notice=notice_of(request),
            **values,
        )
        return HTMLResponse(text, status)

    def failed(self, request: Request, error: HoldfastError) -> Response:
        """Return the page for an error: it shows what was wrong, and what to do."""
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
        if request.headers.get("x-part"):
            return Response(str(error), status)
        return self.error(request, status, str(error))

    def error(self, request: Request, status: int, text: str) -> Response:
        """Return a page that says what was wrong, with a link back to the section."""
        parts = request.url.path.removeprefix(PREFIX).split("/")
        section = next(iter(parts[1:2]), "")
        sections = SECTIONS
        if self.session(request).operator:
            sections |= SECTIONS_OF_OPERATORS
        known = section if section in sections else ""
        return self.page(request, "error.html", status, error=text, section=known)


def _here(request: Request) -> str:
    """Return the path and the query of a page, without the parameters of its notice."""
    kept = [
        (name, value)
        for name, value in request.query_params.multi_items()
        if name not in {PARAMETER, PICKED}
    ]
    return f"{request.url.path}?{urlencode(kept)}" if kept else str(request.url.path)


def back(form: Mapping[str, str], default: str, more: Mapping[str, str] | None = None) -> Response:
    """Redirect to the page that a form was on: only to a path of Studio.

    ``more`` are parameters to add to its query. ::

        return back(form, "/studio/tasks", {"did": "cancel.3.0"})
    """
    wanted = form.get("back", "")
    inside = wanted == PREFIX or wanted.startswith((f"{PREFIX}/", f"{PREFIX}?"))
    target = wanted if inside and "\\" not in wanted else default
    if more:
        parts = urlsplit(target)
        kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in more]
        target = f"{parts.path}?{urlencode([*kept, *more.items()])}"
    return RedirectResponse(target, 303)
