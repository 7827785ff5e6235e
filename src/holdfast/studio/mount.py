"""Studio in a service: users log in by API keys, or by a link if the service requires no keys."""

from __future__ import annotations

import asyncio
import hashlib

from holdfast.server.limits import KeyLimits
from holdfast.server.loop_shares import LoopShares
from holdfast.server.options import LOOPBACK_NAMES, ServiceOptions
from holdfast.studio.access import Access, Session
from holdfast.studio.app import studio
from holdfast.studio.guard import Guard
from holdfast.values.errors import ConfigError
from holdfast.values.keys import KeyScope
from holdfast.wiring.state import State

SECRET_CHARACTERS = 32
"""Minimum length of the secret: a shorter one could be guessed from a cookie."""


class StudioMount:
    """Studio for a service.

    The API key of an owner shows the data of the owner, and that of an operator the whole tenant. A
    key with read scope cannot change anything. Instances with the same ``secret`` accept each
    other's sessions. ``limits`` and ``shares`` are those of the service, so that a key's requests
    to both are counted together. ::

        mount = StudioMount(state, options, secret="…")
        service = Service(app, state, options, mounts={"/studio": mount.asgi})
    """

    def __init__(
        self,
        state: State,
        options: ServiceOptions,
        *,
        secret: str = "",
        closing: asyncio.Event | None = None,
        limits: KeyLimits | None = None,
        shares: LoopShares | None = None,
    ) -> None:
        if 0 < len(secret) < SECRET_CHARACTERS:
            raise ConfigError(
                f"HOLDFAST_STUDIO_SECRET must have {SECRET_CHARACTERS} characters or more: "
                "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
            )
        self._state = state
        self._options = options
        self._access = Access(hashlib.sha256(secret.encode()).digest() if secret else None)
        self.asgi: Guard = studio(
            state,
            self._access,
            hosts=None if options.auth else frozenset({*LOOPBACK_NAMES, options.host.lower()}),
            secure=bool(options.tls_cert) or options.public_url.startswith("https://"),
            closing=closing,
            login=self._login if options.auth else None,
            valid=self._valid,
            limits=limits or KeyLimits(options),
            shares=shares,
        )

    def link(self, url: str) -> str:
        """Return the URL of Studio in the service; without API keys, one that logs in once."""
        if self._options.auth:
            return f"{url}/studio"
        return f"{url}/studio/login?token={self._access.link(self._state.tenant)}"

    async def _login(self, text: str) -> Session | None:
        key = await self._state.keys.verify(text)
        if key is None:
            return None
        return self._access.open(
            key.tenant,
            owner=None if key.scope is KeyScope.OPERATOR else key.owner,
            key_id=key.id,
            writes=key.scope is not KeyScope.READER,
        )

    async def _valid(self, session: Session) -> bool:
        own = session.tenant == self._state.tenant
        state = self._state if own else self._state.for_tenant(session.tenant)
        key = await state.keys.live(session.key_id)
        if key is None:
            return False
        owner = None if key.scope is KeyScope.OPERATOR else key.owner
        return (owner, key.scope is not KeyScope.READER) == (session.owner, session.writes)
