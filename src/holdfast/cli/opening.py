"""The state that the environment names, for commands that share it with other processes."""

from __future__ import annotations

import dataclasses

from holdfast.kernel.core.errors import ConfigError
from holdfast.wiring.engines import EMBEDDED, INMEMORY, engine_of_settings
from holdfast.wiring.front_door import Opening
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings


def shared_settings(*, alone: bool = False) -> Settings:
    """The environment's settings; embedded Postgres where it names no storage.

    A state in memory is refused, unless the process needs no other (``alone``): what one process
    keeps there no other sees. ::

        settings = shared_settings()
    """
    chosen = Settings.from_environment()
    spec = engine_of_settings(chosen)
    if spec is INMEMORY and not alone:
        raise ConfigError(
            "STORAGE_TYPE is memory, and what is in the memory of one process no other sees: "
            "unset it for the embedded Postgres in .holdfast, or set DATABASE_URL"
        )
    return chosen if spec else dataclasses.replace(chosen, storage_type=EMBEDDED.name)


def open_shared(tenant: str | None = None, *, alone: bool = False) -> Opening:
    """Open what the environment names, for a tenant or for that of ``HOLDFAST_TENANT``.

    ::

        async with open_shared("acme") as state:
            await state.tasks.list(owner=None)
    """
    return open_state(settings=shared_settings(alone=alone), tenant=tenant or None)
