"""Which embedder the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast.values.errors import ConfigError, UnknownSchemeError
from holdfast.wiring.embedders import KNOWN, embedder_named
from holdfast.wiring.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_setting_names_an_embedder() -> None:
    assert await embedder_named("none") is None
    assert await embedder_named("") is None
    names = {}
    for text in ("static", "hash", "openai:http://localhost:1/v1?model=tiny&dimension=8"):
        found = await embedder_named(text)
        assert found is not None
        names[text] = (found.name, found.dimension)
    assert list(names.values()) == [("wordllama-256", 256), ("hash-64", 64), ("tiny", 8)]


@pytest.mark.parametrize("text", ["bert", "static:big", "onnx", "openai:", "Static"])
async def test_an_unknown_embedder_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        await embedder_named(text)
    assert caught.value.known == KNOWN


async def test_an_incomplete_address_says_how_it_is_written(tmp_path: Path) -> None:
    for text in ("openai:http://x", "openai:http://x?model=m", "openai:http://x?model=m&dim=3"):
        with pytest.raises(ConfigError, match="dimension=N"):
            await embedder_named(text, key="s3cret")
    with pytest.raises(ConfigError, match=r"model\.onnx"):
        await embedder_named(f"onnx:{tmp_path}")


async def test_the_key_and_the_password_of_a_service_never_show() -> None:
    settings = Settings(
        embedder="openai:https://ana:s3cret@x/v1?model=m&dimension=3", embedder_key="s3cret"
    )
    assert "s3cret" not in repr(settings)
    assert "embedder_key='***'" in repr(settings)


async def test_an_opened_state_embeds_by_the_setting_unless_it_is_given_one() -> None:
    settings = Settings.from_environment({"HOLDFAST_EMBEDDER": "hash", "STORAGE_TYPE": "memory"})
    async with holdfast.open(settings=settings) as state:
        memory = state.memory("ana", session_id="s1")
        await memory.record("note", {"note": "the tide is low"})
        [hit] = await memory.recall("tide")
        assert hit.found_by == ("lexical", "semantic")
    async with holdfast.open("memory:", settings=Settings(embedder="none")) as state:
        memory = state.memory("ana", session_id="s1")
        await memory.record("note", {"note": "the tide is low"})
        [hit] = await memory.recall("tide")
        assert hit.found_by == ("lexical",)
