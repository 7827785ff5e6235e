from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.engines.embedders import limited
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.engines.embedders.limited import LimitedEmbedder
from holdfast.spi.embedding import (
    Embedder,
    EmbeddingMode,
    Turn,
    TurnEmbedder,
    embed_possible,
    embed_texts,
    embed_turns,
    lexical_weight,
    reads_context,
)
from holdfast.testing.embedders import ContextEmbedder, HangingEmbedder
from holdfast.testing.hostile import TEXTS
from holdfast.values.errors import (
    EngineError,
    InvalidInputError,
    TimedOutError,
    UnavailableError,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Scripted(Embedder):
    """Answers with what the test gives it, or raises it."""

    name = "scripted"
    dimension = 2

    def __init__(self, answer: Sequence[Sequence[float]] | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[Sequence[str], str]] = []

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> Sequence[Sequence[float]]:
        self.asked.append((texts, mode))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


async def test_the_hash_embedder_is_an_embedder() -> None:
    embedder = HashEmbedder(dimension=32)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == ("hash-32", 32)


async def test_texts_that_share_words_are_near() -> None:
    [tide, tides, moon] = await HashEmbedder().embed(
        ["low tide at noon", "the LOW tides, at noon!", "a green cheese moon"]
    )
    assert _cosine(tide, tides) == pytest.approx(1)
    assert _cosine(tide, moon) < 0.6


async def test_every_text_has_a_vector_of_length_1() -> None:
    texts = [text.value for text in TEXTS if isinstance(text.value, str)]
    for dimension in (1, 3, 64, 1536):
        vectors = await HashEmbedder(dimension).embed(texts)
        assert [len(vector) for vector in vectors] == [dimension] * len(texts)
        assert all(_cosine(vector, vector) == pytest.approx(1) for vector in vectors)


async def test_a_question_and_a_passage_embed_alike() -> None:
    embedder = HashEmbedder()
    assert await embedder.embed(["tide"], mode="query") == await embedder.embed(["tide"])


async def test_a_text_has_the_same_vector_in_every_process() -> None:
    [vector] = await HashEmbedder(3).embed(["low tide"])
    assert vector == pytest.approx([0.19320844874432405, 0.9140245844443022, 0.3566925207587521])


async def test_a_dimension_below_1_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        HashEmbedder(0)


async def test_no_texts_ask_no_embedder() -> None:
    embedder = Scripted(RuntimeError("down"))
    assert await embed_texts(embedder, []) == []
    assert embedder.asked == []


async def test_the_mode_reaches_the_embedder_and_vectors_become_32_bit() -> None:
    embedder = Scripted([[0.1, 1]])
    [vector] = await embed_texts(embedder, ["tide"], mode="query")
    assert embedder.asked == [(["tide"], "query")]
    assert vector == [0.10000000149011612, 1.0]


async def test_whatever_an_embedder_raises_is_an_engine_error() -> None:
    with pytest.raises(EngineError, match="embedder scripted: RuntimeError: no GPU"):
        await embed_texts(Scripted(RuntimeError("no GPU")), ["tide"])
    with pytest.raises(UnavailableError):
        await embed_texts(Scripted(UnavailableError("openai", "503")), ["tide"])


@pytest.mark.parametrize(
    "answer", [[], [[1.0, 0.0], [0.0, 1.0]], [[1.0]], [[0.0, 0.0]], [[math.nan, 1.0]]]
)
async def test_an_answer_that_does_not_fit_is_an_engine_error(answer: list[list[float]]) -> None:
    with pytest.raises(EngineError):
        await embed_texts(Scripted(answer), ["tide"])


async def test_an_embedder_that_never_answers_is_a_timed_out_error() -> None:
    with pytest.raises(TimedOutError, match=r"embedder hash-64: no answer in 0\.02 s"):
        await embed_texts(LimitedEmbedder(HangingEmbedder()), ["tide"])


async def test_a_time_out_inside_an_embedder_is_its_own_error() -> None:
    with pytest.raises(EngineError, match="TimeoutError: of its own") as caught:
        await embed_texts(LimitedEmbedder(Scripted(TimeoutError("of its own"))), ["tide"])
    assert not isinstance(caught.value, TimedOutError)


async def test_an_embedder_that_hangs_is_not_asked_again_for_each_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited, "MORE_SECONDS_PER_TEXT", 0.0)
    embedder = HangingEmbedder()
    vectors, problem = await embed_possible(LimitedEmbedder(embedder), [("", "tide")] * 100)
    assert vectors == [None] * 100
    assert "no answer" in problem
    assert embedder.calls == 2


