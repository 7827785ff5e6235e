"""The tenant of a statement: the policies of the tables read its first parameter.

Every table has a policy that shows only the rows of one tenant, the one of the setting
``holdfast.tenant``. The first parameter of a tenant's statement is of the type
``holdfast.for_tenant``, a domain that makes this setting when it reads its value. The server reads
the parameters before it plans and runs the statement, so the setting and the parameter cannot
differ, and the setting ends with the statement or its transaction: nothing is kept in the session,
and a statement takes one round trip on any connection, through any pooler.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import LiteralString, TypeAlias

from holdfast.engines.postgres.packed_vectors import with_packed_vectors

_FIRST = re.compile(r"\$1(?![0-9])")
_TYPED = "($1::holdfast.for_tenant)"
_ALONE = re.compile(r"/\* alone: \*/.*?/\* end \*/", re.DOTALL)
_DISTRIBUTED = re.compile(r"/\* distributed: (.*?) \*/", re.DOTALL)
_STATEMENTS = 2048
"""How many statement texts are cached: more than there are statements, with many filters."""


Form: TypeAlias = Callable[[LiteralString], LiteralString]
"""Returns the statement that is sent for the text of one."""


def form_for(*, distributed: bool, packs: bool) -> Form:
    """Return the form of tenants' statements; ``packs`` is for connections with the codec.

    >>> form_for(distributed=False, packs=False) is for_tenant
    True
    """
    if distributed:
        return for_distributed_tenant
    return for_packed_tenant if packs else for_tenant


@lru_cache(maxsize=_STATEMENTS)
def for_tenant(sql: LiteralString) -> LiteralString:
    """Return a statement that runs for the tenant in its parameter ``$1``.

    Raises ``ValueError`` if it has no such parameter.

    >>> for_tenant("SELECT 1 FROM holdfast.boards WHERE tenant = $1 AND id = $10")
    'SELECT 1 FROM holdfast.boards WHERE tenant = ($1::holdfast.for_tenant) AND id = $10'
    """
    found, count = _FIRST.subn(_TYPED, sql)
    if not count:
        raise ValueError(f"a statement without a tenant as $1: {sql}")
    return found


@lru_cache(maxsize=_STATEMENTS)
def for_packed_tenant(sql: LiteralString) -> LiteralString:
    """Return a tenant's statement for connections that pack vectors.

    >>> for_packed_tenant("SELECT $2::real[]::public.vector WHERE $1 <> ''")
    "SELECT $2::public.vector WHERE ($1::holdfast.for_tenant) <> ''"
    """
    return for_tenant(with_packed_vectors(sql))


@lru_cache(maxsize=_STATEMENTS)
def for_distributed_tenant(sql: LiteralString) -> LiteralString:
    """Return the form of a tenant's statement that Citus can plan.

    The text between the comments ``alone`` and ``end`` is removed, and the text inside comments
    that begin with ``distributed`` is included.

    >>> for_distributed_tenant("SELECT /* alone: */ 1 /* end *//* distributed: 2 */ WHERE $1 <> ''")
    "SELECT 2 WHERE ($1::holdfast.for_tenant) <> ''"
    """
    return for_tenant(_DISTRIBUTED.sub(r"\1", _ALONE.sub("", sql)))
