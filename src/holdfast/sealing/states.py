"""Encrypted working states: each key and value, stored under a keyed digest of the key."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal
from holdfast.spi.states import StateStorage
from holdfast.values.codec import encode_json
from holdfast.values.owners import split_owned
from holdfast.values.sealed import is_sealed
from holdfast.values.states import ExpectedWrite, StateSnapshot, StateVersion, StateWrite


class SealedStates(StateStorage):
    """Encrypts what a ``StateStorage`` stores.

    ::

        states = SealedStates(PostgresStates(engine), sealing)
    """

    def __init__(self, inner: StateStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        self.keeps_versions = inner.keeps_versions

    async def read(self, session: str, keys: Collection[str] | None) -> StateSnapshot:
        """Return a state, or some keys of it."""
        blind = await self._seal.blind()
        asked = keys
        if keys is not None and blind is not None:
            asked = {*keys, *(blind.digest("state", key) for key in keys)}
        return await open_state(self._seal, session, await self._inner.read(session, asked))

    async def read_many(self, sessions: Sequence[str]) -> list[StateSnapshot]:
        """Return the states of sessions."""
        found = await self._inner.read_many(sessions)
        opener = await self._seal.opener(*(one for each in found for one in each.state.values()))
        if opener.is_plain:
            return found
        return [_opened(opener, session, one) for session, one in zip(sessions, found, strict=True)]

    async def write(self, write: StateWrite, expected: int | None) -> int:
        """Replace or patch a state."""
        return await self._inner.write(await seal_write(self._seal, write), expected)

    async def clear(self, session: str) -> None:
        """Delete a state."""
        await self._inner.clear(session)

    async def versions(self, session: str, before: int, limit: int) -> list[StateVersion]:
        """Return the kept versions of a state."""
        return await self._inner.versions(session, before, limit)

    async def read_version(self, session: str, version: int) -> StateSnapshot | None:
        """Return a kept version of a state, or ``None``."""
        found = await self._inner.read_version(session, version)
        return None if found is None else await open_state(self._seal, session, found)


async def seal_write(sealing: Seal, write: StateWrite) -> StateWrite:
    """Return a write with its values encrypted.

    ::

        await storage.write(await seal_write(sealing, write), None)
    """
    sealing.check("state", *write.values.values())
    own = split_owned(write.session)[1]
    sealer, blind = await sealing.session_sealer(write.session), await sealing.blind()
    if sealer is None or blind is None:
        return write
    values: dict[str, str] = {}
    for key, text in write.values.items():
        digest = blind.digest("state", key)
        content = f"[{encode_json(key)},{text}]"
        values[digest] = sealer.json(Place("state", own, digest), content)
    dropped = [blind.digest("state", key) for key in write.dropped]
    if not write.fresh:
        # What was written before the tenant was sealed has the key itself.
        dropped += [*write.dropped, *write.values]
    return dataclasses.replace(write, values=values, dropped=dropped)


async def seal_patches(sealing: Seal, patches: Sequence[ExpectedWrite]) -> list[ExpectedWrite]:
    """Return patches with their values encrypted."""
    return [ExpectedWrite(await seal_write(sealing, one), at) for one, at in patches]


async def open_state(sealing: Seal, session: str, found: StateSnapshot) -> StateSnapshot:
    """Return a snapshot with its values decrypted.

    ::

        snapshot = await open_state(sealing, "s1", stored)
    """
    if not any(is_sealed(one) for one in found.state.values()):
        return found
    return _opened(await sealing.opener(*found.state.values()), session, found)


def _opened(opener: Opener, session: str, found: StateSnapshot) -> StateSnapshot:
    if not any(is_sealed(one) for one in found.state.values()):
        return found
    state = _values(opener, session, found.state)
    return dataclasses.replace(found, state=state)


def _values(opener: Opener, session: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    owner, own = split_owned(session)
    state = {key: one for key, one in stored.items() if not is_sealed(one)}
    for digest, value in stored.items():
        if is_sealed(value):
            key, plain = opener.json(owner, Place("state", own, digest), value)
            state[key] = plain
    return state