async def test_a_text_that_hangs_the_model_keeps_back_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited, "MORE_SECONDS_PER_TEXT", 0.0)
    embedder = HangingEmbedder(hangs=False, poison="poison", limit_seconds=0.5)
    texts = [("", text) for text in ("tide", "moon", "poison", "low")]
    vectors, problem = await embed_possible(LimitedEmbedder(embedder), texts)
    assert [vector is None for vector in vectors] == [False, False, True, False]
    assert "no answer" in problem


SAID: list[Turn] = [("Ana: Any kittens?", "Ben: Yes, two."), ("", "Ana: Low tide.")]


async def test_an_embedder_that_reads_no_context_embeds_the_texts_of_turns_alone() -> None:
    embedder = HashEmbedder()
    assert not reads_context(embedder)
    assert await embed_turns(embedder, []) == []
    alone = await embed_texts(embedder, [text for _, text in SAID])
    assert await embed_turns(embedder, SAID) == alone


async def test_an_embedder_that_reads_context_is_given_it() -> None:
    embedder = ContextEmbedder()
    assert reads_context(embedder)
    assert await embed_turns(embedder, []) == []
    [with_context, without] = await embed_turns(embedder, SAID)
    assert embedder.embedded == SAID
    [alone, same] = await embed_texts(embedder, [text for _, text in SAID])
    assert with_context != alone
    assert without == same


async def test_an_embedder_whose_model_reads_no_context_is_not_given_it() -> None:
    embedder = ContextEmbedder()
    embedder.reads_context = False
    assert not reads_context(embedder)
    await embed_turns(embedder, SAID)
    await embed_turns(LimitedEmbedder(embedder), SAID)
    assert embedder.embedded == []


async def test_a_time_limit_changes_neither_the_context_nor_the_weight() -> None:
    embedder = ContextEmbedder()
    embedder.lexical_weight = 0.25
    limited_twice = LimitedEmbedder(LimitedEmbedder(embedder))
    assert reads_context(limited_twice)
    assert lexical_weight(limited_twice) == 0.25
    assert await embed_turns(limited_twice, SAID) == await embed_turns(embedder, SAID)
    assert not reads_context(LimitedEmbedder(HashEmbedder()))


async def test_a_time_limit_that_is_given_replaces_the_embedders_own() -> None:
    embedder = LimitedEmbedder(HangingEmbedder(limit_seconds=60), limit_seconds=0.02)
    assert LimitedEmbedder(embedder).limit_seconds == 0.02
    with pytest.raises(TimedOutError, match=r"no answer in 0\.02 s"):
        await embed_texts(embedder, ["tide"])


class Turning(Scripted, TurnEmbedder):
    """Answers turns with what the test gives it, or raises it."""

    async def embed_turns(self, turns: Sequence[Turn]) -> Sequence[Sequence[float]]:
        return await self.embed([text for _, text in turns])


async def test_the_vectors_of_turns_are_checked_as_those_of_texts() -> None:
    turn = [("", "tide")]
    with pytest.raises(EngineError, match="embedder scripted: RuntimeError: no GPU"):
        await embed_turns(Turning(RuntimeError("no GPU")), turn)
    with pytest.raises(EngineError, match="returned 0 vectors for 1 texts"):
        await embed_turns(Turning([]), turn)
    with pytest.raises(EngineError, match="cannot be stored"):
        await embed_turns(Turning([[math.nan, 1.0]]), turn)
    with pytest.raises(UnavailableError):
        await embed_turns(Turning(UnavailableError("openai", "503")), turn)


async def test_a_model_says_how_much_the_words_count_beside_it() -> None:
    assert lexical_weight(HashEmbedder()) == 0.7
    assert lexical_weight(Scripted([])) == 0.4


@pytest.mark.parametrize("weight", [-0.1, 1.5, math.nan, math.inf, True, "0.5", None])
async def test_a_weight_outside_0_to_1_is_refused(weight: Any) -> None:
    embedder = HashEmbedder()
    embedder.lexical_weight = weight
    with pytest.raises(InvalidInputError) as caught:
        lexical_weight(embedder)
    assert caught.value.field == "embedder.lexical_weight"
