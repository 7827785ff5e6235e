"""The metrics of the hybrid memory, and the names under which a server exports them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.spi.hybrid.hot_log import HotStats

PENDING = "holdfast_consolidation_pending"
OLDEST = "holdfast_consolidation_oldest_pending_seconds"
QUARANTINED = "holdfast_hot_quarantined"
HEADROOM = "holdfast_consolidation_ttl_headroom_ratio"
FLUSHED = "holdfast_consolidation_flushed_total"
DEAD = "holdfast_consolidation_dead_letters_total"
FAILURES = "holdfast_consolidation_failures_total"
FALLBACK_EVENTS = "holdfast_hot_fallback_total"
FALLBACK_STATES = "holdfast_state_fallback_total"
DEGRADED = "holdfast_degraded_reads_total"
REWRITTEN = "holdfast_hot_rewritten_total"
REFUSED = "holdfast_back_pressure_total"
LOADED = "holdfast_sessions_warmed_total"
UNLOADED = "holdfast_sessions_cooled_total"
EVICTED = "holdfast_states_evicted_total"

HELP = {
    PENDING: "Events in the hot log that are not durable yet",
    OLDEST: "The age of the oldest event that is not durable yet",
    QUARANTINED: "Damaged values in Redis that were moved to other keys and are kept for a week",
    HEADROOM: "How much of the window's time to live is left before the oldest event; below 0.5 "
    "health is degraded",
    FLUSHED: "Events that were made durable",
    DEAD: "Events that could not be stored as they are",
    FAILURES: "Rounds of consolidation that failed and were retried",
    FALLBACK_EVENTS: "Events that were appended to the durable log because Redis did not answer",
    FALLBACK_STATES: "Writes to working states that Postgres kept because Redis did not answer",
    DEGRADED: "Reads that may lack what is only in Redis",
    REWRITTEN: "Events that Redis lost before the flush and this process wrote to Postgres",
    REFUSED: "Appends that were refused because the backlog was too large",
    LOADED: "Sessions that were loaded into the hot log",
    UNLOADED: "Sessions that were unloaded from the hot log",
    EVICTED: "Unused working states that were evicted from Redis; Postgres has them",
}


@dataclass(slots=True)
class HybridMetrics:
    """The counters of one ``State``, for all its tenants.

    >>> metrics = HybridMetrics()
    >>> metrics.flushed += 2
    >>> dict(metrics.samples(HotStats(3, 1.5), ttl_seconds=3600))[FLUSHED]
    2.0
    """

    flushed: int = 0
    dead: int = 0
    failures: int = 0
    fallback_events: int = 0
    fallback_states: int = 0
    degraded_reads: int = 0
    rewritten: int = 0
    refused: int = 0
    loaded: int = 0
    unloaded: int = 0
    evicted: int = 0

    def samples(self, stats: HotStats, *, ttl_seconds: float) -> Iterator[tuple[str, float]]:
        """Yield each metric's name and value, for a scrape."""
        yield PENDING, float(stats.pending)
        yield OLDEST, stats.oldest_seconds
        yield QUARANTINED, float(stats.quarantined)
        yield HEADROOM, headroom(stats, ttl_seconds=ttl_seconds)
        yield FLUSHED, float(self.flushed)
        yield DEAD, float(self.dead)
        yield FAILURES, float(self.failures)
        yield FALLBACK_EVENTS, float(self.fallback_events)
        yield FALLBACK_STATES, float(self.fallback_states)
        yield DEGRADED, float(self.degraded_reads)
        yield REWRITTEN, float(self.rewritten)
        yield REFUSED, float(self.refused)
        yield LOADED, float(self.loaded)
        yield UNLOADED, float(self.unloaded)
        yield EVICTED, float(self.evicted)


def headroom(stats: HotStats, *, ttl_seconds: float) -> float:
    """Return the share of a window's time to live that the oldest event has left; 1 is all of it.

    >>> headroom(HotStats(1, 900.0), ttl_seconds=3600)
    0.75
    """
    return 1.0 - stats.oldest_seconds / ttl_seconds
