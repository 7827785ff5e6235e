"""Word vectors from the wheel: offline, alike everywhere, and quiet."""

from __future__ import annotations

import logging
import math
import subprocess
import sys

import pytest

from holdfast.engines.embedders.static import StaticEmbedder
from holdfast.spi.embedding import embed_texts
from holdfast.testing.hostile import TEXTS


def _cosine(left: list[float], right: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


@pytest.mark.asyncio(loop_scope="session")
async def test_texts_that_mean_alike_are_nearer_than_others() -> None:
    [boat, ship, tax] = await StaticEmbedder().embed(
        ["a small boat on the sea", "ships sail the ocean", "the tax office is closed"]
    )
    assert _cosine(boat, ship) > _cosine(boat, tax)
    assert _cosine(boat, ship) > _cosine(ship, tax)


@pytest.mark.asyncio(loop_scope="session")
async def test_every_text_has_a_vector_that_can_be_kept_also_the_empty_one() -> None:
    hostile = [one.value for one in TEXTS if isinstance(one.value, str)]
    texts = ["", " ", *filter(_is_unicode, hostile)]
    vectors = await embed_texts(StaticEmbedder(), texts)
    assert {len(vector) for vector in vectors} == {256}
    assert all(_cosine(vector, vector) == pytest.approx(1, abs=1e-3) for vector in vectors)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.asyncio(loop_scope="session")
async def test_few_and_many_texts_embed_alike() -> None:
    embedder = StaticEmbedder()
    [one] = await embedder.embed(["low tide"])
    many = await embedder.embed(["low tide", "something much longer than that"] * 10)
    assert many[0] == pytest.approx(one, abs=1e-6)


def test_loading_it_leaves_the_programs_logging_alone() -> None:
    program = (
        "import asyncio, logging\n"
        "from holdfast.engines.embedders.static import StaticEmbedder\n"
        "asyncio.run(StaticEmbedder().embed(['x']))\n"
        "root = logging.getLogger()\n"
        "print(root.handlers, root.level)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == f"[] {logging.WARNING}"
