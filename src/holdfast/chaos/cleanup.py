"""Deletes the tenant of a run from the user's own servers."""

from __future__ import annotations

import asyncpg
from redis.asyncio import Redis

from holdfast.chaos.addresses import Given

_TABLES = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'holdfast' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND a.attname = $1 AND NOT a.attisdropped
"""


async def remove_tenant(tenant: str, given: Given) -> None:
    """Delete every row and every key of a tenant. It is no error if there are none.

    ::

        await remove_tenant("chaos-3kq9", Given("postgresql://db/main", "redis://cache"))
    """
    await _remove_rows(tenant, given.url)
    if given.redis:
        await _remove_keys(tenant, given.redis)


async def _remove_rows(tenant: str, url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            # Table names come from the catalog, quoted by the server; the tenant is a parameter.
            for (table,) in await connection.fetch(_TABLES, "agent_key"):
                await connection.execute(
                    f"DELETE FROM {table} WHERE agent_key IN ("  # noqa: S608
                    "SELECT key FROM holdfast.event_agents WHERE tenant = $1)",
                    tenant,
                )
            for (table,) in await connection.fetch(_TABLES, "tenant"):
                await connection.execute(f"DELETE FROM {table} WHERE tenant = $1", tenant)  # noqa: S608
    finally:
        await connection.close()


async def _remove_keys(tenant: str, url: str) -> None:
    client = Redis.from_url(url)
    try:
        async for key in client.scan_iter(match=f"hf:{{s*}}:{tenant}:*", count=1000):
            await client.delete(key)
        async for key in client.scan_iter(match="hf:{s*}:idle", count=1000):
            members = [
                member
                async for member, _ in client.zscan_iter(key, match=f"{tenant}:*", count=1000)
            ]
            if members:
                await client.zrem(key, *members)
        for name in ("work", "tenants"):
            async for key in client.scan_iter(match=f"hf:{{s*}}:{name}", count=1000):
                await client.srem(key, tenant)
    finally:
        await client.aclose()
