"""An artifact service of Google ADK on ``state.blobs`` and ``state.items``.

The bytes of a version are a blob. A file is an item that names its newest version, and each version
is an item too; both items are written in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import (
    ArtifactVersion,
    BaseArtifactService,
    ensure_part,
)
from google.adk.errors.input_validation_error import InputValidationError
from google.adk.platform import time as platform_time
from google.genai import types

from holdfast.adapters.google_adk.records import digest_of
from holdfast.blocking import Portal
from holdfast.contracts.blobs import Blobs
from holdfast.contracts.items import Items
from holdfast.values.errors import InvalidInputError, NotFoundError, VersionConflictError
from holdfast.values.items import Item, ItemKey, ItemPut
from holdfast.wiring.state import State

_FILES, _VERSIONS = "adk-artifacts", "adk-artifact-versions"
_USER = "user:"
_PAGE = 1_000
_DEPTH = 5
"""How many references to other artifacts a load follows, as in ADK's own services."""
_TOMBSTONE = types.Part(inline_data=types.Blob(mime_type="application/octet-stream", data=b""))
"""What ADK saves in place of an artifact when a session is rewound: it loads as ``None``."""


class HoldfastArtifactService(BaseArtifactService):
    """Stores artifacts, for ``Runner(artifact_service=...)``; any event loop may use it.

    ``state`` determines the engine, the tenant and the owner, and where blobs are: with ``blobs=``
    in an object store. Artifacts do not expire. ::

        artifacts = HoldfastArtifactService(state)
        runner = Runner(app_name="tides", agent=agent, artifact_service=artifacts, ...)
    """

    def __init__(self, state: State | Portal) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Store a new version of a file, and return its number: 0 for the first."""
        scope = _scope(app_name, user_id, filename, session_id)
        part = ensure_part(artifact)
        if artifact_util.is_artifact_ref(part):
            _target(part, app_name, user_id, session_id, _DEPTH)
        data, row = _stored(part)
        row |= {"metadata": custom_metadata or {}, "created_at": platform_time.get_time()}
        return await self._portal.arun(self._save(scope, filename, data, row))

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """Return a version of a file, by default the newest; ``None`` if there is none."""
        for depth in range(_DEPTH, -1, -1):
            scope = _scope(app_name, user_id, filename, session_id)
            part = await self._portal.arun(self._load(scope, filename, version))
            if part is None or not artifact_util.is_artifact_ref(part):
                return part
            to = _target(part, app_name, user_id, session_id, depth)
            filename, session_id, version = to.filename, to.session_id, to.version
        return None

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """Return the names of the files of a session and of its user, in order."""
        scopes = [_scope(app_name, user_id, _USER, None)]
        if session_id is not None:
            scopes.append(_scope(app_name, user_id, "", session_id))
        return sorted(await self._portal.arun(self._names(scopes)))

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete all versions of a file. Raises ``NotSupportedError`` in the view of an owner."""
        scope = _scope(app_name, user_id, filename, session_id)
        await self._portal.arun(self._delete(scope, filename))

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """Return the numbers of the versions of a file."""
        scope = _scope(app_name, user_id, filename, session_id)
        [head] = await self._portal.arun(self._rows(scope, filename, [None]))
        return [] if head is None else list(range(head.value["version"] + 1))

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Return the metadata of each version of a file."""
        scope = _scope(app_name, user_id, filename, session_id)
        rows = await self._portal.arun(self._all(scope, filename))
        return [_info(row, app_name, user_id, session_id) for row in rows]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """Return the metadata of a version, by default the newest; ``None`` if there is none."""
        scope = _scope(app_name, user_id, filename, session_id)
        [row] = await self._portal.arun(self._rows(scope, filename, [version]))
        return None if row is None else _info(row, app_name, user_id, session_id)

    # A state's stores are read on its own loop, so all of these run there.

    @property
    def _items(self) -> Items:
        return self._portal.state.items

    @property
    def _blobs(self) -> Blobs:
        return self._portal.state.blobs

    async def _save(self, scope: str, filename: str, data: bytes, row: dict[str, Any]) -> int:
        mime = row["mime_type"] or "application/octet-stream"
        # If the process dies after this, the blob stays, and nothing refers to it.
        row["ref"] = await self._blobs.store(data, content_type=mime, pinned=True)
        try:
            while True:
                [head] = await self._rows(scope, filename, [None])
                row |= {"filename": filename, "version": head.value["version"] + 1 if head else 0}
                at = _key(scope, filename, row["version"])
                expected = head.version if head else 0
                puts = [
                    ItemPut(*_key(scope, filename, None), row, expected_version=expected),
                    ItemPut(*at, row, expected_version=0),
                ]
                try:
                    await self._items.put_many(puts)
                except VersionConflictError:
                    continue  # somebody else saved a version: take the next number
                return int(row["version"])
        except InvalidInputError:
            if not self._portal.state.owner:
                await self._blobs.delete(row["ref"])
            raise

    async def _load(self, scope: str, filename: str, version: int | None) -> types.Part | None:
        [row] = await self._rows(scope, filename, [version])
        if row is None:
            return None
        try:
            return _part(row.value, await self._blobs.resolve(row.value["ref"]))
        except NotFoundError:
            return None  # somebody is deleting the file

    async def _names(self, scopes: list[str]) -> set[str]:
        found: set[str] = set()
        for scope in scopes:
            page: list[Any] = [None] * _PAGE
            offset = 0
            while len(page) == _PAGE:
                page = await self._items.search((_FILES, scope), limit=_PAGE, offset=offset)
                found |= {hit.item.value["filename"] for hit in page}
                offset += len(page)
        return found

    async def _delete(self, scope: str, filename: str) -> None:
        while True:
            [head] = await self._rows(scope, filename, [None])
            if head is None:
                return
            rows = await self._all(scope, filename)
            # The blobs come first: if the process dies then, deleting the file again goes on.
            for row in rows:
                await self._blobs.delete(row.value["ref"])
            gone = [ItemPut(row.namespace, row.key, None) for row in rows]
            for at in range(0, len(gone), _PAGE):
                await self._items.put_many(gone[at : at + _PAGE])
            last = ItemPut(head.namespace, head.key, None, expected_version=head.version)
            try:
                await self._items.put_many([last])
            except VersionConflictError:
                continue  # somebody saved a version meanwhile: delete it too
            return

    async def _all(self, scope: str, filename: str) -> list[Item]:
        [head] = await self._rows(scope, filename, [None])
        found: list[Item] = []
        last = -1 if head is None else head.value["version"]
        for at in range(0, last + 1, _PAGE):
            numbers = range(at, min(at + _PAGE, last + 1))
            rows = await self._rows(scope, filename, list(numbers))
            found += [row for row in rows if row is not None]
        return found

    async def _rows(
        self, scope: str, filename: str, versions: Sequence[int | None]
    ) -> list[Item | None]:
        keys = [_key(scope, filename, one) for one in versions]
        return await self._items.get_many(keys)


def _scope(app: str, user: str, filename: str, session: str | None) -> str:
    """Return the label of the files of a session, or of a user."""
    artifact_util.validate_path_segment(app, "app_name")
    artifact_util.validate_path_segment(user, "user_id")
    if filename.startswith(_USER):
        return digest_of(app, user)
    if session is None:
        raise InputValidationError("Session ID must be provided for session-scoped artifacts.")
    artifact_util.validate_path_segment(session, "session_id")
    return digest_of(app, user, session)


def _key(scope: str, filename: str, version: int | None) -> ItemKey:
    """Return the item key of a version of a file; without ``version``, of the file."""
    file = digest_of(filename)
    if version is None:
        return ItemKey((_FILES, scope), file)
    return ItemKey((_VERSIONS, scope, file), str(version))


def _stored(part: types.Part) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a part, and the fields from which the part is restored."""
    if part.inline_data is not None:
        mime = part.inline_data.mime_type
        return part.inline_data.data or b"", _row("inline", mime, part, {"inline_data": {"data"}})
    if part.text is not None:
        return part.text.encode(), _row("text", "text/plain", part, {"text": True})
    if part.file_data is not None:
        mime = None if artifact_util.is_artifact_ref(part) else part.file_data.mime_type
        return b"", _row("file", mime, part, {})
    raise InputValidationError("Not supported artifact type.")


