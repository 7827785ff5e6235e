"""The caller of a request, and the request's data that all layers of the server share."""

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
from holdfast.values.tasks.records import TaskRecord
from holdfast.wiring.state import State

CALL = "holdfast.call"
"""Key of the ``Call`` in a request's scope and in the SDK's context."""

CALLER = "holdfast.caller"
"""Key of the ``Caller`` in a request's scope."""

_MOST_TENANTS = 1_000


@dataclass(frozen=True, slots=True)
class Caller:
    """The tenant, owner and API key of a request.

    >>> Caller("acme", "ana").owner
    'ana'
    """

    tenant: str
    owner: str
    key_id: str = ""
    """Id of the API key that the request had; empty without one."""

    key_text: str = field(default="", repr=False)
    scope: KeyScope = KeyScope.OWNER

    @property
    def operates(self) -> bool:
        """Whether the caller may read the metrics of the service; without auth, everyone may."""
        return self.scope is KeyScope.OPERATOR or not self.key_id

    @property
    def share(self) -> tuple[str, str]:
        """Key of the caller's share of the event loop: all API keys of an owner have one share."""
        return self.tenant, self.owner

    @property
    def writes(self) -> bool:
        """Whether the caller may change data."""
        return self.scope is not KeyScope.READER


@dataclass(slots=True)
class Call:
    """One request: its caller, the stores of the caller's tenant, and hints for the HTTP response.

    ``event_ids`` has the sequence number of each event that a stream has yielded and not yet sent.
    """

    caller: Caller
    state: State
    headers: Mapping[str, str]
    event_ids: deque[str] = field(default_factory=deque)
    hint: Hint | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the caller's key was revoked or has expired: a stream then ends."""

    over_http: bool = False
    """Whether the request came over HTTP. A stream that fails after it has begun then ends and sets
    ``failed``: if it raised the error, the SDK would log a traceback."""

    failed: A2AError | None = None

    @property
    def owner(self) -> str:
        """The owner of the tasks that the request is about."""
        return self.caller.owner

    @property
    def by(self) -> str | None:
        """Who makes the request, as the timeline of a task names them; ``None`` without a key."""
        return f"key {self.caller.key_id}" if self.caller.key_id else None

    @property
    def reads(self) -> str | AnyOwner:
        """Owner whose tasks the caller may read; any owner's for an operator."""
        return ANY_OWNER if self.caller.scope is KeyScope.OPERATOR else self.caller.owner

    def sees(self, task: TaskRecord) -> bool:
        """Return whether the caller may see a task: child tasks are visible to operators only.

        A client sees the task that it sent, not the tasks that its handler submits to other agents.
        """
        return not task.parent_id or self.caller.operates

    def header(self, name: str) -> str:
        """Return a header's value; empty if it was not sent."""
        return self.headers.get(name.lower(), "").strip()


def call_of(context: ServerCallContext) -> Call:
    """Return the ``Call`` in the SDK's context."""
    call = context.state[CALL]
    if not isinstance(call, Call):
        raise TypeError("the context was not built by this service")
    return call


class Doors:
    """Authenticates bearer keys, and opens the stores of each caller's tenant.

    ::

        caller = await doors.caller("Bearer hf_…")
    """

    def __init__(self, state: State, *, auth: bool) -> None:
        self._state = state
        self._auth = auth
        self._states: dict[str, State] = {}

    async def caller(self, authorization: str) -> Caller | None:
        """Return the caller with this ``Authorization`` header; ``None`` if the key is not valid.

        Without auth, a request without the header acts for the tenant, with no owner. A key that is
        sent is checked all the same, and a wrong one is refused.
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
        """Return whether the API key of a caller is still valid."""
        return await self._state.keys.verify(caller.key_text) is not None

    def call(self, caller: Caller, headers: Mapping[str, str], *, over_http: bool = False) -> Call:
        """Return a ``Call`` of this caller."""
        return Call(caller, self._state_of(caller.tenant), headers, over_http=over_http)

    def _state_of(self, tenant: str) -> State:
        if tenant == self._state.tenant:
            return self._state
        if tenant not in self._states:
            if len(self._states) >= _MOST_TENANTS:
                self._states.clear()
            self._states[tenant] = self._state.for_tenant(tenant)
        return self._states[tenant]
