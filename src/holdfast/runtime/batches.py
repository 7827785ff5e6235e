"""Sends requests of many tasks together: while one batch is in flight, the next one collects."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from holdfast.values.errors import TimedOutError

T = TypeVar("T")
R = TypeVar("R")


class _Waiting(NamedTuple, Generic[T, R]):
    item: T
    answer: asyncio.Future[R]
    context: contextvars.Context


class Batches(Generic[T, R]):
    """A queue of items of one kind. ``send`` returns the answer, or an error, for each item.

    An error that ``send`` raises is that of each item. If it is cancelled, each item gets a
    ``TimedOutError``. At most ``most`` items are sent at once.

    ::

        reached = await Batches(send_leases, most=500).add(held.lease)
    """

    def __init__(
        self, send: Callable[[list[T]], Awaitable[Sequence[R | Exception]]], *, most: int
    ) -> None:
        self._send = send
        self._most = most
        self._waiting: list[_Waiting[T, R]] = []
        self._sender: asyncio.Task[None] | None = None

    async def add(self, item: T) -> R:
        """Send an item with those that wait at the same time. Returns its answer.

        ::

            reached = await completions.add(held.lease)
        """
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(item, answer, contextvars.copy_context()))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                # In the context of its first item: a trace shows the request below that task.
                sending = self._sent(batch)
                await asyncio.create_task(sending, context=batch[0].context)
        except asyncio.CancelledError:
            # What still waits would be sent only when another item is added.
            _refuse(self._waiting)
            self._waiting = []
            raise

    async def _sent(self, batch: list[_Waiting[T, R]]) -> None:
        answers: list[tuple[_Waiting[T, R], R | Exception]]
        try:
            answered = await self._send([one.item for one in batch])
            answers = list(zip(batch, answered, strict=True))
        except Exception as error:  # noqa: BLE001 - each that waits raises it
            answers = [(one, error) for one in batch]
        except asyncio.CancelledError:
            _refuse(batch)
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            return
        for one, answer in answers:
            if one.answer.done():
                continue
            if isinstance(answer, Exception):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)


def _refuse(waiting: list[_Waiting[T, R]]) -> None:
    for one in waiting:
        if not one.answer.done():
            one.answer.set_exception(TimedOutError("batch", "the request was cancelled"))
