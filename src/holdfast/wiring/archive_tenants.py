"""Archives of all tenants: one folder for each, under one folder with a list of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import msgspec

from holdfast.engines.archive_folder.files import write_whole
from holdfast.engines.archive_folder.manifest import MANIFEST, MAX_MANIFEST_BYTES, read_manifest
from holdfast.values.errors import CodecError, InvalidInputError

if TYPE_CHECKING:
    from holdfast.wiring.state import State

TENANTS = "tenants.json"
_PAGE = 100
_MOST = 200


class _Tenants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The list of the tenants whose archives are complete."""

    tenants: list[str]
    format: Literal["holdfast-archives"] = "holdfast-archives"
    version: Literal[1] = 1


def tenant_folder(folder: Path, tenant: str) -> Path:
    """Return the folder for the archive of a tenant, whatever its name is.

    >>> tenant_folder(Path("all"), "../acme").as_posix()
    'all/tenant-..%2Facme'
    """
    name = quote(tenant, safe="")
    if len(name) > _MOST:
        # No quoted name has a plus.
        name = f"+{hashlib.sha256(tenant.encode()).hexdigest()}"
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


async def begin_archives(folder: Path) -> None:
    """Delete the list of an earlier export: until the new one ends, nothing can be loaded.

    ::

        await begin_archives(Path("all"))
    """
    await asyncio.to_thread((folder / TENANTS).unlink, missing_ok=True)


async def finish_archives(folder: Path, tenants: Sequence[str]) -> None:
    """Write the list of the tenants that were exported.

    ::

        await finish_archives(Path("all"), ["acme"])
    """
    text = msgspec.json.format(msgspec.json.encode(_Tenants(list(tenants))), indent=1)
    await asyncio.to_thread(write_whole, folder / TENANTS, text)


def archived_tenants(folder: Path) -> list[tuple[str, Path]]:
    """Return the tenants that were exported into a folder, and the folders of their archives.

    Raises ``CodecError`` if one of them is lost. ::

        for tenant, place in archived_tenants(Path("all")):
            await state.for_tenant(tenant).ops.archives.load(place)
    """
    found = []
    for tenant in _listed(folder):
        place = tenant_folder(folder, tenant)
        if not (place / MANIFEST).exists():
            raise CodecError(f"archive: {place / MANIFEST} was lost: copy the archive again")
        if read_manifest(place).tenant != tenant:
            raise CodecError(f"archive: {place} is of another tenant than {tenant!r}")
        found.append((tenant, place))
    return found


def _listed(folder: Path) -> list[str]:
    path = folder / TENANTS
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise InvalidInputError(TENANTS, f"is longer than {MAX_MANIFEST_BYTES} bytes")
        return msgspec.json.decode(path.read_bytes(), type=_Tenants).tenants
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInputError(
            "folder",
            f"{folder} has no {TENANTS}: export into it with --all-tenants, until the export ends",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(TENANTS, f"cannot be read: {error}") from error
