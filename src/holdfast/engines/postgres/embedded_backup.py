"""Backups of an embedded folder: copies its files while the server runs, and restores them.

``pg_basebackup`` copies the files and the log of what changes meanwhile, and writes a manifest with
the digest of each file, which is compared afterwards and before a restore. A backup is a folder
``data`` that gets its name when it is complete, so that a backup that was interrupted is not
mistaken for one.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import msgspec

from holdfast.engines.postgres.binaries import MAJOR, program, reached, run, system_user
from holdfast.engines.postgres.embedded import EmbeddedPostgres, socket_folder
from holdfast.engines.postgres.embedded_data import UNFINISHED, give_to
from holdfast.values.errors import CodecError, ConfigError, InvalidInputError

_DATA = "data"
_MANIFEST = "backup_manifest"


async def back_up(folder: str | Path, target: str | Path) -> int:
    """Back up an embedded folder, while it is used, into a new folder. Returns its size in bytes.

    ::

        await back_up(".holdfast", "backup")
    """
    await asyncio.to_thread(_check_there, _path(folder))
    embedded = await EmbeddedPostgres.open(folder)
    try:
        return await asyncio.to_thread(_back_up, embedded.folder, _path(target))
    finally:
        await embedded.aclose()


def _path(given: str | Path) -> Path:
    return Path(given).expanduser().resolve()


def _check_there(source: Path) -> None:
    if not (source / _DATA / "PG_VERSION").exists():
        raise InvalidInputError("folder", f"{source} is not an embedded folder: it has no data")


def _back_up(source: Path, into: Path) -> int:
    _check_free(into)
    user = system_user(source / _DATA)
    draft = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=into))
    try:
        give_to(draft, user)
        with (
            reached(draft, user) as (path, files),
            reached(socket_folder(source), user) as (socket, more),
        ):
            run(
                [
                    str(program("pg_basebackup")),
                    *("-h", socket, "-U", "postgres", "-D", path),
                    *("--wal-method=stream", "--checkpoint=fast", "--no-password"),
                    "--manifest-checksums=SHA256",
                ],
                user=user,
                folder=into,
                files=(*files, *more),
            )
        _verify(draft)
        _name(draft, into / _DATA)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return sum(one.stat().st_size for one in into.rglob("*") if one.is_file())


async def restore(backup: str | Path, folder: str | Path) -> int:
    """Restore a backup into a new embedded folder, after its checksums are compared.

    Returns its size in bytes. ::

        await restore("backup", ".holdfast")
    """
    return await asyncio.to_thread(_restore, _path(backup), _path(folder))


def _restore(source: Path, into: Path) -> int:
    data = source / _DATA
    if not (data / _MANIFEST).exists():
        raise InvalidInputError(
            "backup", f"{source} is not a backup: it has no {_DATA}/{_MANIFEST}"
        )
    made_by = (data / "PG_VERSION").read_text().strip()
    if made_by != str(MAJOR):
        raise ConfigError(
            f"{str(source)!r} was made by Postgres {made_by}, and this version of holdfast has "
            f"{MAJOR}: restore it with the version that made it"
        )
    user = system_user(data)
    _verify(data)
    _check_free(into)
    draft = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=into))
    try:
        shutil.copytree(data, draft, dirs_exist_ok=True, symlinks=True)
        for one in (draft, *draft.rglob("*")):
            give_to(one, user)
        draft.chmod(0o700)
        _sync_all(draft)
        _name(draft, into / _DATA)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return sum(one.stat().st_size for one in (into / _DATA).rglob("*") if one.is_file())


class _File(msgspec.Struct, rename="pascal"):
    path: str
    size: int
    checksum: str
    algorithm: str = msgspec.field(name="Checksum-Algorithm")


class _Files(msgspec.Struct, rename="pascal"):
    files: list[_File]


def _verify(data: Path) -> None:
    """Compare the files of a backup with its manifest. Raises ``CodecError`` if one differs."""
    text = (data / _MANIFEST).read_bytes()
    # The last line holds the digest of all lines before it.
    body, mark, digest = text.rpartition(b'"Manifest-Checksum": "')
    if not mark or hashlib.sha256(body).hexdigest() != digest[:64].decode(errors="replace"):
        raise CodecError(f"backup: {_MANIFEST} is damaged")
    try:
        found = msgspec.json.decode(text, type=_Files)
    except msgspec.DecodeError as error:
        raise CodecError(f"backup: {_MANIFEST} cannot be read: {error}") from error
    for one in found.files:
        path = data / one.path
        if ".." in path.parts or not path.is_relative_to(data) or one.algorithm != "SHA256":
            raise CodecError(f"backup: {_MANIFEST} names {one.path[:80]!r}")
        if not path.is_file() or path.stat().st_size != one.size:
            raise CodecError(f"backup: {one.path} is missing or was cut")
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != one.checksum:
                raise CodecError(f"backup: {one.path} is damaged: it has another digest")


def _check_free(folder: Path) -> None:
    """Create a folder, or accept one that has no data and that no process uses."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / _DATA).exists():
        raise InvalidInputError(
            "folder", f"{folder} has data already: choose a new or an empty folder"
        )
    for name in {one.name for one in folder.iterdir()} - {"lost+found"}:
        if not name.endswith(".lock") and not name.startswith(UNFINISHED):
            raise InvalidInputError(
                "folder", f"{folder} has files that are not ours, such as {name!r}: choose another"
            )
    lock = folder / "server.lock"
    with lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError("folder", f"{folder} is in use") from None


def _name(draft: Path, data: Path) -> None:
    """Rename a complete folder to its final name, so that the name survives a power cut."""
    draft.rename(data)
    _sync(data.parent)


def _sync_all(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        if not path.is_symlink():
            _sync(path)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
