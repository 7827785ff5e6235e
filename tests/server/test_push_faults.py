"""One push config may hang, drip or be impossible: no other delivery and no service notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

import holdfast
from holdfast import State, TaskRecord
from holdfast.server.addresses import MAX_URL_CHARACTERS, AddressGuard
from holdfast.server.service import Service
from holdfast.values.errors import UnavailableError
from holdfast.values.ids import new_ref
from tests.server.running import example_app, http_client, serving
from tests.server.test_push import Receiver

pytestmark = pytest.mark.asyncio(loop_scope="session")
IMPOSSIBLE = (
    "https://xn--/",
    "https://example.org:99999/",
    "https://[::1/",
    f"https://{'a' * 64}.example/",
    f"https://example.org/{'x' * MAX_URL_CHARACTERS}",
    "https://exa mple.org/",
    "https://example.org:port/",
    "https:///nowhere",
)


async def _submit(state: State, *urls: str) -> TaskRecord:
    push = [holdfast.PushConfig(f"p{at}", url) for at, url in enumerate(urls)]
    return await state.tasks.submit("tester", holdfast.ChatMessage.user("say hi"), push=push)


async def _until_all_failed(state: State, task: TaskRecord) -> list[str]:
    async with asyncio.timeout(60):
        while True:
            outbox = await state.tasks.list_outbox(task.id)
            firsts = {one.config.id: one for one in reversed(outbox)}
            if firsts and all(one.last_error for one in firsts.values()):
                return [firsts[one].last_error for one in sorted(firsts)]
            await asyncio.sleep(0.01)


@asynccontextmanager
async def _answering(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
) -> AsyncIterator[str]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)  # type: ignore[arg-type]
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()


class Hanging:
    """A hook that takes connections and never answers, or sends its headers for ever."""

    def __init__(self, *, drip: bool = False) -> None:
        self.drip = drip
        self.connections = 0
        self.closed = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.drip:
            writer.write(b"HTTP/1.1 200 OK\r\n")
        try:
            while not reader.at_eof():
                if self.drip:
                    writer.write(b"x-more: y\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.01)
                else:
                    await reader.read(65_536)
        except ConnectionError:
            pass
        finally:
            self.closed += 1
            writer.close()


async def test_an_impossible_url_that_is_stored_fails_alone(state: State) -> None:
    receiver = Receiver()
    async with (
        receiver.listening() as url,
        serving(example_app(), state, push_allow_private=True) as service,
        http_client(base_url=service.url) as http,
    ):
        task = await _submit(state, *IMPOSSIBLE, url)
        await receiver.until(3)
        problems = await _until_all_failed(state, task)
        assert len(problems) == len(IMPOSSIBLE)
        assert all(one.startswith("InvalidInputError: url") for one in problems)
        assert (await http.get("/health")).json()["status"] == "ok"


async def test_whatever_a_delivery_raises_is_recorded_on_its_entry(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = AddressGuard.resolve
    raised: dict[str, Exception] = {
        "overflow.example": OverflowError("port \udc80 must be 0-65535"),
        "value.example": ValueError("embedded null"),
        "group.example": ExceptionGroup("several", [OSError("a")]),
        "recursion.example": RecursionError("too deep"),
    }

    async def resolve(guard: AddressGuard, host: str, port: int) -> list[str]:
        if host in raised:
            raise raised[host]
        return await original(guard, host, port)

    monkeypatch.setattr(AddressGuard, "resolve", resolve)
    receiver = Receiver()
    async with (
        receiver.listening() as url,
        serving(example_app(), state, push_allow_private=True),
    ):
        task = await _submit(state, *(f"http://{host}/" for host in raised), url)
        await receiver.until(3)
        problems = await _until_all_failed(state, task)
        assert [one.partition(":")[0] for one in problems] == [
            "ConnectError",
            "ValueError",
            "ExceptionGroup",
            "RecursionError",
        ]
        again = await _submit(state, url)
        await receiver.until(6)
        assert again.id in {body["statusUpdate"]["taskId"] for _, body in receiver.taken}


@pytest.mark.parametrize("drip", [False, True])
async def test_a_hook_that_never_answers_is_given_its_deadline_and_no_more(
    state: State, drip: bool
) -> None:
    hanging = Hanging(drip=drip)
    async with (
        _answering(hanging.serve) as url,
        serving(example_app(), state, push_allow_private=True, push_seconds=0.2),
    ):
        task = await _submit(state, url)
        [problem] = await _until_all_failed(state, task)
        assert problem == "not delivered within 0.2 seconds"
        async with asyncio.timeout(60):
            while not hanging.closed:
                await asyncio.sleep(0.01)


async def test_an_endless_answer_is_not_read(state: State) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with (
        _answering(endless) as url,
        serving(example_app(), state, push_allow_private=True, push_seconds=3600),
    ):
        task = await _submit(state, url)
        async with asyncio.timeout(60):
            while (await state.tasks.list_outbox(task.id)) or not (
                await state.tasks.get(task.id)
            ).terminal:  # type: ignore[union-attr]
                await asyncio.sleep(0.01)


async def test_hanging_hooks_delay_neither_their_own_tenant_nor_others(state: State) -> None:
    """The hooks hang for as long as the test runs: the others can arrive only beside them."""
    hanging, receiver = Hanging(), Receiver()
    other = state.for_tenant(new_ref())
    async with (
        _answering(hanging.serve) as slow,
        receiver.listening() as url,
        serving(
            example_app(),
            state,
            push_allow_private=True,
            push_seconds=3600,
            push_at_once=5,
            push_per_tenant=3,
        ) as service,
    ):
        await _submit(state, slow, slow)
        async with asyncio.timeout(60):
            while hanging.connections < 2:
                await asyncio.sleep(0.01)
        # One slot of this tenant is left, and serves all its other hooks.
        await _submit(state, url)
        await receiver.until(3)
        # All slots of this tenant are taken: the other tenant has the rest.
        await _submit(state, *[slow] * 10)
        async with asyncio.timeout(60):
            while hanging.connections < 3:
                await asyncio.sleep(0.01)
        await _submit(other, url)
        await receiver.until(6)
        assert hanging.connections == 3
        assert hanging.closed == 0
        _stop_deliveries(service)


def _stop_deliveries(service: Service) -> None:
    """End the hanging deliveries: an orderly stop would wait for their deadline."""
    for one in service._deliverer._running:
        one.cancel()


async def test_a_database_that_fails_for_a_while_is_asked_again(
    state: State, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [UnavailableError("postgres", "gone"), RuntimeError("anything"), OSError("reset")]
    kind = type(state.ops.work)
    original = kind.tenants

    async def tenants(work: object, *args: object, **how: object) -> list[str]:
        if failures and args == ("deliveries",):
            raise failures.pop()
        return await original(work, *args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "tenants", tenants)
    receiver = Receiver()
    async with receiver.listening() as url, serving(example_app(), state, push_allow_private=True):
        await _submit(state, url)
        await receiver.until(3)
    assert not failures
    assert sum("the outbox cannot be read" in one.message for one in caplog.records) == 3


@pytest.mark.parametrize("url", IMPOSSIBLE)
async def test_an_impossible_url_is_refused_when_it_is_configured(url: str) -> None:
    with pytest.raises(holdfast.errors.InvalidInputError, match="url"):
        AddressGuard(allow_private=True).check_url(url)
