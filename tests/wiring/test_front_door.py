from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import ChatMessage
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.values.errors import ConfigError, InvalidInputError
from holdfast.wiring import notices
from holdfast.wiring.engines import EMBEDDED
from holdfast.wiring.parts import ConnectedEngine
from scripts.generate_docs import PROTOCOLS

pytestmark = pytest.mark.asyncio

ATTRIBUTES = {
    *("blobs", "history", "vectors", "graph", "short_term", "long_term", "boards", "tasks"),
    *("checkpoints", "episodes", "items", "keys", "schedules"),
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STORAGE_TYPE", "DATABASE_URL", "HOLDFAST_DIR", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(notices, "_said", set())


async def test_every_attribute_satisfies_its_protocol() -> None:
    async with holdfast.open("memory:") as state:
        for name in ATTRIBUTES:
            assert isinstance(getattr(state, name), PROTOCOLS[name])
        assert isinstance(state.channel("alerts"), holdfast.Channel)
        assert not isinstance(state.graph, holdfast.CypherCapable)


async def test_every_attribute_reports_its_engine() -> None:
    async with holdfast.open("memory:") as state:
        assert state.engines == dict.fromkeys([*ATTRIBUTES, "channel"], "inmemory")
        assert repr(state) == "<State tenant='default' on inmemory>"


async def test_nothing_configured_is_memory_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        async with holdfast.open() as state:
            assert set(state.engines.values()) == {"inmemory"}
    [record] = caplog.records
    assert record.name == "holdfast"
    assert "HOLDFAST_DIR" in record.getMessage()
    assert "open('./.holdfast')" in record.getMessage()


async def test_a_program_without_logging_reads_the_warning_on_stderr_once(tmp_path: Path) -> None:
    program = (
        "import asyncio, holdfast\n"
        "async def main():\n"
        "    for _ in range(2):\n"
        "        async with holdfast.open(): pass\n"
        "asyncio.run(main())\n"
    )
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    _, reply = await run.communicate()
    assert run.returncode == 0
    [line] = reply.decode().splitlines()
    assert line.startswith("holdfast: no storage is configured")


async def test_memory_by_name_or_by_environment_warns_of_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with holdfast.open("memory:"):
        pass
    monkeypatch.setenv("STORAGE_TYPE", "memory")
    async with holdfast.open():
        pass
    assert caplog.records == []


async def test_the_state_may_be_awaited_and_closed_by_hand() -> None:
    state = await holdfast.open("memory:")
    await state.short_term.set_state("s1", {"a": 1})
    await state.aclose()
    await state.aclose()
    with pytest.raises(ConfigError, match="closed"):
        _ = state.short_term


async def test_what_is_not_opened_yet_says_how_to_open_it() -> None:
    opening: Any = holdfast.open("memory:")
    with pytest.raises(AttributeError, match=r"'history': .*`async with .* await .*blocking"):
        _ = opening.history
    assert not hasattr(opening, "history")
    with pytest.raises(ConfigError, match=r"`async with .* await .*blocking"), opening:
        pass


async def test_a_folder_may_be_a_path_or_below_the_home_folder() -> None:
    for url in (Path("./st"), Path("st"), Path("/srv/st"), Path("~/st"), "~/st", "./st"):
        assert holdfast.open(url)._spec is EMBEDDED
    assert holdfast.open(Path("st"))._request.url == "./st"
    assert holdfast.open(Path("/srv/st"))._request.url == f"{os.sep}srv{os.sep}st"
    for bad in (5, b"./st"):
        with pytest.raises(InvalidInputError, match=type(bad).__name__) as caught:
            holdfast.open(bad)  # type: ignore[arg-type]
        assert caught.value.field == "url"


async def test_an_embedder_may_be_named_as_in_the_environment() -> None:
    async with holdfast.open("memory:", embedder="hash") as state:
        memory = state.memory("ana", session_id="s1")
        await memory.record("note", {"note": "the tide is low"})
        [hit] = await memory.recall("tide")
        assert hit.found_by == ("lexical", "semantic")
    with pytest.raises(holdfast.errors.UnknownSchemeError, match="known are none, static"):
        await holdfast.open("memory:", embedder="bert")


@pytest.mark.parametrize("bad", [object(), 5, HashEmbedder])
async def test_what_is_no_embedder_is_refused_before_it_is_needed(bad: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        holdfast.open("memory:", embedder=bad)
    assert caught.value.field == "embedder"


async def test_an_embedder_with_a_bad_weight_is_refused_before_anything_is_opened() -> None:
    embedder = HashEmbedder()
    embedder.lexical_weight = 7
    with pytest.raises(InvalidInputError) as caught:
        holdfast.open("memory:", embedder=embedder)
    assert caught.value.field == "embedder.lexical_weight"


async def test_two_opened_states_share_nothing() -> None:
    async with holdfast.open("memory:") as one, holdfast.open("memory:") as two:
        await one.short_term.set_state("s1", {"a": 1})
        assert await two.short_term.get_state("s1") == {}


async def test_a_tenant_sees_only_its_own_over_the_same_connections() -> None:
    async with holdfast.open("memory:", tenant="mine") as state:
        other = state.for_tenant("acme")
        await state.short_term.set_state("s1", {"whose": "mine"})
        await other.short_term.set_state("s1", {"whose": "acme"})
        assert await state.short_term.get_state("s1") == {"whose": "mine"}
        assert (state.tenant, other.tenant) == ("mine", "acme")
        again = state.for_tenant("acme")
        assert await again.short_term.get_state("s1") == {"whose": "acme"}
        await other.aclose()
        assert await state.short_term.get_state("s1") == {"whose": "mine"}
    with pytest.raises(ConfigError, match="closed"):
        _ = other.short_term


async def test_a_bad_tenant_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        holdfast.open("memory:", tenant="")
    assert caught.value.field == "tenant"
    async with holdfast.open("memory:") as state:
        with pytest.raises(InvalidInputError):
            state.for_tenant("a\nb")


async def test_a_state_on_another_event_loop_is_a_clear_error() -> None:
    failures = []
    async with holdfast.open("memory:") as state:

        async def elsewhere() -> None:
            try:
                await state.short_term.get_state("s1")
            except ConfigError as error:
                failures.append(str(error))

        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        thread.join()
    assert failures
    assert "another event loop" in failures[0]


async def test_health_names_the_engine_what_it_serves_and_how_durable_it_is() -> None:
    async with holdfast.open("memory:") as state:
        health = await state.ops.health()
    assert health.status == "ok"
    [engine] = health.engines
    assert (engine.engine, engine.status) == ("inmemory", "ok")
    assert set(engine.serves) >= ATTRIBUTES
    assert "none" in engine.durability


async def test_an_engine_that_is_down_tells_how_long_it_was_waited_for() -> None:
    async def ping() -> None:
        await asyncio.sleep(0)
        raise holdfast.errors.UnavailableError("toy", "connection refused")

    async def close() -> None:
        pass

    health = await ConnectedEngine("toy", ("history",), "none", ping, close).probe()
    assert (health.status, health.detail) == ("down", "toy: connection refused")
    assert health.latency_seconds > 0


@pytest.mark.parametrize("how", [{"url": "redis://127.0.0.1:1"}, {"redis": "redis://127.0.0.1:1"}])
async def test_an_engine_that_cannot_be_reached_says_so(how: dict[str, str]) -> None:
    with pytest.raises(holdfast.errors.UnavailableError):
        await holdfast.open(**({"url": "memory:"} | how))  # type: ignore[arg-type]


async def test_age_needs_postgres_and_an_unknown_graph_lists_the_known_ones() -> None:
    with pytest.raises(holdfast.errors.ConfigError, match="on age only"):
        await holdfast.open("memory:", graph="age")
    with pytest.raises(holdfast.errors.UnknownSchemeError, match="tables"):
        holdfast.open("memory:", graph="neo4j")


@pytest.mark.parametrize("how", [{"redis": "http://x"}, {"blobs": "ftp://x"}, {"redis": "memory:"}])
async def test_a_part_with_an_unknown_url_lists_the_known_ones(how: dict[str, str]) -> None:
    with pytest.raises(holdfast.errors.UnknownSchemeError, match="known are"):
        holdfast.open("memory:", **how)  # type: ignore[arg-type]


async def test_the_clock_of_the_engine_can_be_the_tests_own() -> None:
    clock = holdfast.ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    async with holdfast.open("memory:", clock=clock) as state:
        await state.short_term.set_state("s1", {"a": 1}, ttl_seconds=60)
        clock.advance(61)
        assert await state.short_term.get_state("s1") == {}


async def test_a_transcript_is_the_session_log_of_the_same_state() -> None:
    async with holdfast.open("memory:") as state:
        agent = holdfast.AgentId.parse("planner/a1")
        await state.history.append(agent, ChatMessage.user("the tide"), session_id="s1")
        [found] = await state.episodes.recall(agent, "tide")
        assert found.event.type == "message"
