"""Who calls, and what a call carries through the layers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from a2a.server.context import ServerCallContext
from a2a.utils.errors import A2AError

from holdfast.server.errors import Hint
from holdfast.values.keys import KeyScope
from holdfast.values.owners import ANY_OWNER, AnyOwner
from holdfast.wiring.state import State

CALL = "holdfast.call"
"""Where a call is kept in a request's scope and in the SDK's context."""

CALLER = "holdfast.caller"
"""Where the caller is kept in a request's scope."""

_MOST_TENANTS = 1_000


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request is served.

    >>> Caller("acme", "ana").owner
    'ana'
    """

    tenant: str
    owner: str
    key_id: str = ""
    """Which API key they sent; empty without one."""

    key_text: str = field(default="", repr=False)
    scope: KeyScope = KeyScope.OWNER

    @property
    def operates(self) -> bool:
        """Whether they may see the figures of the service; where no key is asked for, all may."""
        return self.scope is KeyScope.OPERATOR or not self.key_id

    @property
    def share(self) -> tuple[str, str]:
        """Whose share of the event loop they use: all keys of an owner have one share."""
        return self.tenant, self.owner

    @property
    def writes(self) -> bool:
        """Whether they may change anything."""
        return self.scope is not KeyScope.READER


@dataclass(slots=True)
class Call:
    """One request: its caller, the stores of the caller's tenant, and what to say in HTTP's words.

    ``event_ids`` has the sequence of each event that a stream has yielded and not yet sent.
    """

    caller: Caller
    state: State
    headers: Mapping[str, str]
    event_ids: deque[str] = field(default_factory=deque)
    hint: Hint | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the caller's key has ended: a stream ends with it."""

    over_http: bool = False
    """A stream that fails after it has begun ends, and leaves its error in ``failed``: of an error
    that is raised, the SDK would log a traceback."""

    failed: A2AError | None = None

    @property
    def owner(self) -> str:
        """Whose tasks it is about."""
        return self.caller.owner

    @property
    def reads(self) -> str | AnyOwner:
        """Whose tasks it may read: the owner's; everybody's for an operator."""
        return ANY_OWNER if self.caller.scope is KeyScope.OPERATOR else self.caller.owner

    def header(self, name: str) -> str:
        """A header's value; empty where it is not sent."""
        return self.headers.get(name.lower(), "").strip()


def call_of(context: ServerCallContext) -> Call:
    """The call that the SDK's context belongs to."""
    call = context.state[CALL]
    if not isinstance(call, Call):
        raise TypeError("the context was not built by this service")
    return call


class Doors:
    """Bearer keys in, callers out; and the stores of each caller's tenant.

    ::

        caller = await doors.caller("Bearer hf_…")
    """

    def __init__(self, state: State, *, auth: bool) -> None:
        self._state = state
        self._auth = auth
        self._states: dict[str, State] = {}

    async def caller(self, authorization: str) -> Caller | None:
        """Who sends this ``Authorization`` header; ``None`` for nobody we know.

        Without auth, a request without the header is the tenant's own, of no owner; a key is
        honoured all the same, and a wrong one refused.
        """
        if not authorization and not self._auth:
            return Caller(self._state.tenant, "")
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        text = text.strip()
        key = await self._state.keys.verify(text)
        return None if key is None else Caller(key.tenant, key.owner, key.id, text, key.scope)

    async def holds(self, caller: Caller) -> bool:
        """Whether the key of a caller is still a live one."""
        return await self._state.keys.verify(caller.key_text) is not None

    def call(self, caller: Caller, headers: Mapping[str, str], *, over_http: bool = False) -> Call:
        """A call of this caller."""
        return Call(caller, self._state_of(caller.tenant), headers, over_http=over_http)

    def _state_of(self, tenant: str) -> State:
        if tenant == self._state.tenant:
            return self._state
        if tenant not in self._states:
            if len(self._states) >= _MOST_TENANTS:
                self._states.clear()
            self._states[tenant] = self._state.for_tenant(tenant)
        return self._states[tenant]
