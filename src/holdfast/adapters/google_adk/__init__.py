"""Sessions, memory and artifacts of Google's Agent Development Kit in Holdfast."""

from holdfast.adapters.google_adk import installed as installed
from holdfast.adapters.google_adk.artifacts import HoldfastArtifactService
from holdfast.adapters.google_adk.memory import HoldfastMemoryService
from holdfast.adapters.google_adk.registry import register
from holdfast.adapters.google_adk.sessions import HoldfastSessionService

__all__ = [
    "HoldfastArtifactService",
    "HoldfastMemoryService",
    "HoldfastSessionService",
    "register",
]
