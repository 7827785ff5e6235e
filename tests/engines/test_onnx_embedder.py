"""A model from a folder: a tiny one, made here with the onnx package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from holdfast.engines.embedders.onnx import BATCH, OnnxEmbedder
from holdfast.spi.embedding import Turn, embed_turns, lexical_weight, reads_context
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


def _save_for_turns(folder: Path) -> None:
    """A model that averages the tokens of type 0, and reads all: the others move nothing here."""
    shape: list[str | int] = ["batch", "length"]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["hidden"]),
        helper.make_node("Sub", ["attention_mask", "token_type_ids"], ["counted"]),
        helper.make_node("Cast", ["counted"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["columns"]),
        helper.make_node("Mul", ["hidden", "columns"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "axes"], ["sentence_embedding"], keepdims=0),
    ]
    output = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", 4])
    constants = [
        numpy_helper.from_array(VECTORS, "table"),
        numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "axes"),
    ]
    graph = helper.make_graph(nodes, "turns", inputs, [output], initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))  # noqa: S106 - a token
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[UNK] $A [UNK]", special_tokens=[("[UNK]", 0)]
    )
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


TURN: list[Turn] = [("ship ship ship", "tide")]


async def test_a_network_that_leaves_a_context_out_of_the_average_is_given_one(
    tmp_path: Path,
) -> None:
    _save_for_turns(tmp_path)
    embedder = await OnnxEmbedder.open(tmp_path)
    assert reads_context(embedder)
    assert embedder.name == f"onnx-{tmp_path.name}-context-48"
    [model_input] = embedder._inputs([("ship field", "tide")], "query: ")
    assert model_input.tokens == [0, 4, 2, 3, 0, 1, 0]
    assert (model_input.start, model_input.context) == (2, 3)
    [turn] = await embed_turns(embedder, TURN)
    [alone] = await embed_turns(embedder, [("", "tide")])
    assert turn == pytest.approx(alone)
    assert turn[1] == 0


async def test_a_context_is_read_from_its_end(tmp_path: Path) -> None:
    _save_for_turns(tmp_path)
    embedder = await OnnxEmbedder.open(tmp_path, context_tokens=2)
    [model_input] = embedder._inputs([("tide " * 1_000_000 + "ship field", "tide")], "")
    assert model_input.tokens == [0, 2, 3, 0, 1, 0]


async def test_a_context_and_a_text_that_are_too_long_together_are_cut(tmp_path: Path) -> None:
    _save_for_turns(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps({"max_tokens": 10, "context_tokens": 4}))
    embedder = await OnnxEmbedder.open(tmp_path)
    turns = [("ship " * 50, "tide " * 50), ("", "tide " * 50)]
    assert [len(one.tokens) for one in embedder._inputs(turns, "")] == [10, 10]
    long_prefix = embedder._inputs(turns, "query: " * 50)
    assert long_prefix[0].tokens.count(1) == 1


async def test_a_context_may_be_switched_off(tmp_path: Path) -> None:
    _save_for_turns(tmp_path)
    embedder = await OnnxEmbedder.open(tmp_path, context_tokens=0)
    assert not reads_context(embedder)
    assert embedder.name == f"onnx-{tmp_path.name}"
    assert await embed_turns(embedder, TURN) == await embedder.embed(["tide"])


async def test_a_network_of_token_vectors_reads_a_context_only_if_its_folder_says_so(
    tmp_path: Path,
) -> None:
    _save(tmp_path)
    assert not reads_context(await OnnxEmbedder.open(tmp_path))
    (tmp_path / "model.json").write_text(json.dumps({"context_tokens": 8}))
    embedder = await OnnxEmbedder.open(tmp_path)
    assert reads_context(embedder)
    [turn] = await embed_turns(embedder, TURN)
    assert turn == pytest.approx([1, 0, 0, 0])


async def test_a_network_that_averages_all_tokens_refuses_a_context(tmp_path: Path) -> None:
    _save(tmp_path, pooled=True)
    assert not reads_context(await OnnxEmbedder.open(tmp_path))
    with pytest.raises(ConfigError, match="cannot read a context: its network averages all"):
        await OnnxEmbedder.open(tmp_path, context_tokens=48)


async def test_a_context_of_more_than_half_of_the_input_is_refused(tmp_path: Path) -> None:
    _save_for_turns(tmp_path)
    for bad in (257, 10**30):
        with pytest.raises(ConfigError, match=r"half of max_tokens, 256"):
            await OnnxEmbedder.open(tmp_path, context_tokens=bad)


async def test_the_folder_names_prefixes_and_weight(tmp_path: Path) -> None:
    _save(tmp_path)
    other = tmp_path / "config_sentence_transformers.json"
    other.write_text(json.dumps({"prompts": {"query": "ship", "passage": "ship "}}))
    assert lexical_weight(await OnnxEmbedder.open(tmp_path)) == 0.4
    (tmp_path / "model.json").write_text(
        json.dumps({"query_prefix": "query: ", "lexical_weight": 0.25})
    )
    embedder = await OnnxEmbedder.open(tmp_path)
    assert lexical_weight(embedder) == 0.25
    [question] = await embedder.embed(["tide"], mode="query")
    [passage] = await embedder.embed(["tide"])
    assert int(np.argmax(question)) == 3
    assert passage == pytest.approx([0.70710678, 0.70710678, 0, 0])


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ('{"context_tokens": -1}', "context_tokens"),
        ('{"max_tokens": 7}', "max_tokens"),
        ('{"max_tokens": 1e30}', "max_tokens"),
        ('{"lexical_weight": 2}', "lexical_weight"),
        ('{"query_prefix": 5}', "query_prefix"),
        ('{"prefix": "x"}', "prefix"),
        ("[]", "object"),
        ("", "truncated"),
    ],
)
async def test_a_model_json_that_cannot_be_read_is_refused_with_its_field(
    tmp_path: Path, declared: str, named: str
) -> None:
    _save(tmp_path)
    (tmp_path / "model.json").write_text(declared)
    with pytest.raises(ConfigError, match=rf"model\.json cannot be read.*{named}"):
        await OnnxEmbedder.open(tmp_path)


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
