"""Receipts of erasures: signed and chained, so that a changed or missing one is detected.

A receipt does not name whose data were erased. With a key it has a keyed digest of the scope:
anyone who has the key can check it against a name.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.values.codec import decode_json, encode_json
from holdfast.values.erasure import Counts, ErasureScope
from holdfast.values.errors import ConfigError, InvalidInputError, MissingExtraError

FORMAT = "holdfast-receipt/1"
KEY_SETTING = "HOLDFAST_RECEIPT_KEY"
_SEED_BYTES = 32


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """What a receipt states about an erasure."""

    tenant: str
    erasure_id: str
    scope: ErasureScope
    started_at: datetime
    finished_at: datetime
    counts: Counts
    outlives: Sequence[str] = ()
    """Where deleted data may survive, and until when."""
    data_keys: Sequence[int] = ()
    """The numbers of the data keys that were destroyed."""


class ReceiptKey:
    """The key that signs receipts: 64 hexadecimal digits, as ``openssl rand -hex 32`` prints them.

    >>> ReceiptKey("11" * 32).public_key[:8]
    'd04ab232'
    """

    def __init__(self, text: str) -> None:
        try:
            seed = bytes.fromhex(text)
        except ValueError:
            seed = b""
        if len(seed) != _SEED_BYTES:
            raise ConfigError(
                f"{KEY_SETTING} must be 64 hexadecimal digits: make one with openssl rand -hex 32"
            )
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
                Ed25519PrivateKey,
            )
        except ImportError as error:
            raise MissingExtraError(KEY_SETTING, "signing") from error
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self._digests = hmac.digest(seed, b"holdfast receipts: digests of scopes", "sha256")
        self.public_key = self._private.public_key().public_bytes_raw().hex()

    def sign(self, body: bytes) -> str:
        """Return the signature of a text, in hexadecimal digits."""
        return self._private.sign(body).hex()

    def digest(self, *parts: str) -> str:
        """Return a keyed digest of these names, which cannot be guessed without the key.

        >>> ReceiptKey("11" * 32).digest("subject", "ana") != ReceiptKey("22" * 32).digest(
        ...     "subject", "ana"
        ... )
        True
        """
        return hmac.digest(self._digests, encode_json(list(parts)).encode(), "sha256").hex()

    def scope_digest(self, tenant: str, scope: ErasureScope) -> str:
        """Return the digest that a receipt has in place of the scope."""
        return self.digest(tenant, scope.kind, scope.id)


def make_receipt(
    facts: ReceiptFacts, *, number: int, previous: str, key: ReceiptKey | None
) -> dict[str, Any]:
    """Return the receipt of an erasure; ``previous`` is the SHA-256 of the one before."""
    receipt = {
        "format": FORMAT,
        "number": number,
        "previous": previous,
        "erasure": facts.erasure_id,
        "scope": {
            "kind": facts.scope.kind,
            "digest": key and key.scope_digest(facts.tenant, facts.scope),
        },
        "started_at": facts.started_at.isoformat(),
        "finished_at": facts.finished_at.isoformat(),
        "erased": facts.counts,
        "remaining": 0,
        "data_keys": list(facts.data_keys),
        "outlives": list(facts.outlives),
        "key": key and key.public_key,
    }
    return receipt | {"signature": key and key.sign(_signed(receipt))}


def receipt_sha256(receipt: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a receipt, which the next receipt names.

    >>> receipt_sha256({"number": 1})[:8]
    '3d6a916e'
    """
    return hashlib.sha256(_canonical(receipt)).hexdigest()


def check_receipts(
    receipts: Sequence[Mapping[str, Any]], *, public_key: str | None = None
) -> list[str]:
    """Return what is wrong with receipts in the order of their numbers; ``[]`` if nothing is.

    Each must be signed, by ``public_key`` if it is given, and name the one before it.

    >>> check_receipts([{"format": "other", "number": 1}])
    ['receipt 1: this is not a receipt of an erasure']
    """
    wrong: list[str] = []
    before: Mapping[str, Any] | None = None
    for receipt in receipts:
        name = f"receipt {receipt.get('number')}"
        wrong += [f"{name}: {one}" for one in _wrong(receipt, public_key)]
        if before is not None and (
            receipt.get("number") != before.get("number", 0) + 1
            or receipt.get("previous") != receipt_sha256(before)
        ):
            wrong.append(f"{name}: it does not follow receipt {before.get('number')}")
        before = receipt
    return wrong


def _wrong(receipt: Mapping[str, Any], public_key: str | None) -> list[str]:
    if receipt.get("format") != FORMAT:
        return ["this is not a receipt of an erasure"]
    signature, key = receipt.get("signature"), receipt.get("key")
    if not isinstance(signature, str) or not isinstance(key, str):
        return [f"it is not signed: {KEY_SETTING} was not set"]
    if public_key is not None and key != public_key:
        return ["another key signed it"]
    body = _signed({name: value for name, value in receipt.items() if name != "signature"})
    return [] if _is_signed(key, signature, body) else ["the signature does not fit its text"]


def _is_signed(key: str, signature: str, body: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )
    except ImportError as error:
        raise MissingExtraError("the check of receipts", "signing") from error
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
            bytes.fromhex(signature), body
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed(receipt: Mapping[str, Any]) -> bytes:
    return b"holdfast receipt\n" + _canonical(receipt)


def _canonical(receipt: Mapping[str, Any]) -> bytes:
    return encode_json(_sorted(dict(receipt))).encode()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def parse_receipts(text: str) -> list[dict[str, Any]]:
    """Return the receipts of a text, one JSON object a line.

    >>> parse_receipts('{"number": 1}')
    [{'number': 1}]
    """
    found: list[dict[str, Any]] = []
    for at, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        receipt = decode_json(line)
        if not isinstance(receipt, dict):
            raise InvalidInputError(f"line {at}", "must be a JSON object: one receipt a line")
        found.append(receipt)
    return found
