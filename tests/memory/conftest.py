"""The hybrid memory on real servers, for tests of what happens between its two stores."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.engines.hybrid import HybridHarness


@pytest_asyncio.fixture(loop_scope="session")
async def hybrid() -> AsyncIterator[HybridHarness]:
    """Both stores, empty; nothing is flushed unless the test does it."""
    harness = HybridHarness()
    await harness.open()
    yield harness
    await harness.close()
