"""Key-encryption keys in the memory of the process, from the environment or from a file."""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.spi.key_provider import KeyProvider
from holdfast.values.errors import ConfigError, MissingExtraError, SealedError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_NONCE_BYTES = 12
_MAX_FILE = 1 << 20
_ID = re.compile(r"[A-Za-z0-9._/-]{1,128}")
_FORM = "ID:KEY with a key of 32 bytes in hexadecimal digits or base64: openssl rand -hex 32"


class KeyRing(KeyProvider):
    """Key-encryption keys by id; the first one wraps new data keys, the others only unwrap.

    >>> ring = KeyRing({"2026-11": bytes(32)}, name="env:")
    >>> ring.current
    '2026-11'
    """

    def __init__(self, keks: Mapping[str, bytes], *, name: str) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtraError("sealed mode", "sealing") from error
        if not keks:
            raise ConfigError(f"{name} has no key: write one as {_FORM}")
        self.name = name
        self._current = next(iter(keks))
        self._ciphers = {name: aead.AESGCM(key) for name, key in keks.items()}

    def __repr__(self) -> str:
        return f"<KeyRing {self.name} with {', '.join(self._ciphers)}>"

    @property
    def current(self) -> str:
        """The id of the first key, which wraps new data keys."""
        return self._current

    async def wrap(self, kek: str, key: bytes, context: bytes) -> bytes:
        """Encrypt a data key by AES-256-GCM with a random nonce."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher(kek).encrypt(nonce, key, context)

    async def unwrap(self, kek: str, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt a data key."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        cipher = self._cipher(kek)
        try:
            return cipher.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):
            raise SealedError(
                f"a data key does not open with the key {kek!r}: "
                f"{self.name} has another key under this id, or the row was changed"
            ) from None

    def _cipher(self, kek: str) -> AESGCM:
        if kek not in self._ciphers:
            raise SealedError(
                f"the key {kek!r} is missing: add it to {self.name}, after the current one"
            )
        return self._ciphers[kek]


def ring_of_text(text: str, *, name: str) -> KeyRing:
    """Return the keys in a text: ``ID:KEY``, separated by commas, spaces or line breaks.

    >>> ring_of_text("k2:" + "22" * 32 + ", k1:" + "11" * 32, name="env:").current
    'k2'
    """
    return KeyRing(_parse(text.replace(",", " ").split(), name), name=name)


def ring_of_file(path: str) -> KeyRing:
    """Return the keys in a file, one ``ID:KEY`` per line; ``#`` begins a comment.

    Raises if other users than its owner have any access to the file. ::

        ring = ring_of_file("/etc/holdfast/keys")
    """
    name = f"file:{path}"
    try:
        with Path(path).expanduser().open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{name} is not a regular file: name a file of keys")
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(
                    f"{name} may be used by others than its owner: run chmod 600 {path}"
                )
            text = file.read(_MAX_FILE + 1).decode()
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not text: write lines of {_FORM}") from None
    if len(text) > _MAX_FILE:
        raise ConfigError(f"{name} has more than {_MAX_FILE} bytes: name a file of keys")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return KeyRing(_parse([line for line in lines if line], name), name=name)


def _parse(entries: Iterable[str], name: str) -> dict[str, bytes]:
    keks: dict[str, bytes] = {}
    for number, entry in enumerate(entries, 1):
        # Errors never contain the entry, which may be a key.
        kek, colon, secret = entry.partition(":")
        key = _key(secret.strip())
        if not colon or key is None:
            raise ConfigError(f"key {number} of {name} is not a key: write it as {_FORM}")
        if not _ID.fullmatch(kek):
            raise ConfigError(
                f"the id of key {number} of {name} must be up to 128 letters, digits and . _ / -"
            )
        if kek in keks:
            raise ConfigError(f"{name} has the id {kek!r} twice: give each key an id of its own")
        keks[kek] = key
    return keks


def _key(secret: str) -> bytes | None:
    try:
        key = bytes.fromhex(secret)
    except ValueError:
        try:
            key = base64.b64decode(secret, altchars=b"-_" if set("-_") & set(secret) else None)
        except (binascii.Error, ValueError):
            return None
    return key if len(key) == KEY_BYTES else None
