"""The folder of a sentence model: its network, its tokenizer and its settings."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from holdfast.values.errors import ConfigError, MissingExtraError
from holdfast.values.recall_rules import LEXICAL_WEIGHT

MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx")
MAX_TOKENS = 512
CONTEXT_TOKENS = 48
"""How many tokens of the messages before a text a model reads by default."""


class _Declared(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The content of ``model.json``; a missing field has a default."""

    query_prefix: str | None = None
    passage_prefix: str | None = None
    context_tokens: Annotated[int, msgspec.Meta(ge=0, le=65_536)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=8, le=65_536)] = MAX_TOKENS
    lexical_weight: Annotated[float, msgspec.Meta(ge=0, le=1)] = LEXICAL_WEIGHT


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The content of a model's folder.

    ::

        model = read_model(Path("models/e5-small"))
    """

    name: str
    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    output: str
    pooled: bool
    """Whether the network averages the vectors of the tokens itself."""

    dimension: int
    opening: tuple[int, ...]
    """The tokens before a text, such as ``[CLS]``."""

    closing: tuple[int, ...]
    """The tokens after a text, such as ``[SEP]``."""

    prefixes: dict[str, str]
    context_tokens: int
    max_tokens: int
    lexical_weight: float


def read_model(folder: Path, *, context_tokens: int | None = None) -> ModelFolder:
    """Read a folder. Raises ``ConfigError`` if something is missing or cannot be read.

    ::

        model = read_model(Path("models/e5-small"))
    """
    session, tokenizer = _load(folder)
    outputs = session.get_outputs()
    output = next((one for one in outputs if one.name == "sentence_embedding"), outputs[0])
    dimension = output.shape[-1]
    if not isinstance(dimension, int):
        raise ConfigError(
            f"the model in {folder} does not declare its dimension: use another model"
        )
    frame = tokenizer.encode("").ids
    declared = _declared(folder)
    model = ModelFolder(
        name=f"onnx-{folder.resolve().name}",
        session=session,
        tokenizer=tokenizer,
        inputs=frozenset(one.name for one in session.get_inputs()),
        output=output.name,
        pooled=len(output.shape) == 2,
        dimension=dimension,
        opening=tuple(frame[:-1]),
        closing=tuple(frame[-1:]),
        prefixes=_prefixes(folder, declared),
        context_tokens=0,
        max_tokens=declared.max_tokens,
        lexical_weight=declared.lexical_weight,
    )
    wanted = declared.context_tokens if context_tokens is None else context_tokens
    return _with_context(model, folder, wanted)


def _load(folder: Path) -> tuple[Any, Any]:
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
    tokenizer.no_truncation()
    return session, tokenizer


def _declared(folder: Path) -> _Declared:
    path = folder / "model.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Declared)
    except FileNotFoundError:
        return _Declared()
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _prefixes(folder: Path, declared: _Declared) -> dict[str, str]:
    """Return the prefixes of ``model.json``, else those of sentence-transformers' own file."""
    found = {"query": declared.query_prefix, "passage": declared.passage_prefix}
    path = folder / "config_sentence_transformers.json"
    prompts: dict[str, Any] = {}
    if None in found.values() and path.is_file():
        try:
            prompts = json.loads(path.read_text(encoding="utf-8")).get("prompts") or {}
        except (ValueError, AttributeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}") from error
    found = {mode: prompts.get(mode) if text is None else text for mode, text in found.items()}
    return {mode: text for mode, text in found.items() if isinstance(text, str)}


def _with_context(model: ModelFolder, folder: Path, wanted: int | None) -> ModelFolder:
    """Return the model with the number of context tokens that it reads.

    The vector is the average over the text alone. A network that averages by itself must recognise
    the context by its ``token_type_ids``. This is tested with an input of context only, for which
    such a network has nothing to average.
    """
    able = not model.pooled or _leaves_context_out(model)
    if wanted is None:
        wanted = CONTEXT_TOKENS if model.pooled and able else 0
    if wanted and not able:
        raise ConfigError(
            f"the model in {folder} cannot read a context: its network averages all tokens, "
            "whatever their token_type_ids are. Set context_tokens to 0"
        )
    if not 0 <= wanted <= model.max_tokens // 2:
        raise ConfigError(
            f"the model in {folder} cannot read a context of {wanted} tokens: set context_tokens "
            f"to at most half of max_tokens, {model.max_tokens // 2}"
        )
    name = f"{model.name}-context-{wanted}" if wanted else model.name
    return replace(model, name=name, context_tokens=wanted)


def _leaves_context_out(model: ModelFolder) -> bool:
    if "token_type_ids" not in model.inputs:
        return False
    ids = np.array([[*model.opening, *model.closing] or [0]], dtype=np.int64)
    feeds = {name: np.ones_like(ids) for name in ("attention_mask", "token_type_ids")}
    feeds = {name: value for name, value in feeds.items() if name in model.inputs}
    [vectors] = model.session.run([model.output], {"input_ids": ids, **feeds})
    return not np.any(np.nan_to_num(np.asarray(vectors, dtype=np.float32)))
