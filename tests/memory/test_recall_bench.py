"""``holdfast bench recall`` on small conversations in the shapes of LoCoMo and LongMemEval."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import ChatMessage, Settings
from holdfast.bench import recall, recall_latency, recall_states
from holdfast.bench.conversations import Question, load_conversations
from holdfast.bench.index_size import TableSize, index_of
from holdfast.bench.recall_scores import LOCOMO as LOCOMO_SIZE
from holdfast.bench.recall_scores import Answer, Report, score
from holdfast.bench.recall_states import OnceEmbedder
from holdfast.engines.embedders import limited
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.spi.embedding import EmbeddingMode, embed_turns
from holdfast.testing.embedders import ContextEmbedder, FlakyEmbedder
from holdfast.values.errors import ConfigError, EngineError
from holdfast.wiring.front_door import Opening
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOCOMO = [
    {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "the tide was low"}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "my bees are well"},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "the moon is full"},
            ],
            "session_1_date_time": "not a date",
        },
        "qa": [
            {"question": "How are the bees?", "evidence": ["D1:1"], "category": 4},
            {"question": "Tide and moon?", "evidence": ["D2:1; D1:2"], "category": 1},
            {"question": "Whose bees?", "evidence": ["D:1:01"], "category": 2},
            {"question": "Unknown?", "evidence": [], "category": 5},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What did I plant?",
        "haystack_session_ids": ["a", "a"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_sessions": [
            [{"role": "user", "content": "I planted basil", "has_answer": True}],
            [{"role": "assistant", "content": "hello"}],
        ],
    }
]


def _file(place: Path, data: Any) -> Path:
    path = place / "data.json"
    path.write_text(json.dumps(data))
    return path


async def test_locomo_is_read_with_its_evidence_however_it_is_written(tmp_path: Path) -> None:
    kind, [talk] = load_conversations(_file(tmp_path, LOCOMO))
    assert (kind, talk.agent, talk.turns) == ("LoCoMo", "locomo/talk-1", 3)
    assert list(talk.sessions) == ["session_1", "session_2"]
    assert [sorted(one.evidence) for one in talk.questions] == [
        ["D1:1"],
        ["D1:2", "D2:1"],
        ["D1:1"],
    ]
    assert [one.category for one in talk.questions] == ["single-hop", "multi-hop", "temporal"]
    first = talk.sessions["session_1"][0]
    assert (first.role, first.name, first.text) == ("user", "Ana", "my bees are well")


async def test_longmemeval_is_read_with_one_agent_for_each_question(tmp_path: Path) -> None:
    kind, [talk] = load_conversations(_file(tmp_path, LONGMEMEVAL))
    assert (kind, talk.turns) == ("LongMemEval", 2)
    assert [(one.evidence, one.category) for one in talk.questions] == [
        (frozenset({"0:a:0"}), "single-session-user")
    ]


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '[{"other": 1}]'])
async def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"data\.json"):
        load_conversations(path)


async def test_every_method_answers_every_question_on_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_latency, "EVENTS", 20)
    monkeypatch.setattr(recall_latency, "QUERIES", 20)
    path = _file(tmp_path, LOCOMO)
    report = await recall.run(lambda _: None, path, embedder="hash", quick=True)
    assert (report.conversations, report.turns, report.questions) == (1, 3, 3)
    assert [(one.engine, one.method) for one in report.methods] == [
        (engine, method)
        for engine in ("in memory", "postgres")
        for method in ("words", "words + embedder", "embedder alone")
    ]
    words = report.methods[0]
    assert (words.all.recall_5, words.all.mrr) == (1.0, 1.0)
    assert {name: one.questions for name, one in words.by_category.items()} == {
        "multi-hop": 1,
        "single-hop": 1,
        "temporal": 1,
    }
    assert report.alike == {"words": 1.0, "words + embedder": 1.0}
    bars = report.to_json()["bars"]
    alike = "share of the questions answered alike in memory and on Postgres, words"
    assert bars[alike] == {"bar": 1.0, "got": 1.0, "met": True}
    assert not any(name.startswith(("R@5", "evidence")) for name in bars)
    words_index, whole_index = report.index["words"], report.index["words + embedder"]
    assert words_index["vector_bytes_per_turn"] == 0 < words_index["words_bytes_per_turn"]
    assert whole_index["tables"]["event_vectors"]["rows"] == 3


class _SlowEmbedder(HashEmbedder):
    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        await asyncio.sleep(0.05)
        return await super().embed(texts, mode=mode)


async def test_a_slow_machine_is_measured_and_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "LIMIT_SECONDS", 0.001)
    monkeypatch.setattr(limited, "MORE_SECONDS_PER_TEXT", 0)
    async with empty_database() as url, recall_states.opened(url, "slow", _SlowEmbedder()) as state:
        memory = state.memory("planner", session_id="s1")
        await memory.record("message", ChatMessage.user("low tide at noon"))
        await state.ops.embed_pending()
        [hit] = await memory.recall("low tide")
        assert (hit.degraded, "semantic" in hit.found_by) == ("", True)


async def test_no_statement_of_the_benchmark_is_canceled_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[Settings] = []

    def noted(url: str, *, settings: Settings, **how: Any) -> Opening:
        used.append(settings)
        return holdfast.open(url, settings=settings, **how)

    monkeypatch.setattr(recall_states, "open_state", noted)
    async with recall_states.opened("memory:", "slow", None):
        assert used[0].command_timeout_seconds == recall_states.PATIENCE_SECONDS >= 3600
        assert used[0].search_timeout_seconds == recall_states.PATIENCE_SECONDS


def _answer(found: list[str], evidence: set[str], sizes: list[int] | None = None) -> Answer:
    lines = list(zip(found, sizes or [40] * len(found), strict=True))
    return Answer(Question("?", frozenset(evidence), "temporal"), found, lines)


async def test_the_evidence_in_a_prompt_is_that_of_the_turns_that_fit_by_rank() -> None:
    # A turn of 40 characters takes 10 tokens and 8 for its day.
    answer = _answer(["a", "b", "c"], {"a", "c"}, [40, 4000, 40])
    assert answer.evidence_within(17) == 0
    assert answer.evidence_within(18) == 0.5
    assert answer.evidence_within(36) == 1.0
    assert _answer(["b", "a"], {"a", "x"}, [4000, 40]).evidence_within(1000) == 0.5


async def test_scores_are_means_over_the_questions() -> None:
    both = score([_answer(["x", "a"], {"a"}), _answer([], {"a", "b"})])
    assert (both.questions, both.recall_5, both.recall_10, both.mrr) == (2, 0.5, 0.5, 0.25)
    assert (both.evidence_500, both.evidence_1000, both.evidence_2000) == (0.5, 0.5, 0.5)


async def test_the_bars_are_those_of_locomo_and_the_lower_engine_counts() -> None:
    times = {"p50_ms": 1.0, "p95_ms": 1.0}
    report = Report("LoCoMo", *LOCOMO_SIZE, "wordllama-256")
    for engine, found in (("in memory", ["a"]), ("postgres", ["b"])):
        for method in ("words", "words + embedder"):
            report.add((engine, method), [_answer(found, {"a"})], times)
    bars = report.bars()
    assert {name: one["met"] for name, one in bars.items()} == {
        "R@5 by words": False,
        "R@5 with the static embedder": False,
        "evidence in 1,000 tokens by words": False,
    }
    report.reads_context, report.embedder = True, "onnx-turns"
    assert "R@5 with a model that reads context" in report.bars()
    report.turns += 1
    assert report.bars() == {}


async def test_the_bytes_of_an_index_are_those_that_its_tables_grew_by() -> None:
    before = {"events": TableSize(0, 8192), "event_blocks": TableSize(0, 8192)}
    after = {
        "events": TableSize(10, 28192),
        "event_blocks": TableSize(4, 9192),
        "indexed_events": TableSize(10, 500),
        "event_vectors": TableSize(10, 3000),
        "facts": TableSize(7, 99999),
    }
    found = index_of(before, after, 10)
    assert (found["words_bytes_per_turn"], found["vector_bytes_per_turn"]) == (150, 300)
    assert found["log_bytes_per_turn"] == 2000
    assert found["tables"]["event_blocks"] == {"rows": 4, "bytes": 1000}
    assert "facts" not in found["tables"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"conversation": {"session_1": [{"speaker": "Ana", "text": "hi"}]}}, "dia_id"),
        ({"conversation": {"session_1": "hi"}}, "session_1"),
        ({"qa": [{"evidence": ["D1:1"]}]}, "question"),
        ({"qa": None}, "qa"),
    ],
)
async def test_a_file_in_locomos_form_that_lacks_something_says_what(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=rf"data\.json.*sample 0.*{named}"):
        load_conversations(_file(tmp_path, [LOCOMO[0] | change]))


async def test_another_set_in_locomos_form_may_name_its_turns_as_it_likes(tmp_path: Path) -> None:
    talk = {
        "conversation": {
            "session_1": [
                {"speaker": "Ana", "dia_id": "turn/1", "text": "hi"},
                {"speaker": "Bo", "dia_id": "turn/2"},
            ]
        },
        "qa": [{"question": "Who?", "evidence": ["turn/1"]}],
    }
    _, [found] = load_conversations(_file(tmp_path, [talk]))
    [question] = found.questions
    assert (question.evidence, question.category) == (frozenset({"turn/1"}), "other")
    [first, second] = found.sessions["session_1"]
    assert (first.id, first.role, second.role, second.text) == ("turn/1", "user", "assistant", "")


async def test_a_turn_is_embedded_once_and_a_question_every_time() -> None:
    inner = ContextEmbedder(8)
    once = OnceEmbedder(inner)
    turns = [("", "low tide"), ("Ana: When?", "at noon"), ("", "low tide")]
    first = await once.embed_turns(turns)
    assert await once.embed_turns(turns) == first == await embed_turns(ContextEmbedder(8), turns)
    assert inner.embedded == turns[:2]
    assert (once.reads_context, once.lexical_weight) == (True, 0.7)
    counting = FlakyEmbedder(8)
    alone = OnceEmbedder(counting)
    assert await alone.embed(["tide"]) == await alone.embed(["tide"])
    assert counting.embedded == ["tide"]
    counting.down = True
    with pytest.raises(EngineError, match="the model is down"):
        await alone.embed(["tide"], mode="query")
