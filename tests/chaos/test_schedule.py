"""A seed is a schedule: the same faults, on the same victims, at the same moments."""

from __future__ import annotations

import subprocess
import sys

from holdfast.chaos.plan import Plan
from holdfast.chaos.schedule import KINDS, PARTS, VERBS, counts_within, schedule, sigkills


def test_the_same_seed_is_the_same_schedule_also_in_another_process() -> None:
    program = "from holdfast.chaos.plan import Plan; print(Plan.within(60, seed=7).faults)"
    elsewhere = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert elsewhere.stdout.strip() == repr(Plan.within(60, seed=7).faults)


def test_another_seed_is_another_schedule_of_as_many_faults() -> None:
    one, other = Plan.within(60, seed=1), Plan.within(60, seed=2)
    assert one.faults != other.faults
    assert one.counts == other.counts


def test_faults_come_in_order_and_within_the_time() -> None:
    faults = Plan.within(60, seed=3).faults
    moments = [fault.at_seconds for fault in faults]
    assert moments == sorted(moments)
    assert 0 <= moments[0] <= moments[-1] <= 60


def test_a_minute_has_every_kind_of_fault_and_every_verb_is_explained() -> None:
    alone = Plan.within(60, seed=1)
    several = Plan.within(60, seed=1, postgres="standby", valkey="sentinel")
    assert {fault.kind for fault in (*alone.faults, *several.faults)} == set(KINDS)
    assert not [kind for kind in alone.counts if kind.startswith("failover")]
    assert (alone.level, several.level) == ("fsync", "committed")
    assert {kind.partition(" ")[0] for kind in KINDS} == set(VERBS)


def test_ten_minutes_have_at_least_two_hundred_sigkills() -> None:
    assert sigkills(Plan.within(600, seed=1).faults) >= 200


def test_a_part_alone_has_only_its_own_victims() -> None:
    victims = {
        part: {kind.partition(" ")[2] for kind in counts_within(60, [part])} for part in PARTS
    }
    assert victims["tasks"] == {"worker", "postgres"}
    assert victims["memory"] == {"agent", "consolidator", "valkey", "postgres"}


def test_every_other_killed_server_stays_away_for_longer_than_writers_are_patient() -> None:
    away = [fault.lasts_seconds > 5 for fault in schedule(1, 60, {"kill valkey": 4})]
    assert away == [True, False, True, False]
