"""Archives that somebody changed: typed errors, and nothing half loaded in silence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.values.errors import CodecError, InvalidInputError
from tests.archives.test_archives import ENGINES, exported, opened

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _changed(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Change a file of an archive, and make all digests fit again."""
    path = folder / name
    data = change(path.read_bytes())
    path.write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    kind = path.name.split("-")[0]
    entry = manifest["kinds"][kind]
    entry["records"] = data.count(b"\n")
    entry["sha256"] = hashlib.sha256(data).hexdigest()
    entry["segments"] = [
        {"records": data.count(b"\n"), "bytes": len(data), "sha256": entry["sha256"]}
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _manifest(folder: Path, change: Callable[[Any], None]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


STATES = "short_term/states-000001.jsonl"


def _a_path(folder: Path) -> None:
    _manifest(folder, lambda one: one["kinds"].update({"../x": one["kinds"]["states"]}))


def _a_blob(folder: Path, sha256: str) -> None:
    _changed(folder, "blobs/blobs-000001.jsonl", lambda data: _with(data, sha256=sha256))


def _with(data: bytes, **fields: Any) -> bytes:
    lines = [json.loads(line) | fields for line in data.splitlines()]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


HOSTILE: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "a path as a kind": (_a_path, InvalidInputError, "unknown record kind"),
    "a path as a digest": (
        lambda folder: _a_blob(folder, "../../etc/passwd"),
        InvalidInputError,
        "not a SHA-256",
    ),
    "an unknown field": (
        lambda folder: _manifest(folder, lambda one: one.update(more=1)),
        InvalidInputError,
        "manifest.json",
    ),
    "another version": (
        lambda folder: _manifest(folder, lambda one: one.update(version=99)),
        InvalidInputError,
        "version 99",
    ),
    "no manifest": (
        lambda folder: (folder / "manifest.json").unlink(),
        InvalidInputError,
        "is not an archive",
    ),
    "an unfinished export": (
        lambda folder: _manifest(folder, lambda one: one.update(complete=False)),
        InvalidInputError,
        "not complete",
    ),
    "another byte": (
        lambda folder: (folder / STATES).write_bytes(
            (folder / STATES).read_bytes().replace(b"1", b"2", 1)
        ),
        CodecError,
        "another digest",
    ),
    "a cut segment": (
        lambda folder: (folder / STATES).write_bytes((folder / STATES).read_bytes()[:-9]),
        CodecError,
        "cut or changed",
    ),
    "a missing segment": (
        lambda folder: (folder / STATES).unlink(),
        CodecError,
        "is missing",
    ),
    "a missing blob": (
        lambda folder: _a_blob(folder, "0" * 64),
        CodecError,
        "is missing",
    ),
    "a segment that is a link": (
        lambda folder: _as_link(folder / STATES),
        CodecError,
        "cannot be read",
    ),
    "a huge segment": (
        lambda folder: _manifest(
            folder, lambda one: one["kinds"]["states"]["segments"][0].update(bytes=1 << 40)
        ),
        InvalidInputError,
        "impossible size",
    ),
    "a version beyond all": (
        lambda folder: _changed(folder, STATES, lambda data: _with(data, version=1 << 62)),
        InvalidInputError,
        "version: is out of range",
    ),
    "a state that is no JSON": (
        lambda folder: _changed(folder, STATES, lambda data: _with(data, values={"a": "{"})),
        InvalidInputError,
        "values: is not the JSON",
    ),
    "an id with a control character": (
        lambda folder: _changed(folder, STATES, lambda data: _with(data, session="a\x00b")),
        InvalidInputError,
        "control character",
    ),
    "a line that is no record": (
        lambda folder: _changed(folder, STATES, lambda data: data + b"[1]\n"),
        InvalidInputError,
        "states-000001.jsonl:3: is not a record",
    ),
    "an unknown state of a task": (
        lambda folder: _changed(
            folder, "tasks/tasks-000001.jsonl", lambda data: _with(data, state="done")
        ),
        InvalidInputError,
        "not a record of tasks",
    ),
}


def _as_link(path: Path) -> None:
    elsewhere = path.with_suffix(".away")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_archive_is_refused_and_nothing_is_loaded(
    what: str, tmp_path: Path
) -> None:
    folder = await exported(tmp_path / "a")
    spoil, error, text = HOSTILE[what]
    spoil(folder)
    async with opened("memory") as state:
        with pytest.raises(error, match=text):
            await state.ops.archives.load(folder)
        report = await state.ops.archives.export(tmp_path / "b")
        assert report.records == 0


async def test_a_blob_with_other_bytes_is_refused(tmp_path: Path) -> None:
    folder = await exported(tmp_path / "a")
    blob, data = _flipped(folder)
    async with opened("postgres") as state:
        with pytest.raises(CodecError, match="another digest"):
            await state.ops.archives.load(folder)
        blob.write_bytes(data)
        await state.ops.archives.load(folder)  # it continues


async def test_a_record_whose_parent_is_missing_is_an_error_and_not_a_loss(tmp_path: Path) -> None:
    folder = await exported(tmp_path / "a")
    _manifest(folder, lambda one: one["kinds"].update(sessions=_empty()))
    for engine in ENGINES:
        async with opened(engine) as state:
            with pytest.raises(holdfast.HoldfastError):
                await state.ops.archives.load(folder)


def _empty() -> dict[str, Any]:
    digest = hashlib.sha256(b"").hexdigest()
    return {"segments": [], "records": 0, "sha256": digest}


def _flipped(folder: Path) -> tuple[Path, bytes]:
    """Change the last byte of the largest blob; its path, and its bytes before."""
    path = max((folder / "blobs").iterdir(), key=lambda one: one.stat().st_size)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    return path, data
