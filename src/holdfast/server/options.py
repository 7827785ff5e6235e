"""Options of a service; the command line and the environment set them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.values.errors import ConfigError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def host_name(header: str) -> str:
    """Return the name in a ``Host`` header without its port, in lower case.

    The header is not parsed as a URL: a URL parser may find another name in it.

    >>> host_name("LocalHost:8000"), host_name("[::1]:8000")
    ('localhost', '[::1]')
    """
    host = header.lower()
    return host.partition("]")[0] + "]" if "]" in host else host.partition(":")[0]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of a service.

    >>> ServiceOptions(port=9000).public_url_or_default
    'http://127.0.0.1:9000'
    """

    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    """URL of the service for the agent card; default: the host and port that it listens on."""

    old_card: bool = False
    """Whether clients that do not ask for A2A 0.3 also get a card with the fields of 0.3."""

    auth: bool = True
    """Whether a request needs an API key."""

    grpc_port: int | None = None
    public_grpc: str = ""
    """Address of gRPC as host:port, for the agent card; default: the host of the public URL and
    ``grpc_port``."""

    max_request_bytes: int = 4 * 1024 * 1024
    max_answer_bytes: int = 16 * 1024 * 1024
    """Maximum bytes of messages, artifacts and files in one response, as stored. Beyond that a page
    ends earlier, and one task or context has only its newest messages."""

    max_task_bytes: int = 32 * 1024 * 1024
    """A task with more bytes of messages than this accepts no more answers, because a worker reads
    all of them."""

    max_streams: int = 1_000
    """Maximum open streams of one process."""

    max_connections: int = 1_000
    """Maximum open HTTP connections of one process."""

    max_connections_per_address: int = 500
    """Maximum open connections from one address; raise it behind a proxy."""

    head_seconds: float = 10.0
    """Deadline for a client to send a request head, or for a TLS handshake."""

    body_seconds: float = 30.0
    """Deadline for a client to send a request body."""

    idle_seconds: float = 5.0
    """How long a connection stays open between two requests."""

    stall_seconds: float = 30.0
    """A connection whose client reads nothing of its response for this long is aborted."""

    key_requests: int = 100
    """Maximum concurrent requests of one API key, streams not counted."""

    key_streams: int = 100
    """Maximum open streams of one API key."""

    key_rate: float = 0.0
    """Maximum requests per second of one API key; 0: no limit."""

    key_check_seconds: float = 5.0
    """How often the keys of open streams are checked: the streams of a revoked key end then."""

    tls_cert: str = ""
    """Path of the certificate chain (PEM), for HTTPS and for gRPC with TLS."""

    tls_key: str = ""
    """Path of its private key (PEM)."""

    wait_seconds: float = 300.0
    """How long a blocking send waits for its task before it returns the task as it is."""

    reply_seconds: float = 1.0
    """How long a stream waits for a ``task.reply()`` before it begins with the task."""

    cancel_seconds: float = 15.0
    """How long a cancel request waits for the worker to confirm it."""

    drain_seconds: float = 30.0
    """How long open requests may take to end when the service stops."""

    dedupe_message_ids: bool = False
    """Whether a second send with the same messageId is a retry of the first."""

    push_allow_private: bool = False
    """Whether push notifications may go to private and loopback addresses, and without TLS."""

    push_seconds: float = 15.0
    """Deadline of one push notification, from the DNS lookup to the status of the response."""

    push_at_once: int = 200
    """Maximum concurrent push notifications of one process."""

    push_per_tenant: int = 20
    """Maximum concurrent push notifications of one tenant."""

    push_per_owner: int = 10
    """Maximum concurrent push notifications of one owner, so that slow webhooks delay only it."""

    push_configs: int = 20
    """Maximum push configs of a task."""

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
        """The address of gRPC for clients, as host:port.

        >>> ServiceOptions(public_url="https://a.example/x", grpc_port=50051).public_grpc_or_default
        'a.example:50051'
        """
        host = urlsplit(self.public_url_or_default).hostname or self.host
        return self.public_grpc or address_of(host, self.grpc_port or 0)

    @property
    def public_url_or_default(self) -> str:
        """The URL of the service for clients."""
        scheme = "https" if self.tls_cert else "http"
        return (self.public_url or f"{scheme}://{address_of(self.host, self.port)}").rstrip("/")


def address_of(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 host in brackets.

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
    """Return whether only this machine can reach a service on that host.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
