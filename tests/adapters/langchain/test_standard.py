"""LangChain's standard tests of key-value stores and vector stores, on both engines."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    VectorStoreIntegrationTests,
)

from holdfast import State
from holdfast.adapters.langchain import HoldfastKeyValueStore, HoldfastVectorStore


class TestVectorStore(VectorStoreIntegrationTests):
    """Documents, sync and async."""

    @pytest.fixture
    def vectorstore(self, state: State) -> HoldfastVectorStore:
        """An empty store."""
        return HoldfastVectorStore(state, self.get_embeddings())


class TestKeyValues(BaseStoreSyncTests):
    """Pairs, sync."""

    @pytest.fixture
    def kv_store(self, state: State) -> HoldfastKeyValueStore:
        """An empty store."""
        return HoldfastKeyValueStore(state)

    @pytest.fixture(params=["bytes", "json"])
    def three_values(self, request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
        """Values of each kind."""
        if request.param == "bytes":
            return b"", b"\x00\xff", b"three"
        return {"a": [1, None]}, "text", 3.5


class TestAsyncKeyValues(BaseStoreAsyncTests):
    """Pairs, async."""

    @pytest.fixture
    def kv_store(self, state: State) -> HoldfastKeyValueStore:
        """An empty store."""
        return HoldfastKeyValueStore(state)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        """Bytes."""
        return b"", b"\x00\xff", b"three"
