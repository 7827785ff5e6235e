"""Who may use Studio: links that work once, signed session cookies, and CSRF tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from holdfast.values.checks import check_id
from holdfast.values.errors import NotFoundError

LINK_SECONDS = 300.0
"""How long a login link works."""

SESSION_SECONDS = 12 * 3600.0
"""How long a session lasts at most."""

_MOST_LINKS = 100
_SIGNATURE = 43


class Session(msgspec.Struct, frozen=True):
    """A browser that has logged in.

    >>> Session("s1", "default", until=0.0).operator
    True
    """

    id: str
    tenant: str
    until: float
    """Unix time at which the session ends."""

    owner: str | None = None
    """The owner whose data the session shows; ``None`` for an operator: the whole tenant."""

    key_id: str = ""
    """The API key with which the session was opened; empty for a login link."""

    writes: bool = True

    @property
    def operator(self) -> bool:
        """Whether the session sees the data of every owner."""
        return self.owner is None

    @property
    def local(self) -> bool:
        """Whether the session was opened by the login link that this machine printed."""
        return not self.key_id


@dataclass(slots=True)
class _Link:
    tenant: str
    until: float


class Access:
    """Login links, sessions and form tokens of one Studio.

    All instances that share ``secret`` accept each other's sessions. ::

        access = Access()
        session = access.redeem(access.link("default"))
    """

    def __init__(
        self, secret: bytes | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._secret = secret or secrets.token_bytes(32)
        self._clock = clock
        self._links: dict[str, _Link] = {}

    def link(self, tenant: str) -> str:
        """Return a token that opens one session within five minutes."""
        now = self._clock()
        self._links = {key: one for key, one in self._links.items() if one.until > now}
        if len(self._links) >= _MOST_LINKS:
            self._links.pop(next(iter(self._links)))
        token = secrets.token_urlsafe(32)
        self._links[_digest(token)] = _Link(tenant, now + LINK_SECONDS)
        return token

    def redeem(self, token: str) -> Session | None:
        """Open a session with a token. Returns ``None`` if it is unknown, used or too old."""
        found = self._links.pop(_digest(token), None)
        if found is None or found.until <= self._clock():
            return None
        return self.open(found.tenant)

    def open(
        self, tenant: str, *, owner: str | None = None, key_id: str = "", writes: bool = True
    ) -> Session:
        """Open a session."""
        until = self._clock() + SESSION_SECONDS
        return Session(secrets.token_urlsafe(18), tenant, until, owner, key_id, writes)

    def switch(self, session: Session, tenant: str) -> Session:
        """Return the session for another tenant. Raises unless it is of this machine's operator."""
        if not session.local or not session.operator:
            raise NotFoundError("tenant", tenant)
        return msgspec.structs.replace(session, tenant=check_id("tenant", tenant))

    def seal(self, session: Session) -> str:
        """Return the value of a session's cookie."""
        text = base64.urlsafe_b64encode(msgspec.json.encode(session)).decode().rstrip("=")
        return f"{text}.{self._sign('session', text)}"

    def unseal(self, cookie: str) -> Session | None:
        """Return the session of a cookie; ``None`` if its signature is wrong or it has expired."""
        text, _, signature = cookie.rpartition(".")
        if not _equal(signature, self._sign("session", text)):
            return None
        padded = text + "=" * (-len(text) % 4)
        session = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Session)
        return session if self.lasts(session) else None

    def lasts(self, session: Session) -> bool:
        """Return whether a session has not expired."""
        return session.until > self._clock()

    def form_token(self, session: Session) -> str:
        """Return the CSRF token of the forms of a session; another tenant has another token."""
        return self._sign("form", f"{session.id}:{session.tenant}")

    def holds(self, session: Session, token: str) -> bool:
        """Return whether a form token belongs to the session."""
        return _equal(token, self.form_token(session))

    def _sign(self, what: str, text: str) -> str:
        made = hmac.digest(self._secret, f"{what}:{text}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(made).decode()[:_SIGNATURE]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())
