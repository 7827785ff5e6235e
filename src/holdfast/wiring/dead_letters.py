"""Reads a dead letter, an event that could not be stored, and stores its event again."""

from __future__ import annotations

from holdfast.spi.hybrid.durable_log import DeadLetter
from holdfast.spi.hybrid.hot_entry import check_entry, unpack
from holdfast.values.errors import NotFoundError
from holdfast.wiring.state import State


async def get_dead_letter(state: State, id: str) -> DeadLetter:
    """Return a dead letter of the state's tenant. Raises ``NotFoundError`` if there is none.

    ::

        letter = await get_dead_letter(state, "d1")
    """
    found = await state.ops.hybrid.durable.get_dead_letter(state.tenant, id)
    if found is None:
        raise NotFoundError("dead letter", id)
    return found


async def replay_dead_letter(state: State, id: str) -> tuple[int, int]:
    """Try again to store the event of a dead letter. Returns its position: epoch and seq.

    ::

        epoch, seq = await replay_dead_letter(state, "d1")
    """
    letter = await get_dead_letter(state, id)
    entry = check_entry(unpack(letter.session, letter.payload))
    return await state.ops.hybrid.durable.replay(state.tenant, letter, entry)
