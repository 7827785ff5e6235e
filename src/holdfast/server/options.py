"""How a service behaves; the command line and the environment decide."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.values.errors import ConfigError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What can be chosen about a service.

    >>> ServiceOptions(port=9000).public_url_or_default
    'http://127.0.0.1:9000'
    """

    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    """Where clients reach it, for the agent card; unless given, the host and port it listens on."""

    old_card: bool = False
    """Whether the card has the fields of A2A 0.3 also for clients that do not ask for 0.3."""

    auth: bool = True
    """Whether a request needs an API key."""

    grpc_port: int | None = None
    public_grpc: str = ""
    """Where clients reach gRPC, as host:port, for the agent card; unless given, the host of the
    public URL and ``grpc_port``."""

    max_request_bytes: int = 4 * 1024 * 1024
    max_answer_bytes: int = 16 * 1024 * 1024
    """How many bytes of messages, artifacts and files one answer has, as they are stored; pages end
    earlier, and of one task or context the newest messages come."""

    max_task_bytes: int = 32 * 1024 * 1024
    """How many bytes of messages a task may have before it takes no more answers: a worker reads
    all of them."""

    max_streams: int = 1_000
    """How many streams one process holds open at a time."""

    max_connections: int = 1_000
    """How many HTTP connections one process holds open at a time."""

    max_connections_per_address: int = 500
    """How many of them may come from one address; raise it behind a proxy."""

    head_seconds: float = 10.0
    """How long a client may take to send a request head, or for a TLS handshake."""

    body_seconds: float = 30.0
    """How long a client may take to send a request body."""

    idle_seconds: float = 5.0
    """How long a connection stays open between two requests."""

    stall_seconds: float = 30.0
    """How long a client may read nothing of its answer."""

    key_requests: int = 100
    """How many requests of one API key are answered at a time, streams not counted."""

    key_streams: int = 100
    """How many streams one API key may have open."""

    key_rate: float = 0.0
    """How many requests one API key may send per second; 0 is any number."""

    key_check_seconds: float = 5.0
    """How often the keys of open streams are checked: a revoked key's streams end after it."""

    tls_cert: str = ""
    """The file of the certificate chain (PEM), for HTTPS and for gRPC with TLS."""

    tls_key: str = ""
    """The file of its private key (PEM)."""

    wait_seconds: float = 300.0
    """How long a blocking send waits for its task before it answers with the task as it is."""

    reply_seconds: float = 1.0
    """How long a stream waits for a handler that may reply, before it begins with the task."""

    cancel_seconds: float = 15.0
    """How long a cancel waits for the worker to confirm it."""

    drain_seconds: float = 30.0
    """How long open requests may take to end when the service stops."""

    dedupe_message_ids: bool = False
    """Whether the same messageId again is the same send."""

    push_allow_private: bool = False
    """Whether news may be delivered to private and loopback addresses, and without TLS."""

    push_seconds: float = 15.0
    """How long one delivery may take, from the lookup of the name to the status of the answer."""

    push_at_once: int = 200
    """How many deliveries run at a time."""

    push_per_tenant: int = 20
    """How many of them may be of one tenant."""

    push_per_owner: int = 10
    """How many of these may be of one owner, so that slow hooks of one delay no other."""

    push_configs: int = 20
    """How many push configs a task may have."""

    def __post_init__(self) -> None:
        if self.public_url and not _is_url(self.public_url):
            raise ConfigError(
                f"the public URL must be as in https://agents.example.org, not {self.public_url!r}"
            )
        if self.public_grpc and _host_and_port(self.public_grpc) is None:
            raise ConfigError(
                f"the public gRPC address must be as in agents.example.org:443, not "
                f"{self.public_grpc!r}"
            )

    @property
    def public_grpc_or_default(self) -> str:
        """Where clients reach gRPC, as host:port.

        >>> ServiceOptions(public_url="https://a.example/x", grpc_port=50051).public_grpc_or_default
        'a.example:50051'
        """
        host = urlsplit(self.public_url_or_default).hostname or self.host
        return self.public_grpc or address_of(host, self.grpc_port or 0)

    @property
    def public_url_or_default(self) -> str:
        """Where clients reach it."""
        scheme = "https" if self.tls_cert else "http"
        return (self.public_url or f"{scheme}://{address_of(self.host, self.port)}").rstrip("/")


def address_of(host: str, port: int) -> str:
    """A host and a port as one text.

    >>> address_of("localhost", 80), address_of("::1", 80)
    ('localhost:80', '[::1]:80')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _host_and_port(text: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or not port or "@" in text or text != parts.netloc:
        return None
    return host, port


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service on that host.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
