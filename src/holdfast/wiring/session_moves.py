"""The upgrade to sessions with an owner: each session is moved once, to an id with its owner.

In earlier versions all owners of a context shared the session with its id. A migration records the
contexts that have an owner. The next process that opens the stores moves their sessions; the
migration cannot, because a part of them may be in Redis. Every step can be repeated: if a process
dies, the next one continues.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from holdfast.contracts.short_term import ShortTerm
from holdfast.spi.session_moves import Moved, SessionMove, SessionMoves
from holdfast.values.checks import check_id, check_unreserved
from holdfast.values.errors import (
    ConflictError,
    HoldfastError,
    NotFoundError,
    NotSupportedError,
    VersionConflictError,
)
from holdfast.values.owners import UNASSIGNED, owned_id
from holdfast.wiring.connections import Connections

_log = logging.getLogger("holdfast")
PAGE = 500
LISTED = 20
"""Maximum number of contexts without an owner that are listed by name."""

DRAIN_SECONDS = 600.0
"""How long the upgrade waits until all events in Redis are in Postgres."""


async def move_sessions(connections: Connections) -> int:
    """Move the sessions that the migration has recorded. Returns how many.

    ::

        await move_sessions(connections)
    """
    moves = connections.moves
    if moves is None or not await moves.any():
        return 0
    if connections.hybrid is not None:
        await connections.hybrid.consolidator.drain(limit_seconds=DRAIN_SECONDS)
    await moves.skip_empty()
    count, left, last = 0, 0, None
    while page := await moves.pending(after=last, limit=PAGE):
        for move in page:
            if await _move(connections, moves, move):
                count += 1
            else:
                left += 1
        last = page[-1]
        _log.info("upgrade: %s sessions moved to their owners", count)
    if left:
        _log.warning(
            "upgrade: %s sessions are in Redis and stay closed to tasks until a process with "
            "REDIS_URL opens the state",
            left,
        )
    return count


async def _move(connections: Connections, moves: SessionMoves, move: SessionMove) -> bool:
    hybrid = connections.hybrid
    if move.needs_hot_store and hybrid is None:
        return False
    prefix = UNASSIGNED if move.owner is None else owned_id(move.owner, "")
    old = ("", move.session)
    outcome = await _move_log(connections, move.tenant, old, (prefix, move.session))
    if outcome == "taken":
        # The owner already has a newer session under this id: an operator decides about the old.
        prefix = UNASSIGNED
        outcome = await _move_log(connections, move.tenant, old, (prefix, move.session))
    if outcome in ("hot", "taken"):
        return False
    states = connections.stores(move.tenant).short_term
    if states is not None:
        await _move_state(states, move.session, prefix + move.session)
    await moves.done(move)
    return True


async def _move_log(
    connections: Connections, tenant: str, old: tuple[str, str], new: tuple[str, str]
) -> Moved:
    """Move the log of a session; ``old`` and ``new`` are pairs of a prefix and a name."""
    moves = connections.moves
    if moves is None:
        raise NotSupportedError("inmemory", "moving sessions", why="it has no stored sessions")
    outcome = await moves.move(tenant, old, new)
    if outcome == "hot" and connections.hybrid is not None:
        await connections.hybrid.consolidator.unload(tenant, "".join(old))
        outcome = await moves.move(tenant, old, new)
    return outcome


async def _move_state(states: ShortTerm, old: str, new: str) -> bool:
    """Move a working state, if there is one; a state at the new id is kept."""
    found = await states.snapshot(old)
    if not found.version:
        return False
    left = None
    if found.expires_at is not None:
        left = max((found.expires_at - datetime.now(UTC)).total_seconds(), 0.001)
    try:
        await states.set_state(new, found.state, expected_version=0, ttl_seconds=left)
    except VersionConflictError:
        _log.info("upgrade: the state of session %r is there already", new)
    await states.clear(old)
    return True


async def unassigned_contexts(connections: Connections) -> list[str]:
    """Return a line for ``holdfast doctor`` per context without an owner; empty if none."""
    if connections.moves is None:
        return []
    try:
        found = await connections.moves.unassigned(limit=LISTED + 1)
    except HoldfastError as error:
        return [f"contexts without an owner cannot be listed: {error}"]
    listed = [
        f"context {context!r} of tenant {tenant!r} was used by several owners, and nobody reads "
        f"its old session: holdfast contexts assign {context} --owner NAME --tenant {tenant}"
        for tenant, context in found[:LISTED]
    ]
    return [*listed, "and more such contexts"] if len(found) > LISTED else listed


async def assign_context(
    connections: Connections, tenant: str, session_id: str, owner: str, new_id: str | None
) -> None:
    """Assign the session of a context without an owner to an owner.

    ::

        await assign_context(connections, "acme", "c1", "ana", None)
    """
    context = check_id("session_id", session_id)
    owner = check_unreserved("owner", check_id("owner", owner))
    name = context if new_id is None else check_unreserved("new_id", check_id("new_id", new_id))
    prefix = owned_id(owner, "")
    outcome = await _move_log(connections, tenant, (UNASSIGNED, context), (prefix, name))
    if outcome == "taken":
        raise ConflictError(
            "context", name, f"{owner} has a session {name!r} already: choose another id with --as"
        )
    states = connections.stores(tenant).short_term
    moved = states is not None and await _move_state(states, UNASSIGNED + context, prefix + name)
    if outcome == "absent" and not moved:
        raise NotFoundError(
            "context",
            context,
            f"no old session of context {context!r} waits for an owner: see `holdfast doctor`",
        )
