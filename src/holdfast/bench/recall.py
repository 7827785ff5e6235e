"""``holdfast bench recall``: how much of the evidence recall finds, and how fast.

Everything goes through ``state.memory()``: one conversation is one agent, each turn is recorded as
a message under its speaker's name, and each question is recalled over all sessions.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg

from holdfast.bench.conversations import Conversation, Question, load_conversations
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.engines.embedders.limited import LimitedEmbedder
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.spi.embedding import Embedder, embed_texts
from holdfast.values.content import ChatMessage
from holdfast.wiring.embedders import embedder_named
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

Progress: TypeAlias = Callable[[str], None]
Ask: TypeAlias = Callable[[AgentMemory, str, int], Awaitable[list[str]]]

DEPTH = 10
AGENTS, EVENTS, QUERIES = 50, 500, 400
ROUNDS = 5
"""How often the latency is measured; the median of the rounds is the result, all are reported."""
PATIENCE_SECONDS = 86_400.0
"""How long a statement or a model may take: a slow machine is measured, too."""

BARS = {
    "R@5 of words alone on Postgres": 0.55,
    "R@5 of words and the static embedder on Postgres": 0.56,
    "R@5 in memory and on Postgres differ by at most": 0.005,
    "p50 of words at 500 events of one of 50 agents, in ms": 3.0,
}


@dataclass(frozen=True, slots=True)
class Score:
    """How well the questions of one kind were answered."""

    questions: int
    recall_5: float
    recall_10: float
    mrr: float


@dataclass(frozen=True, slots=True)
class Method:
    """One way to recall on one engine."""

    engine: str
    method: str
    all: Score
    by_category: dict[str, Score]
    p50_ms: float
    p95_ms: float


@dataclass(slots=True)
class Report:
    """All methods on one file."""

    data: str
    conversations: int
    turns: int
    questions: int
    embedder: str
    methods: list[Method] = field(default_factory=list)
    latency: dict[str, Any] = field(default_factory=dict)

    def find(self, engine: str, method: str) -> Method | None:
        """One of the methods."""
        wanted = (engine, method)
        return next((one for one in self.methods if (one.engine, one.method) == wanted), None)

    def bars(self) -> dict[str, dict[str, Any]]:
        """What was to be reached on LoCoMo, and what was."""
        if self.data != "LoCoMo":
            return {}
        values: dict[str, float] = {}
        words, near = self.find("postgres", "words"), self.find("postgres", "words + embedder")
        if words:
            values["R@5 of words alone on Postgres"] = words.all.recall_5
        if near and self.embedder == "wordllama-256":
            values["R@5 of words and the static embedder on Postgres"] = near.all.recall_5
        apart = [
            abs(one.all.recall_5 - other.all.recall_5)
            for method in ("words", "words + embedder")
            if (one := self.find("in memory", method)) and (other := self.find("postgres", method))
        ]
        if apart:
            values["R@5 in memory and on Postgres differ by at most"] = round(max(apart), 4)
        if self.latency:
            name = "p50 of words at 500 events of one of 50 agents, in ms"
            values[name] = self.latency["words"]["p50_ms"]
        return {
            name: {
                "bar": BARS[name],
                "got": got,
                "met": got >= BARS[name] if name.startswith("R@5 of") else got <= BARS[name],
            }
            for name, got in values.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the report, with its bars, as a dict for JSON."""
        return asdict(self) | {"bars": self.bars()}


async def run(progress: Progress, data: Path, *, embedder: str, quick: bool = False) -> Report:
    """Let every method answer every question of a file."""
    kind, conversations = load_conversations(data)
    if quick:
        conversations = conversations[:2]
    model = await embedder_named(embedder)
    report = Report(
        kind,
        len(conversations),
        sum(one.turns for one in conversations),
        sum(len(one.questions) for one in conversations),
        model.name if model else "none",
    )
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(Path(name) / "state")
        try:
            for place in (("in memory", "memory:"), ("postgres", embedded.url)):
                await _engine(report, progress, place, conversations, model)
            progress("latency among many agents")
            report.latency = await _latency(embedded.url, model, conversations, quick=quick)
        finally:
            await embedded.aclose()
    return report


async def _engine(
    report: Report,
    progress: Progress,
    place: tuple[str, str],
    conversations: list[Conversation],
    model: Embedder | None,
) -> None:
    engine, url = place
    async with _opened(url, "words", None) as state:
        progress(f"{engine}: recording")
        await _record(state, conversations)
        await _analyse(url)
        progress(f"{engine}: words")
        report.methods.append(await _ask(state, conversations, (engine, "words"), _by_text))
    if model is None:
        return
    async with _opened(url, "both", model) as state:
        progress(f"{engine}: embedding")
        await _record(state, conversations)
        await _analyse(url)
        for method, ask in (
            ("words + embedder", _by_text),
            ("embedder alone", _by_vector(model)),
        ):
            progress(f"{engine}: {method}")
            report.methods.append(await _ask(state, conversations, (engine, method), ask))


@asynccontextmanager
async def _opened(url: str, tenant: str, model: Embedder | None) -> AsyncIterator[State]:
    settings = Settings(
        auto_migrate=True,
        command_timeout_seconds=PATIENCE_SECONDS,
        search_timeout_seconds=PATIENCE_SECONDS,
    )
    patient = None if model is None else LimitedEmbedder(model, limit_seconds=PATIENCE_SECONDS)
    async with open_state(url, tenant=tenant, embedder=patient, settings=settings) as state:
        yield state


