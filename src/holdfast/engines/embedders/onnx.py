"""A sentence model from a local folder, on the CPU."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.values.errors import ConfigError, MissingExtraError

BATCH = 32
MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx")
MAX_TOKENS = 512
MAX_CHARACTERS = 20_000
"""Texts are cut to this length before tokenizing. No model's token limit holds more."""


@dataclass(frozen=True, slots=True)
class _Model:
    """The content of a model's folder."""

    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    output: str
    dimension: int
    prompts: dict[str, str]


class OnnxEmbedder(Embedder):
    """A transformer in ONNX with its tokenizer, read from a folder; nothing is ever downloaded.

    The folder holds ``model.onnx`` and ``tokenizer.json``, as sentence-transformers and optimum
    export them. Token vectors are averaged unless the model outputs a sentence vector. An optional
    ``config_sentence_transformers.json`` in the folder holds the prompts to prepend to a ``query``
    and a ``passage``. ::

        embedder = await OnnxEmbedder.open("models/e5-small")
    """

    def __init__(self, name: str, model: _Model) -> None:
        self._name = name
        self._model = model

    @classmethod
    async def open(cls, folder: str | Path) -> Self:
        """Read the model, off the event loop.

        ::

            embedder = await OnnxEmbedder.open("models/e5-small")
        """
        return cls(*await asyncio.to_thread(_read, Path(folder)))

    @property
    def name(self) -> str:
        """The folder's name: rename it when its content changes."""
        return self._name

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._model.dimension

    async def embed(
        self, texts: Sequence[str], *, mode: EmbeddingMode = "passage"
    ) -> list[list[float]]:
        """Return vectors of length 1. Runs in a thread, so that the event loop is not blocked."""
        prompt = self._model.prompts.get(mode, "")
        return await asyncio.to_thread(
            self._embed, [prompt + text[:MAX_CHARACTERS] for text in texts]
        )

    def _embed(self, texts: list[str]) -> list[list[float]]:
        # Batch texts of similar length, to keep the padding small.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found: list[list[float]] = [[]] * len(texts)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors = self._run([texts[at] for at in batch]).tolist()
            for at, vector in zip(batch, vectors, strict=True):
                found[at] = vector
        return found

    def _run(self, texts: list[str]) -> Any:
        encoded = self._model.tokenizer.encode_batch(texts)
        longest = max(1, *(len(one.ids) for one in encoded))
        ids = np.zeros((len(texts), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, one in enumerate(encoded):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {name: value for name, value in feeds.items() if name in self._model.inputs}
        [answer] = self._model.session.run([self._model.output], wanted)
        vectors = np.asarray(answer, dtype=np.float32)
        if vectors.ndim == 3:
            weights = mask[:, :, None].astype(np.float32)
            vectors = (vectors * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths == 0, 1.0, lengths)


def _read(folder: Path) -> tuple[str, _Model]:
    try:
        import onnxruntime  # noqa: PLC0415 - the extra may not be installed
        from tokenizers import Tokenizer  # noqa: PLC0415 - likewise
    except ModuleNotFoundError:
        raise MissingExtraError("OnnxEmbedder", "embeddings") from None
    weights = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    if weights is None:
        raise ConfigError(f"no model in {folder}: it needs {' or '.join(MODEL_FILES)}")
    if not (folder / "tokenizer.json").is_file():
        raise ConfigError(f"no tokenizer in {folder}: it needs tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        session = onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])
    except Exception as error:
        # Both libraries raise plain exceptions from native code.
        raise ConfigError(f"the model in {folder} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=MAX_TOKENS)
    outputs = session.get_outputs()
    output = next((one for one in outputs if one.name == "sentence_embedding"), outputs[0])
    dimension = output.shape[-1]
    if not isinstance(dimension, int):
        raise ConfigError(
            f"the model in {folder} does not declare its dimension: use another model"
        )
    inputs = frozenset(one.name for one in session.get_inputs())
    model = _Model(session, tokenizer, inputs, output.name, dimension, _prompts(folder))
    return f"onnx-{folder.resolve().name}", model


def _prompts(folder: Path) -> dict[str, str]:
    path = folder / "config_sentence_transformers.json"
    if not path.is_file():
        return {}
    try:
        prompts = json.loads(path.read_text(encoding="utf-8")).get("prompts") or {}
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    found = {mode: prompts.get(mode) for mode in ("query", "passage")}
    return {mode: text for mode, text in found.items() if isinstance(text, str)}
