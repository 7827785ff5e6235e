"""TLS for the HTTP and gRPC servers, from a certificate file and a key file."""

from __future__ import annotations

import ssl
from pathlib import Path

from holdfast.server.options import ServiceOptions
from holdfast.values.errors import ConfigError


def tls_context(options: ServiceOptions) -> ssl.SSLContext | None:
    """Return the TLS context of the HTTP server; ``None`` if it serves without TLS.

    >>> tls_context(ServiceOptions()) is None
    True
    """
    if not (options.tls_cert or options.tls_key):
        return None
    if not (options.tls_cert and options.tls_key):
        raise ConfigError("TLS needs both --tls-cert and --tls-key")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ValueError) as error:
        files = f"{options.tls_cert} and {options.tls_key}"
        why = "they are not a certificate and its key in PEM"
        if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
            why = error.strerror or str(error)
        raise ConfigError(f"cannot serve TLS with {files}: {why}") from None
    return context


def tls_files(options: ServiceOptions) -> tuple[bytes, bytes]:
    """Return the private key and the certificate chain, for the gRPC server."""
    return Path(options.tls_key).read_bytes(), Path(options.tls_cert).read_bytes()
