"""Registers the services with ADK, so that ``adk web --session_service_uri`` and others find them.

A URI is ``holdfast+`` and a URL of ``holdfast.open``: ``holdfast+postgresql://host/db``,
``holdfast+memory:``; ``holdfast+file:///folder`` is embedded Postgres in a folder.
"""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import unquote, urlsplit

from google.adk.cli.service_registry import ServiceRegistry, get_service_registry

from holdfast.adapters.google_adk.artifacts import HoldfastArtifactService
from holdfast.adapters.google_adk.memory import HoldfastMemoryService
from holdfast.adapters.google_adk.sessions import HoldfastSessionService
from holdfast.blocking import Portal
from holdfast.values.errors import ConfigError

_PREFIX = "holdfast+"
SCHEMES = tuple(_PREFIX + one for one in ("memory", "postgresql", "postgres", "file"))
"""The schemes of the URIs."""

_portals: dict[str, Portal] = {}
_lock = threading.Lock()


def register(registry: ServiceRegistry | None = None) -> None:
    """Register the three services with ADK, for each of ``SCHEMES``.

    Call it in ``services.py`` in the folder of your agents, which ``adk`` imports when it starts::

        from holdfast.adapters.google_adk import register

        register()
    """
    found = get_service_registry() if registry is None else registry
    for scheme in SCHEMES:
        found.register_session_service(scheme, session_service)
        found.register_memory_service(scheme, memory_service)
        found.register_artifact_service(scheme, artifact_service)


def session_service(uri: str, **options: Any) -> HoldfastSessionService:
    """Return the session service of a URI, for ``class`` in ``services.yaml``.

    ::

        session_service("holdfast+postgresql://localhost/agents")
    """
    return HoldfastSessionService(_portal(uri, options))


def memory_service(uri: str, **options: Any) -> HoldfastMemoryService:
    """Return the memory service of a URI, for ``class`` in ``services.yaml``.

    ::

        memory_service("holdfast+postgresql://localhost/agents")
    """
    return HoldfastMemoryService(_portal(uri, options))


def artifact_service(uri: str, **options: Any) -> HoldfastArtifactService:
    """Return the artifact service of a URI, for ``class`` in ``services.yaml``.

    ::

        artifact_service("holdfast+postgresql://localhost/agents")
    """
    return HoldfastArtifactService(_portal(uri, options))


def _portal(uri: str, options: dict[str, Any]) -> Portal:
    """Return the open state of a URI, which all services of this process share."""
    unknown = sorted(options.keys() - {"agents_dir", "per_agent"})
    if unknown:
        raise ConfigError(
            f"unknown options {', '.join(unknown)}: a holdfast+ URI has none; set HOLDFAST_* "
            "variables instead"
        )
    url = _url(uri)
    with _lock:
        if url not in _portals:
            _portals[url] = Portal.open(url)
        return _portals[url]


def _url(uri: str) -> str:
    if not uri.startswith(SCHEMES):
        raise ConfigError(f"the URI must begin with one of {', '.join(SCHEMES)}")
    url = uri.removeprefix(_PREFIX)
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return "memory:"  # ADK writes memory://
    if parts.scheme != "file":
        return url
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigError("a holdfast+file: URI is that of a folder here: holdfast+file:///folder")
    return unquote(parts.path)
