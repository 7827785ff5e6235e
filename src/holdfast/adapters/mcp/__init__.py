"""A memory server for clients of the Model Context Protocol; ``holdfast mcp`` runs it."""

from holdfast.adapters.mcp import installed as installed
from holdfast.adapters.mcp.graph import MemoryGraph
from holdfast.adapters.mcp.server import memory_server
from holdfast.adapters.mcp.tool import Caller

__all__ = ["Caller", "MemoryGraph", "memory_server"]
