"""Where hostile input can enter a ``TurnLog``."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.storage.turnlog import LogPosition, TurnEntry, TurnLog
from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe

CONTRACT = "turn_log"


async def _event_id(store: TurnLog, value: Any) -> Any:
    await store.append(TurnEntry(value, "s1", b"payload"))
    return (await store.claim("w1"))[-1].entry.event_id


async def _session_id(store: TurnLog, value: Any) -> Any:
    await store.append_many([TurnEntry("e1", value, b"payload")])
    return (await store.claim("w1"))[-1].entry.session_id


async def _payload(store: TurnLog, value: Any) -> Any:
    await store.append(TurnEntry("e1", "s1", value))
    return (await store.claim("w1"))[-1].entry.payload


async def _consumer(store: TurnLog, value: Any) -> Any:
    await store.claim(value)
    return NO_ECHO


async def _ids(store: TurnLog, value: Any) -> Any:
    return await store.acknowledge([value])


async def _advance(store: TurnLog, value: Any) -> Any:
    return await store.advance(value, LogPosition(2, 5))


def _bytes_only(hostile: Hostile) -> Verdict | None:
    return KEPT if isinstance(hostile.value, bytes) else REFUSED


PROBES = (
    Probe("append.event_id", "id", _event_id),
    Probe("append_many.session_id", "id", _session_id),
    Probe("append.payload", "text", _payload, judge=_bytes_only),
    Probe("claim.consumer", "id", _consumer),
    Probe("acknowledge.ids", "id", _ids, expect=lambda _value: 0),
    Probe("advance.session_id", "id", _advance, expect=lambda _value: LogPosition(2, 5)),
)
