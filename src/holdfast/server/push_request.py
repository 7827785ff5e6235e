"""The headers of a push notification, and the checks of a push config.

Every notification to a config with a secret is signed with HMAC-SHA256 over the time of sending and
the body. If the scheme is ``HMAC-SHA256``, the secret is the credentials, and they are not sent.
Otherwise it is the token, or without a token the credentials.
"""

from __future__ import annotations

import hashlib
import hmac

from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict, ParseDict

from holdfast.server.addresses import AddressGuard
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.push import PushConfig

MAX_HEADER_CHARACTERS = 8_192
"""Maximum length of a token or credentials: most receivers refuse longer headers."""

HIDDEN = "***"
"""Sent to clients instead of a token or credentials."""

TIMESTAMP, SIGNATURE = "X-Holdfast-Timestamp", "X-Holdfast-Signature"
HMAC_SCHEME = "hmac-sha256"


def delivery_headers(config: PushConfig) -> dict[str, str]:
    """Return the headers that the config asks for.

    >>> delivery_headers(PushConfig("p1", "https://example.org", token="t"))["User-Agent"]
    'holdfast'
    """
    headers = {"Content-Type": "application/a2a+json", "User-Agent": "holdfast"}
    if config.token:
        headers["X-A2A-Notification-Token"] = config.token
    scheme = str(config.authentication.get("scheme") or "")
    if scheme and scheme.lower() != HMAC_SCHEME:
        headers["Authorization"] = f"{scheme} {_credentials(config)}".strip()
    return headers


def signature_headers(config: PushConfig, body: bytes, *, at: int) -> dict[str, str]:
    """Return the headers that prove that a holder of the secret sent this body at this second.

    Empty if the config has no secret.

    >>> config = PushConfig("p1", "https://example.org", token="t")
    >>> signature_headers(config, b"{}", at=1893456000)["X-Holdfast-Timestamp"]
    '1893456000'
    """
    scheme = str(config.authentication.get("scheme") or "").lower()
    secret = _credentials(config) if scheme == HMAC_SCHEME else config.token or _credentials(config)
    if not secret:
        return {}
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return {TIMESTAMP: str(at), SIGNATURE: f"v1={digest}"}


def _credentials(config: PushConfig) -> str:
    return str(config.authentication.get("credentials") or "")


def check_push(config: PushConfig, guard: AddressGuard) -> PushConfig:
    """Return the config; raise if nothing could ever be sent to it. No error text has its secrets.

    >>> check_push(PushConfig("p1", "https://example.org"), AddressGuard(allow_private=False)).id
    'p1'
    """
    guard.check_url(config.url)
    if HIDDEN in {config.token, _credentials(config)}:
        raise InvalidInputError(
            "push", f"{HIDDEN} replaces a secret in responses: send the secret itself"
        )
    if str(config.authentication.get("scheme") or "").lower() == HMAC_SCHEME and not _credentials(
        config
    ):
        raise InvalidInputError(
            "push", "HMAC-SHA256 needs the secret in authentication.credentials"
        )
    for value in [*delivery_headers(config).values(), _credentials(config)]:
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError("push", "token and authentication must be printable ASCII")
        if len(value) > MAX_HEADER_CHARACTERS:
            raise InvalidInputError(
                "push",
                f"token and authentication must not be longer than {MAX_HEADER_CHARACTERS} "
                "characters",
            )
    return config


def push_from_wire(config: a2a.TaskPushNotificationConfig, *, id: str) -> PushConfig:
    """Convert an A2A push config to a ``PushConfig`` with this id.

    >>> push_from_wire(a2a.TaskPushNotificationConfig(url="https://example.org"), id="p1").id
    'p1'
    """
    given = MessageToDict(config.authentication) if config.HasField("authentication") else {}
    return PushConfig(id, config.url, token=config.token, authentication=given)


def push_to_wire(config: PushConfig, *, task_id: str) -> a2a.TaskPushNotificationConfig:
    """Convert a ``PushConfig`` to A2A, with its secrets replaced by ``HIDDEN``.

    >>> push_to_wire(PushConfig("p1", "https://example.org", token="t"), task_id="t1").token
    '***'
    """
    found = a2a.TaskPushNotificationConfig(
        id=config.id, task_id=task_id, url=config.url, token=HIDDEN if config.token else ""
    )
    if config.authentication:
        ParseDict(config.authentication, found.authentication, ignore_unknown_fields=True)
        if found.authentication.credentials:
            found.authentication.credentials = HIDDEN
    return found
