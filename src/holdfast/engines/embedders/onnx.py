"""A sentence model from a local folder, on the CPU."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from holdfast.engines.embedders.onnx_folder import ModelFolder, read_model
from holdfast.spi.embedding import EmbeddingMode, Turn, TurnEmbedder

BATCH = 32
MAX_CHARACTERS = 20_000
"""Texts are cut to this length before tokenizing. No model's token limit holds more."""

CHARACTERS_PER_TOKEN = 40
"""How many characters of a context are tokenized for each token of it that the model reads."""


@dataclass(frozen=True, slots=True)
class _Input:
    """The tokens of a text. ``context`` of them, from ``start``, are read but not averaged."""

    tokens: list[int]
    start: int = 0
    context: int = 0


class OnnxEmbedder(TurnEmbedder):
    """A transformer in ONNX with its tokenizer, read from a folder; nothing is ever downloaded.

    The folder holds ``model.onnx`` and ``tokenizer.json``, as sentence-transformers and optimum
    export them. Token vectors are averaged unless the model outputs a sentence vector. An optional
    ``model.json`` may hold ``query_prefix``, ``passage_prefix``, ``context_tokens``, ``max_tokens``
    and ``lexical_weight``; without it, the prefixes are the prompts for ``query`` and ``passage``
    in ``config_sentence_transformers.json``.

    A model that was trained for it also reads the last ``context_tokens`` tokens of the messages
    before a text. The default is 48 if the network averages only the tokens whose
    ``token_type_ids`` are 0, otherwise 0; ``model.json`` or ``open`` can set another number. ::

        embedder = await OnnxEmbedder.open("models/e5-small")
    """

    def __init__(self, model: ModelFolder) -> None:
        self._model = model

    @classmethod
    async def open(cls, folder: str | Path, *, context_tokens: int | None = None) -> Self:
        """Read the model in a thread. ``context_tokens=0`` makes it read no context.

        ::

            embedder = await OnnxEmbedder.open("models/e5-small")
        """
        return cls(await asyncio.to_thread(read_model, Path(folder), context_tokens=context_tokens))

    @property
    def name(self) -> str:
        """The folder's name and the context size. Rename the folder when its content changes."""
        return self._model.name

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._model.dimension

    @property
    def lexical_weight(self) -> float:
        """The weight of the search by words in the combined score of recall, from 0 to 1."""
        return self._model.lexical_weight

    @property
    def reads_context(self) -> bool:
        """Whether the model also reads the messages before a text."""
        return self._model.context_tokens > 0

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        """Return vectors of length 1. Runs in a thread, so that the event loop is not blocked."""
        turns = [("", text) for text in texts]
        return await asyncio.to_thread(self._embed, turns, self._model.prefixes.get(mode, ""))

    async def embed_turns(self, turns: Sequence[Turn]) -> list[list[float]]:
        """Return vectors of length 1 of texts that are read after their contexts."""
        prefix = self._model.prefixes.get("passage", "")
        return await asyncio.to_thread(self._embed, list(turns), prefix)

    def _embed(self, turns: list[Turn], prefix: str) -> list[list[float]]:
        inputs = self._inputs(turns, prefix)
        # Batch texts of similar length, to keep the padding small.
        order = sorted(range(len(inputs)), key=lambda at: len(inputs[at].tokens))
        found: list[list[float]] = [[]] * len(inputs)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors = self._run([inputs[at] for at in batch]).tolist()
            for at, vector in zip(batch, vectors, strict=True):
                found[at] = vector
        return found

    def _inputs(self, turns: list[Turn], prefix: str) -> list[_Input]:
        model, read = self._model, self._model.context_tokens
        cut = CHARACTERS_PER_TOKEN * read
        before = self._tokens([context[-cut:] if read else "" for context, _ in turns])
        texts = [
            ("" if context else prefix) + text[:MAX_CHARACTERS]
            for context, (_, text) in zip(before, turns, strict=True)
        ]
        [head] = self._tokens([prefix])
        found = []
        for context, text in zip(before, self._tokens(texts), strict=True):
            start = [*model.opening, *(head if context else [])]
            lead = [*context[-read:], *model.closing] if context else []
            room = model.max_tokens - len(start) - len(lead) - len(model.closing)
            tokens = [*start, *lead, *text[: max(1, room)], *model.closing]
            found.append(_Input(tokens, len(start), len(lead)))
        return found

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        encoded = self._model.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [one.ids for one in encoded]

    def _run(self, inputs: list[_Input]) -> Any:
        longest = max(1, *(len(one.tokens) for one in inputs))
        ids = np.zeros((len(inputs), longest), dtype=np.int64)
        mask, context = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(inputs):
            ids[row, : len(one.tokens)] = one.tokens
            mask[row, : len(one.tokens)] = 1
            context[row, one.start : one.start + one.context] = 1
        # Only a network that averages itself gets to know the context by its types.
        types = context if self._model.pooled else np.zeros_like(ids)
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        wanted = {name: value for name, value in feeds.items() if name in self._model.inputs}
        [answer] = self._model.session.run([self._model.output], wanted)
        vectors = np.asarray(answer, dtype=np.float32)
        if vectors.ndim == 3:
            weights = (mask - context)[:, :, None].astype(np.float32)
            vectors = (vectors * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths == 0, 1.0, lengths)
