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
from holdfast.bench import recall
from holdfast.bench.conversations import load_conversations
from holdfast.engines.embedders import limited
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.spi.embedding import EmbeddingMode
from holdfast.values.errors import ConfigError
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
    monkeypatch.setattr(recall, "EVENTS", 20)
    monkeypatch.setattr(recall, "QUERIES", 20)
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
    bars = report.to_json()["bars"]
    assert bars["R@5 in memory and on Postgres differ by at most"]["got"] == 0
    assert "R@5 of words and the static embedder on Postgres" not in bars


class _SlowEmbedder(HashEmbedder):
    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        await asyncio.sleep(0.05)
        return await super().embed(texts, mode=mode)


async def test_a_slow_machine_is_measured_and_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "LIMIT_SECONDS", 0.001)
    monkeypatch.setattr(limited, "MORE_SECONDS_PER_TEXT", 0)
    async with empty_database() as url, recall._opened(url, "slow", _SlowEmbedder()) as state:
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

    monkeypatch.setattr(recall, "open_state", noted)
    async with recall._opened("memory:", "slow", None):
        assert used[0].command_timeout_seconds == recall.PATIENCE_SECONDS >= 3600
        assert used[0].search_timeout_seconds == recall.PATIENCE_SECONDS
