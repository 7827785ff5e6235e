"""Restricts push notifications to public addresses.

A client chooses the URL. Without this check it could make the service call internal addresses: its
own ports, the network behind the firewall, the cloud's metadata endpoint. The host name is resolved
here, all its addresses are checked, and the connection goes to a checked address. So a name that
resolves differently the second time (DNS rebinding) does not get around the check.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import SplitResult, urlsplit

import httpcore
import httpx

from holdfast.values.errors import InvalidInputError

MAX_URL_CHARACTERS = 2_048
"""Maximum length of a URL."""

RESOLVER_THREADS = 64
"""Number of concurrent DNS lookups: a lookup cannot be cancelled, and some hang for a long time."""

_HOST = re.compile(rb"[A-Za-z0-9._:-]+")
_NETWORKS_64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST_6 = ipaddress.ip_network("2000::/3")
_INNER = [
    ipaddress.ip_network(one)
    for one in (
        "192.0.0.0/24",  # IETF protocols; clouds answer for metadata here
        "192.88.99.0/24",  # relays of 6to4
        "168.63.129.16/32",  # Azure's metadata and agent endpoint, seen inside a machine
        "3fff::/20",  # documentation
    )
]
"""Networks that are not public, whatever this version of Python's ``ipaddress`` reports."""

_ISATAP = 0x0000_5EFE, 0x0200_5EFE


def is_public(address: str) -> bool:
    """Return whether an address is public.

    An IPv6 address that embeds an IPv4 address is public only if that address is.

    >>> is_public("93.184.215.14"), is_public("169.254.169.254"), is_public("::ffff:10.0.0.1")
    (True, False, False)
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = _carried(found)
        if inner is not None:
            # A mapped address is the IPv4 address itself; the other forms go through a gateway,
            # whose own address must be public too.
            if not is_public(str(inner)):
                return False
            if found.ipv4_mapped is not None:
                return True
        if found not in _UNICAST_6:
            return False
    if any(found in one for one in _INNER):
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved)


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds, or ``None``."""
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    isatap = (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP
    if inner is None and (isatap or address in _NETWORKS_64):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return inner


def _parsed(url: str) -> SplitResult | None:
    """Return the parts of a URL; ``None`` if any step of sending to it would fail."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        called, _ = httpx.Request("POST", url).url, parts.port
        known = not called.host or _HOST.fullmatch(called.raw_host)
    except (ValueError, httpx.InvalidURL):
        return None
    return parts if known else None


class AddressGuard:
    """Decides which URLs push notifications may be sent to.

    >>> AddressGuard(allow_private=False).check_url("https://example.org/hook")
    """

    def __init__(self, *, allow_private: bool) -> None:
        self.allow_private = allow_private
        # A separate pool: lookups that hang must not block the event loop's default thread pool.
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="holdfast-dns")

    def close(self) -> None:
        """Cancel the lookups that have not started."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def check_url(self, url: str) -> None:
        """Raise if nothing could ever be delivered to a URL; host names are not resolved yet."""
        if len(url) > MAX_URL_CHARACTERS:
            raise InvalidInputError(
                "url", f"must not be longer than {MAX_URL_CHARACTERS} characters"
            )
        parts = _parsed(url)
        if parts is None:
            raise InvalidInputError("url", "is not a valid URL: write https://host/path")
        host = parts.hostname or ""
        allowed = ("https", "http") if self.allow_private else ("https",)
        if parts.scheme not in allowed or not host:
            raise InvalidInputError("url", f"must begin with {' or '.join(allowed)}://, and a host")
        if parts.username or parts.password:
            raise InvalidInputError("url", "must not hold a user or password: use authentication")
        if not self.allow_private and self._literal(host) is False:
            raise InvalidInputError("url", "must not name an address that is not public")

    @staticmethod
    def _literal(host: str) -> bool | None:
        """Return whether a literal IP address is public; ``None`` for a host name."""
        if host == "localhost" or host.endswith(".localhost"):
            return False
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return None
        return is_public(host)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host. Raises unless all of them are allowed."""
        try:
            addresses = await self.resolve(host, port)
        except (OSError, UnicodeError, OverflowError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved") from error
        if not self.allow_private and not all(map(is_public, addresses)):
            raise httpcore.ConnectError(f"{host} is at an address that is not public")
        return addresses

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host without checking them."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads,
            functools.partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM),
        )
        return list(dict.fromkeys(str(one[4][0]) for one in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses only; TLS still verifies the host name."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of the host that accepts the connection."""
        failed: Exception | None = None
        for address in await self._guard.addresses(host, port):
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)


def guarded_client(guard: AddressGuard, *, connections: int = 100) -> httpx.AsyncClient:
    """Return an HTTP client that connects to checked addresses only.

    It follows no redirects and uses no proxy. It has no timeouts: the caller sets one deadline for
    the whole request.
    """
    context = ssl.create_default_context()
    transport = httpx.AsyncHTTPTransport(verify=context)
    # httpx has no parameter for the network backend of its connection pool.
    transport._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001
        ssl_context=context,
        max_connections=connections,
        max_keepalive_connections=0,
        network_backend=GuardedNetwork(guard),
    )
    return httpx.AsyncClient(
        transport=transport,
        timeout=None,  # noqa: S113 - see above
        follow_redirects=False,
        trust_env=False,
    )
