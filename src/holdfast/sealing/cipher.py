"""The format of an encrypted value: version, number of the data key, nonce, ciphertext."""

from __future__ import annotations

import base64
import binascii
import os
import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from holdfast.sealing.data_keys import OpenKey
from holdfast.values.codec import encode_json
from holdfast.values.errors import ConfigError, MissingExtraError, SealedError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

VERSION = 1
_HEAD = struct.Struct(">BQ12s")
_NONCE_BYTES = 12


class Place(NamedTuple):
    """Where a value is stored. A value encrypted for one place cannot be decrypted in another."""

    store: str
    id: str
    field: str


@dataclass(frozen=True, slots=True)
class Box:
    """The parts of an encrypted value."""

    number: int
    nonce: bytes
    ciphertext: bytes

    @classmethod
    def of(cls, data: bytes) -> Box:
        """Parse encrypted bytes. Raises ``SealedError`` if they are not in the format."""
        if len(data) < _HEAD.size or data[0] != VERSION:
            raise SealedError(
                "a sealed value is damaged, or was written by a newer version of Holdfast"
            )
        _, number, nonce = _HEAD.unpack_from(data)
        return cls(number, nonce, data[_HEAD.size :])

    @classmethod
    def of_text(cls, text: object) -> Box:
        """Parse an encrypted value in base64. Raises ``SealedError`` if it is damaged."""
        try:
            return cls.of(base64.b64decode(str(text), validate=True))
        except (binascii.Error, ValueError):
            raise SealedError("a sealed value is damaged: it is not base64") from None

    def open(self, key: OpenKey, bound: bytes) -> bytes:
        """Return the plain bytes. ``bound`` must be that with which they were encrypted."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        try:
            return _values(key).decrypt(self.nonce, self.ciphertext, bound)
        except InvalidTag:
            raise SealedError(
                "a sealed value does not open here: it was changed, or belongs to another record"
            ) from None


def bound_to(tenant: str, place: Place, *owner: str) -> bytes:
    """Return the associated data that binds an encrypted value to its tenant and place.

    A value that is encrypted with the key of a subject who is not its owner is also bound to the
    owner.

    >>> bound_to("acme", Place("state", "s1", "step"))
    b'["acme","state","s1","step"]'
    """
    return encode_json([tenant, *place, *owner]).encode()


def seal(key: OpenKey, data: bytes, bound: bytes, *, again: bool) -> bytes:
    """Encrypt bytes. With ``again`` the same bytes for the same place give the same result.

    ::

        sealed = seal(key, b"hello", bound_to("acme", place), again=False)
    """
    nonce = (
        blake2b(bound, key=key.derived(b"nonces"), digest_size=_NONCE_BYTES).digest()
        if again
        else os.urandom(_NONCE_BYTES)
    )
    ciphertext = _values(key).encrypt(nonce, data, bound)
    return _HEAD.pack(VERSION, key.number, nonce) + ciphertext


def number_of_text(text: str) -> int:
    """Return the number of the data key of an encrypted text; decodes only its beginning.

    ::

        number = number_of_text(box)
    """
    # Four letters are three bytes, and the head is 21.
    return Box.of_text(text[: _HEAD.size // 3 * 4]).number


def _values(key: OpenKey) -> AESGCMSIV:
    if "cipher" not in key.made:
        key.made["cipher"] = _cipher(key.derived(b"values"))
    found: AESGCMSIV = key.made["cipher"]
    return found


def check_cipher() -> None:
    """Raise if AES-GCM-SIV cannot be used here, before anything is opened.

    >>> check_cipher()
    """
    _cipher(bytes(32))


def _cipher(key: bytes) -> AESGCMSIV:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("sealed mode", "sealing") from error
    try:
        return aead.AESGCMSIV(key)
    except UnsupportedAlgorithm:
        raise ConfigError(
            "sealed mode needs AES-GCM-SIV, and this OpenSSL is older than 3.2: "
            "install the wheel of cryptography"
        ) from None
