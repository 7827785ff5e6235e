"""One S3 server for all tests of a run, started when it is first needed."""

from __future__ import annotations

from functools import cache

from holdfast.bench.seaweedfs import SeaweedFS


@cache
def s3_server() -> SeaweedFS:
    """The server; it ends with the process."""
    found = SeaweedFS()
    found.start()
    return found
