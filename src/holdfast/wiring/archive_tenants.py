"""Archives of all tenants: one folder for each, under one folder."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from holdfast.engines.archive_folder.manifest import MANIFEST, read_manifest
from holdfast.values.errors import InvalidInputError

if TYPE_CHECKING:
    from holdfast.wiring.state import State

_PAGE = 100
_MOST = 200


def tenant_folder(folder: Path, tenant: str) -> Path:
    """Return the folder for the archive of a tenant, whatever its name is.

    >>> tenant_folder(Path("all"), "../acme").as_posix()
    'all/tenant-..%2Facme'
    """
    name = quote(tenant, safe="")
    if len(name) > _MOST:
        name = f"sha256-{hashlib.sha256(tenant.encode()).hexdigest()}"
    return folder / f"tenant-{name}"


async def every_tenant(state: State) -> AsyncIterator[State]:
    """Yield a view of each tenant that has data, in the order of their names.

    ::

        async for view in every_tenant(state):
            await view.ops.archives.export(tenant_folder(folder, view.tenant))
    """
    after = ""
    while page := await state.ops.tenants(after=after, limit=_PAGE):
        for after in page:
            yield state.for_tenant(after)


def archived_tenants(folder: Path) -> list[tuple[str, Path]]:
    """Return the tenants that have an archive under a folder, and their folders.

    ::

        for tenant, place in archived_tenants(Path("all")):
            await state.for_tenant(tenant).ops.archives.load(place)
    """
    places = sorted(folder.glob("tenant-*")) if folder.is_dir() else []
    found = [(read_manifest(one).tenant, one) for one in places if (one / MANIFEST).exists()]
    if not found:
        raise InvalidInputError(
            "folder", f"{folder} has no archives of tenants: export with --all-tenants"
        )
    return found
