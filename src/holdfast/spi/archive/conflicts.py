"""The errors of imports."""

from __future__ import annotations

from holdfast.values.errors import ConflictError


def holds_data(tenant: str, kind: str) -> ConflictError:
    """Return the error of an import into a tenant that already has other data.

    >>> str(holds_data("acme", "events"))
    "tenant 'acme' has events already: import into a tenant without data"
    """
    return ConflictError(
        "import", tenant, f"tenant {tenant!r} has {kind} already: import into a tenant without data"
    )
