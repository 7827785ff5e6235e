"""Other ASGI apps in the same server as the service, by the prefix of their paths."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send


class Mounts:
    """Passes a request, with its whole path, to the app of its prefix, or else to the service.

    ::

        asgi = Mounts(gate, {"/studio": studio})
    """

    def __init__(self, service: ASGIApp, apps: Mapping[str, ASGIApp]) -> None:
        self._service = service
        self._apps = dict(apps)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        await self._app(scope)(scope, receive, send)

    def _app(self, scope: Scope) -> ASGIApp:
        path = scope.get("path", "")
        for prefix, app in self._apps.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                return app
        return self._service
