"""The outermost layer of Studio: checks host names, sessions and CSRF tokens, and adds headers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.server.limits import KeyLimits, TooManyRequestsError
from holdfast.server.loop_shares import NOBODY, LoopShares, Share
from holdfast.server.options import host_name
from holdfast.studio.access import SESSION_SECONDS, Access, Session
from holdfast.studio.pages import render
from holdfast.values.errors import HoldfastError, InvalidInputError, NotFoundError

PREFIX = "/studio"
SESSION = "holdfast.studio.session"
"""Key of the ``Session`` in a request's scope."""

FORM = "holdfast.studio.form"
"""Key of the fields of a form in a request's scope."""

MOST_FORM_BYTES = 1024 * 1024
MOST_LOGIN_BYTES = 8 * 1024
MOST_FIELDS = 100
BODY_SECONDS = 30.0
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types holdfast"
)
_HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

Login = Callable[[str], Awaitable[Session | None]]
"""Opens a session with the text of an API key; ``None`` if it is not valid."""

Valid = Callable[[Session], Awaitable[bool]]
"""Returns whether the API key of a session is still valid."""


class RefusedError(Exception):
    """Raised for a request that Studio refuses; the page shows why, and what to do."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.title = title


class Guard:
    """Checks every request before a screen sees it.

    ``hosts`` are the host names that it answers to, or ``None`` for any. Without API keys these are
    the names of this machine: this prevents DNS rebinding, by which a web page could reach Studio.
    ::

        app = Guard(screens, Access(), hosts={"localhost"}, secure=False)
    """

    def __init__(
        self,
        inner: ASGIApp,
        access: Access,
        *,
        hosts: frozenset[str] | None,
        secure: bool,
        login: Login | None = None,
        valid: Valid | None = None,
        limits: KeyLimits | None = None,
        shares: LoopShares | None = None,
    ) -> None:
        self._limits = limits
        self._shares = shares
        self._inner = inner
        self._access = access
        self._hosts = hosts
        self._secure = secure
        self._login = login
        self._valid = valid
        self._cookie = "__Secure-holdfast" if secure else "holdfast"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request = Request(scope, receive)
        fixed = request.url.path.startswith(f"{PREFIX}/static/")
        try:
            response = await self._answer(request, fixed=fixed)
        except RefusedError as refusal:
            response = self._refused(request, refusal)
        except HoldfastError:
            # The key could not be checked, or the store is away.
            text = "The store does not answer. Try again."
            response = self._refused(request, RefusedError(503, "Not available", text))
        with ExitStack() as held:
            try:
                self._count(request, held)
            except TooManyRequestsError as error:
                busy = RefusedError(429, "Too many requests", f"{error}. Try again.")
                response = self._refused(request, busy)
            answering = response(scope, receive, _headed(send, cached=fixed))
            session = request.scope.get(SESSION)
            if self._shares is None or session is None or request.url.path == f"{PREFIX}/live":
                await answering
            else:
                await self._shares.run(_share(session), _awaited(answering))

    def _count(self, request: Request, held: ExitStack) -> None:
        """Count a request of an API key until it is answered; event streams count themselves."""
        session = request.scope.get(SESSION)
        if self._limits and session is not None and request.url.path != f"{PREFIX}/live":
            held.enter_context(self._limits.request(session.key_id))

    async def _answer(self, request: Request, *, fixed: bool) -> ASGIApp:
        if (
            self._hosts is not None
            and host_name(request.headers.get("host", "")) not in self._hosts
        ):
            text = "Without API keys Studio answers to the names of this machine only."
            raise RefusedError(421, "Wrong host name", text)
        if fixed:
            return self._inner
        if request.url.path in {"/", f"{PREFIX}/"} and request.method == "GET":
            # The cookie of a session is not sent to "/".
            return RedirectResponse(PREFIX, 303)
        if request.url.path == f"{PREFIX}/login":
            return await self._log_in(request)
        session = await self._session(request)
        request.scope[SESSION] = session
        if "tenant" in request.query_params and request.method == "GET":
            return self._switched(request, session)
        if request.method == "POST":
            form = await self._form(request)
            if not self._access.holds(session, form.get("csrf", "")):
                text = "The form is not of this session. Load the page again and repeat it."
                raise RefusedError(403, "Not done", text)
            request.scope[FORM] = form
        return self._inner

    def _switched(self, request: Request, session: Session) -> Response:
        """Redirect to the same page, and use the tenant of ``?tenant=`` from now on."""
        try:
            other = self._access.switch(session, request.query_params["tenant"])
        except NotFoundError:
            text = "Only the operator of this machine looks at other tenants."
            raise RefusedError(403, "Not done", text) from None
        except InvalidInputError as error:
            raise RefusedError(422, "Not done", f"{error}.") from None
        kept = [one for one in request.query_params.multi_items() if one[0] != "tenant"]
        return self._opened(other, request.url.path + (f"?{urlencode(kept)}" if kept else ""))

    async def _session(self, request: Request) -> Session:
        session = self._access.unseal(request.cookies.get(self._cookie, ""))
        if session is not None and not await self.valid(session):
            session = None
        if session is None:
            raise RefusedError(401, "Log in", "This browser has no session.")
        return session

    async def valid(self, session: Session) -> bool:
        """Return whether a session is still valid: a revoked key ends its sessions.

        If Studio requires API keys, a session without a key is not valid.
        """
        if not self._access.lasts(session):
            return False
        if not session.key_id:
            return self._login is None
        return self._valid is not None and await self._valid(session)

    async def _log_in(self, request: Request) -> Response:
        if request.method == "POST" and self._login is not None:
            form = await self._form(request, most=MOST_LOGIN_BYTES)
            session = await self._login(form.get("key", ""))
            wrong = "This API key is unknown, revoked or expired."
        elif request.method == "GET" and "token" in request.query_params:
            session = self._access.redeem(request.query_params["token"])
            wrong = "This link was used already, or is older than five minutes."
        else:
            raise RefusedError(401, "Log in", "")
        if session is None:
            raise RefusedError(403, "Log in", wrong)
        # A redirect, so that no token stays in the address.
        return self._opened(session, PREFIX)

    def _opened(self, session: Session, path: str) -> Response:
        response = RedirectResponse(path, 303)
        response.set_cookie(
            self._cookie,
            self._access.seal(session),
            max_age=int(SESSION_SECONDS),
            path=PREFIX,
            httponly=True,
            samesite="strict",
            secure=self._secure,
        )
        return response

    async def _form(self, request: Request, *, most: int = MOST_FORM_BYTES) -> dict[str, str]:
        """Return the fields of a form that a page of this server sent."""
        if not _same_origin(request.headers):
            raise RefusedError(403, "Not done", "The form was sent by another site.")
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        text = f"A form has at most {most} bytes."
                        raise RefusedError(413, "Not done", text)
        except TimeoutError:
            raise RefusedError(408, "Not done", "The form took too long to arrive.") from None
        try:
            fields = parse_qs(
                body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
            )
        except ValueError:
            text = f"A form has at most {MOST_FIELDS} fields."
            raise RefusedError(413, "Not done", text) from None
        return {name: values[-1] for name, values in fields.items()}

    def _refused(self, request: Request, refusal: RefusedError) -> Response:
        text = render(
            "refused.html",
            title=refusal.title,
            text=str(refusal),
            asks_key=self._login is not None,
            asks_login=refusal.title == "Log in",
            theme=theme_of(request),
        )
        return HTMLResponse(text, refusal.status)


def _share(session: Session) -> Share:
    """Return the caller to whom the event-loop time of a session is charged, as in the service."""
    if not session.key_id:
        return NOBODY
    return session.tenant, session.key_id if session.owner is None else session.owner


async def _awaited(answering: Awaitable[None]) -> None:
    await answering


def _same_origin(headers: Headers) -> bool:
    """Return whether a page of this server sent the request.

    Studio's pages send no referrer, so browsers send the origin ``null``. That is accepted only if
    the browser also says that the page is of this server.
    """
    origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "")
    if site and site != "same-origin":
        return False
    if not origin or (origin == "null" and site):
        return True
    return urlsplit(origin).netloc == headers.get("host", "")


def theme_of(request: Request) -> str:
    """Return the colour scheme that the user chose; empty for that of the system."""
    found = request.cookies.get("theme", "")
    return found if found in {"light", "dark"} else ""


def _headed(send: Send, *, cached: bool) -> Send:
    """Return a ``send`` that adds the headers of every response."""
    more = _HEADERS | {"cache-control": "no-cache" if cached else "no-store"}

    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message.get("headers", [])}
            added = [(name.encode(), value.encode()) for name, value in more.items()]
            kept = [one for one in added if one[0] not in own]
            message = {**message, "headers": [*message.get("headers", []), *kept]}
        await send(message)

    return headed