def _row(kind: str, mime: str | None, part: types.Part, blob: dict[str, Any]) -> dict[str, Any]:
    rest = part.model_dump(mode="json", exclude_none=True, exclude=blob)
    return {"kind": kind, "mime_type": mime, "part": rest}


def _part(row: dict[str, Any], data: bytes) -> types.Part | None:
    # As JSON, since bytes are base64 only there.
    part = types.Part.model_validate_json(json.dumps(row["part"]))
    if row["kind"] == "text":
        part.text = data.decode()
    if row["kind"] == "inline":
        part.inline_data.data = data
    return None if part == _TOMBSTONE else part


def _target(
    part: types.Part, app: str, user: str, session: str | None, depth: int
) -> artifact_util.ParsedArtifactUri:
    """Return the artifact that a reference names. Raises if it is not one of the user's files."""
    return artifact_util.resolve_artifact_reference(
        file_uri=part.file_data.file_uri,
        app_name=app,
        user_id=user,
        session_id=session,
        remaining_depth=depth,
    )


def _info(row: Item, app: str, user: str, session: str | None) -> ArtifactVersion:
    value = row.value
    filename, version = value["filename"], value["version"]
    of = None if filename.startswith(_USER) else session
    return ArtifactVersion(
        version=version,
        canonical_uri=artifact_util.get_artifact_uri(app, user, filename, version, of),
        custom_metadata=value["metadata"],
        create_time=value["created_at"],
        mime_type=value["mime_type"],
    )
