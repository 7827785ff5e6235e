"""A model from a folder: a tiny one, made here with the onnx package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

from holdfast.engines.embedders.onnx import BATCH, OnnxEmbedder
from holdfast.values.errors import ConfigError

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = {"[UNK]": 0, "tide": 1, "ship": 2, "field": 3, "query:": 4}
VECTORS = np.array(
    [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 8]], dtype=np.float32
)


def _save(folder: Path, *, pooled: bool = False) -> None:
    """A model that looks up a vector for each token."""
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "length"])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"]),
        helper.make_node("Shape", ["attention_mask"], ["unused"]),
    ]
    shape: list[str | int] = ["batch", "length", 4]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)]
    axes = numpy_helper.from_array(np.array([1], dtype=np.int64), "axes")
    if pooled:
        nodes.append(
            helper.make_node(
                "ReduceMax", ["last_hidden_state", "axes"], ["sentence_embedding"], keepdims=0
            )
        )
        outputs.append(
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", 4])
        )
    table = [numpy_helper.from_array(VECTORS, "table"), *([axes] if pooled else [])]
    graph = helper.make_graph(nodes, "tiny", [ids, mask], outputs, initializer=table)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))  # noqa: S106 - a token
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))


async def test_the_vectors_of_a_texts_tokens_are_averaged_and_padding_does_not_count(
    tmp_path: Path,
) -> None:
    _save(tmp_path)
    embedder = await OnnxEmbedder.open(tmp_path)
    assert (embedder.name, embedder.dimension) == (f"onnx-{tmp_path.name}", 4)
    [alone, both] = await embedder.embed(["tide", "tide ship"])
    assert alone == pytest.approx([1, 0, 0, 0])
    assert both == pytest.approx([0.70710678, 0.70710678, 0, 0])


async def test_many_texts_come_back_in_their_order(tmp_path: Path) -> None:
    _save(tmp_path)
    embedder = await OnnxEmbedder.open(tmp_path)
    words = ["tide", "ship " * 30, "field field"] * BATCH
    vectors = await embedder.embed(words)
    assert [int(np.argmax(vector)) for vector in vectors] == [0, 1, 2] * BATCH


async def test_a_text_longer_than_the_model_takes_is_cut(tmp_path: Path) -> None:
    _save(tmp_path)
    embedder = await OnnxEmbedder.open(tmp_path)
    [vector] = await embedder.embed(["tide " * 600 + "ship " * 600])
    assert vector == pytest.approx([1, 0, 0, 0])


async def test_a_sentence_vector_of_the_models_own_is_taken_as_it_is(tmp_path: Path) -> None:
    _save(tmp_path, pooled=True)
    embedder = await OnnxEmbedder.open(tmp_path)
    [both] = await embedder.embed(["tide ship"])
    assert both == pytest.approx([0.70710678, 0.70710678, 0, 0])


async def test_a_question_has_the_prompt_that_the_folder_says(tmp_path: Path) -> None:
    _save(tmp_path)
    settings = tmp_path / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"prompts": {"query": "query: "}}))
    embedder = await OnnxEmbedder.open(tmp_path)
    [question] = await embedder.embed(["tide"], mode="query")
    [passage] = await embedder.embed(["tide"])
    assert int(np.argmax(question)) == 3
    assert int(np.argmax(passage)) == 0


async def test_a_folder_without_a_model_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.onnx"):
        await OnnxEmbedder.open(tmp_path)
    _save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        await OnnxEmbedder.open(tmp_path)
    _save(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"nothing of the kind")
    with pytest.raises(ConfigError, match="cannot be read"):
        await OnnxEmbedder.open(tmp_path)
