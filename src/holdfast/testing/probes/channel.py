"""Where hostile input can enter a ``Channel``."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from holdfast.contracts.channel import Channel
from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe

CONTRACT = "channels"


async def _event(store: Channel, value: Any) -> Any:
    tail = await store.tail()
    await store.publish(value)
    (found,) = await store.read(cursor=tail)
    return found.event


async def _id(store: Channel, value: Any) -> Any:
    tail = await store.tail()
    await store.publish({"id": value}, id=value)
    (found,) = await store.read(cursor=tail)
    return found.id if value is not None else None


async def _one_event(store: Channel) -> None:
    await store.publish({})


async def _read_after(store: Channel, value: Any) -> Any:
    await store.read(cursor=value)
    return NO_ECHO


async def _subscribe_after(store: Channel, value: Any) -> Any:
    async with aclosing(store.subscribe(cursor=value)) as stream:
        await anext(stream)
    return NO_ECHO


def _keep_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


def _only_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else REFUSED


PROBES = (
    Probe("publish.event", "object", _event),
    Probe("publish.id", "id", _id, judge=_keep_none),
    Probe("read.cursor", "text", _read_after, _one_event, judge=_only_none),
    Probe("subscribe.cursor", "text", _subscribe_after, _one_event, judge=_only_none),
)
