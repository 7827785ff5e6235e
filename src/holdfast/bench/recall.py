"""``holdfast bench recall``: how much of the evidence recall finds, and how fast.

Everything goes through ``state.memory()``: one conversation is one agent, each turn is recorded as
a message under its speaker's name, and each question is recalled over all sessions.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from holdfast.bench.conversations import Conversation, load_conversations
from holdfast.bench.index_size import index_of
from holdfast.bench.recall_latency import latency, percentiles
from holdfast.bench.recall_scores import BUDGETS, Answer, Report
from holdfast.bench.recall_states import OnceEmbedder, analyse, opened, record
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.spi.embedding import Embedder, embed_texts
from holdfast.values.event_text import event_text
from holdfast.values.events import Recalled
from holdfast.wiring.embedders import embedder_named
from holdfast.wiring.state import State

Progress: TypeAlias = Callable[[str], None]
Ask: TypeAlias = Callable[[AgentMemory, str, int], Awaitable[list[Recalled]]]
Answers: TypeAlias = dict[str, list[Answer]]
"""The answers to all questions, by method."""

DEPTH = 10
LINES = max(BUDGETS) // 20
"""How many turns are read to fill the largest prompt."""


async def run(progress: Progress, data: Path, *, embedder: str, quick: bool = False) -> Report:
    """Answer every question of a file by every method."""
    kind, conversations = load_conversations(data)
    if quick:
        conversations = conversations[:2]
    named = await embedder_named(embedder)
    model = OnceEmbedder(named) if named else None
    report = Report(
        kind,
        len(conversations),
        sum(one.turns for one in conversations),
        sum(len(one.questions) for one in conversations),
        model.name if model else "none",
        reads_context=model is not None and model.reads_context,
    )
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        os.chmod(name, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(Path(name) / "state")
        try:
            found = [
                await _engine(report, progress, place, conversations, model)
                for place in (("in memory", "memory:"), ("postgres", embedded.url))
            ]
            report.alike = _alike(*found)
            progress("latency among many agents")
            report.latency = await latency(embedded.url, model, conversations, quick=quick)
        finally:
            await embedded.aclose()
    return report


async def _engine(
    report: Report,
    progress: Progress,
    place: tuple[str, str],
    conversations: list[Conversation],
    model: Embedder | None,
) -> Answers:
    engine, url = place
    found: Answers = {}
    async with opened(url, "words", None) as state:
        progress(f"{engine}: recording")
        empty = await analyse(url)
        await record(state, conversations)
        filled = await analyse(url)
        progress(f"{engine}: words")
        found["words"] = await _ask(report, state, conversations, (engine, "words"), _by_text)
    if filled:
        report.index = {"words": index_of(empty, filled, report.turns)}
    if model is None:
        return found
    async with opened(url, "both", model) as state:
        progress(f"{engine}: embedding")
        await record(state, conversations)
        embedded = await analyse(url)
        for method, ask in (
            ("words + embedder", _by_text),
            ("embedder alone", _by_vector(model)),
        ):
            progress(f"{engine}: {method}")
            found[method] = await _ask(report, state, conversations, (engine, method), ask)
    if embedded:
        report.index["words + embedder"] = index_of(filled, embedded, report.turns)
    return found


async def _by_text(memory: AgentMemory, text: str, k: int) -> list[Recalled]:
    return await memory.recall(text, k)


def _by_vector(model: Embedder) -> Ask:
    async def ask(memory: AgentMemory, text: str, k: int) -> list[Recalled]:
        [vector] = await embed_texts(model, [text], mode="query")
        return await memory.recall(vector, k)

    return ask


async def _ask(
    report: Report,
    state: State,
    conversations: Sequence[Conversation],
    what: tuple[str, str],
    ask: Ask,
) -> list[Answer]:
    """Ask for the first ten turns, timed, and then for as many as a prompt can hold, untimed."""
    answers: list[Answer] = []
    times: list[float] = []
    for one in conversations:
        memory = state.memory(one.agent)
        for question in one.questions:
            start = time.perf_counter()
            hits = await ask(memory, question.text, DEPTH)
            times.append(time.perf_counter() - start)
            lines = [
                (hit.event.id, len(event_text(hit.event.type, hit.event.payload)))
                for hit in await ask(memory, question.text, LINES)
            ]
            answers.append(Answer(question, [hit.event.id for hit in hits], lines))
    report.add(what, answers, percentiles(times))
    return answers


def _alike(first: Answers, second: Answers) -> dict[str, float]:
    """Return, by method, the share of questions whose first ten turns are equal in both."""
    return {
        method: round(
            statistics.fmean(
                one.found == other.found
                for one, other in zip(first[method], second[method], strict=True)
            ),
            4,
        )
        for method in ("words", "words + embedder")
        if method in first
    }
