"""What a push notification is sent with, and which push configs are refused."""

from __future__ import annotations

from holdfast.kernel.core.errors import InvalidInputError
from holdfast.kernel.storage.ledger_push import PushConfig
from holdfast.server.addresses import AddressGuard

MAX_HEADER_CHARACTERS = 8_192
"""The longest token or credentials: most receivers refuse longer headers."""


def delivery_headers(config: PushConfig) -> dict[str, str]:
    """The headers that prove to the receiver who sends.

    >>> delivery_headers(PushConfig("p1", "https://example.org", token="t"))["User-Agent"]
    'holdfast'
    """
    headers = {"Content-Type": "application/a2a+json", "User-Agent": "holdfast"}
    if config.token:
        headers["X-A2A-Notification-Token"] = config.token
    scheme = config.authentication.get("scheme")
    if scheme:
        credentials = config.authentication.get("credentials", "")
        headers["Authorization"] = f"{scheme} {credentials}".strip()
    return headers


def check_push(config: PushConfig, guard: AddressGuard) -> PushConfig:
    """Refuse a config that nothing could ever be sent to.

    >>> check_push(PushConfig("p1", "https://example.org"), AddressGuard(allow_private=False)).id
    'p1'
    """
    guard.check_url(config.url)
    for value in delivery_headers(config).values():
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError("push", "token and authentication must be printable ASCII")
        if len(value) > MAX_HEADER_CHARACTERS:
            raise InvalidInputError(
                "push",
                f"token and authentication must not be longer than {MAX_HEADER_CHARACTERS} "
                "characters",
            )
    return config
