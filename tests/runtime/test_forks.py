"""Handlers of tasks that took over what another task stored."""

from __future__ import annotations

import pytest

from holdfast import App, State, TaskContext, TaskFailedError
from holdfast.runtime.cleanup import sweep
from holdfast.runtime.offload import LARGE_BYTES
from holdfast.values.tasks.records import TaskRecord

pytestmark = pytest.mark.asyncio(loop_scope="session")


class _Buyer:
    """A handler that counts what it does, and fails until it may not."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = True
        self.app = App("buyer")
        self.app.handler(self.buy)

    async def buy(self, task: TaskContext) -> str:
        large = await task.step("look", self._look)
        await task.artifact("ticket.pdf", b"x" * LARGE_BYTES, media_type="application/pdf")
        return f"{len(large)} {await task.step('pay', self._pay)}"

    async def _look(self) -> str:
        self.calls.append("look")
        return "x" * LARGE_BYTES

    async def _pay(self) -> str:
        self.calls.append("pay")
        if self.fails:
            raise TaskFailedError("no network")
        return "paid"


async def _ref(state: State, task: TaskRecord) -> str:
    [step] = [one for one in await state.tasks.steps(task.id) if one.key.name == "look"]
    ref: str = step.result["$holdfast.blob"]
    return ref


async def test_a_resumed_task_repeats_no_step_and_its_large_results_are_pinned_again(
    state: State,
) -> None:
    buyer = _Buyer()
    task = await buyer.app.submit(state, "a ticket")
    await buyer.app.run_until_idle(state)
    failed = await state.tasks.get(task.id)
    assert failed is not None
    assert failed.state == "failed"
    ref = await _ref(state, task)
    assert not (await state.blobs.stat(ref)).pinned
    buyer.fails = False
    again = await state.tasks.resume_failed(task.id)
    await buyer.app.run_until_idle(state)
    done = await state.tasks.get(again.id)
    assert done is not None
    assert (done.state, done.messages[-1].text) == ("completed", f"{LARGE_BYTES} paid")
    assert buyer.calls == ["look", "pay", "pay"]


async def test_what_a_fork_needs_is_released_with_the_last_of_the_two(state: State) -> None:
    buyer = _Buyer()
    asked: list[str] = []

    async def wait(task: TaskContext) -> str:
        await task.step("look", buyer._look)
        answer = await task.ask("Which day?")
        asked.append(answer.text)
        return answer.text

    app = App("waiter")
    app.handler(wait)
    task = await app.submit(state, "a ticket")
    await app.run_until_idle(state)
    ref = await _ref(state, task)
    fork = await state.tasks.fork(task.id, 999)
    await state.tasks.cancel(task.id)
    await sweep(state)
    assert (await state.blobs.stat(ref)).pinned
    await app.run_until_idle(state)
    assert buyer.calls == ["look"]
    await state.tasks.cancel(fork.id)
    await sweep(state)
    assert not (await state.blobs.stat(ref)).pinned
