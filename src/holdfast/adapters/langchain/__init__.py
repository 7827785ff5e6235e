"""LangChain: a key-value store on ``state.items`` and a vector store on ``state.vectors``.

Needs the extra ``langchain``.
"""

from holdfast.adapters.langchain.installed import EXTRA
from holdfast.adapters.langchain.key_values import HoldfastKeyValueStore
from holdfast.adapters.langchain.vectors import HoldfastVectorStore

__all__ = ["EXTRA", "HoldfastKeyValueStore", "HoldfastVectorStore"]