async def _record(state: State, conversations: Iterable[Conversation]) -> None:
    for one in conversations:
        for name, messages in one.sessions.items():
            memory = state.memory(one.agent, session_id=one.session_id(name))
            await memory.record_many(messages)
        await _settle(state, one.agent)


async def _settle(state: State, agent: str) -> None:
    """Embed and index what was recorded, so that the questions are timed alone."""
    await state.ops.embed_pending()
    await state.memory(agent).recall("settled?", 1)


async def _analyse(url: str) -> None:
    """Run ANALYZE, as autovacuum does after a minute."""
    if not url.startswith("memory:"):
        connection = await asyncpg.connect(url, timeout=PATIENCE_SECONDS)
        await connection.execute("ANALYZE")
        await connection.close()


async def _by_text(memory: AgentMemory, text: str, k: int) -> list[str]:
    return [hit.event.id for hit in await memory.recall(text, k)]


def _by_vector(model: Embedder) -> Ask:
    async def ask(memory: AgentMemory, text: str, k: int) -> list[str]:
        [vector] = await embed_texts(model, [text], mode="query")
        return [hit.event.id for hit in await memory.recall(vector, k)]

    return ask


async def _ask(
    state: State, conversations: Iterable[Conversation], what: tuple[str, str], ask: Ask
) -> Method:
    answers: list[tuple[Question, list[str]]] = []
    times: list[float] = []
    for one in conversations:
        memory = state.memory(one.agent)
        for question in one.questions:
            start = time.perf_counter()
            found = await ask(memory, question.text, DEPTH)
            times.append(time.perf_counter() - start)
            answers.append((question, found))
    engine, method = what
    categories = sorted({question.category for question, _ in answers})
    return Method(
        engine,
        method,
        _score(answers),
        {name: _score([one for one in answers if one[0].category == name]) for name in categories},
        **_percentiles(times),
    )


def _score(answers: list[tuple[Question, list[str]]]) -> Score:
    return Score(
        len(answers),
        round(statistics.fmean(_recall(one, 5) for one in answers), 4),
        round(statistics.fmean(_recall(one, 10) for one in answers), 4),
        round(statistics.fmean(map(_reciprocal_rank, answers)), 4),
    )


def _recall(answer: tuple[Question, list[str]], k: int) -> float:
    """The share of the evidence that is among the first ``k``."""
    question, found = answer
    return len(question.evidence & set(found[:k])) / len(question.evidence)


def _reciprocal_rank(answer: tuple[Question, list[str]]) -> float:
    question, found = answer
    return next((1 / at for at, turn in enumerate(found, 1) if turn in question.evidence), 0.0)


def _percentiles(times: list[float]) -> dict[str, float]:
    return {
        "p50_ms": round(statistics.median(times) * 1e3, 2),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1] * 1e3, 2),
    }


async def _latency(
    url: str, model: Embedder | None, conversations: Sequence[Conversation], *, quick: bool
) -> dict[str, Any]:
    """What a question costs one of many agents on Postgres, about what that agent lived through.

    A question about somebody else's life finds nothing, and to find nothing is cheap.
    """
    said = [
        (one, talk) for talk in conversations for turns in talk.sessions.values() for one in turns
    ]
    agents = 5 if quick else AGENTS
    lives = [[said[(a * EVENTS + at) % len(said)] for at in range(EVENTS)] for a in range(agents)]
    asked = [[one.text for one in life[EVENTS // 2][1].questions] for life in lives]
    found: dict[str, Any] = {"agents": agents, "events": EVENTS, "rounds": ROUNDS}
    found["load_average_before"] = os.getloadavg()[0]
    for method, embedder in (("words", None), ("words + embedder", model)):
        if method != "words" and model is None:
            continue
        async with _opened(url, f"many {method}", embedder) as state:
            for agent in range(agents):
                turns = [
                    ChatMessage(one.role, one.content, name=one.name) for one, _ in lives[agent]
                ]
                await state.memory(f"a{agent}", session_id=f"s{agent}").record_many(turns)
            for agent in range(agents):
                await _settle(state, f"a{agent}")
            await _analyse(url)
            rounds = [await _round(state, asked) for _ in range(ROUNDS)]
            found[method] = {
                "p50_ms": statistics.median(one["p50_ms"] for one in rounds),
                "p95_ms": statistics.median(one["p95_ms"] for one in rounds),
                "p50_ms_of_each_round": [one["p50_ms"] for one in rounds],
            }
    found["load_average_after"] = os.getloadavg()[0]
    return found


async def _round(state: State, asked: Sequence[Sequence[str]]) -> dict[str, float]:
    """Their own questions to all agents in turn, the first of them left out as a warm-up."""
    times = []
    for at in range(QUERIES):
        number, agent = divmod(at, len(asked))
        memory, own = state.memory(f"a{agent}"), asked[agent]
        start = time.perf_counter()
        await memory.recall(own[number % len(own)], 5)
        if at >= QUERIES // 10:
            times.append(time.perf_counter() - start)
    return _percentiles(times)
