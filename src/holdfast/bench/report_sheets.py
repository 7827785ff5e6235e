"""The figures of a suite as tables of text: for the terminal, the HTML page and the docs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Facts = dict[str, Any]

RECALL_SCORES = {
    "recall_5": "R@5",
    "recall_10": "R@10",
    "mrr": "MRR",
    "evidence_500": "in 500 tokens",
    "evidence_1000": "in 1,000",
    "evidence_2000": "in 2,000",
}
"""The titles of the columns of ``holdfast bench recall``."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table. A row that missed its bar says so in its last cell.

    >>> Sheet("Stores", ("call", "ratio"), [["append", "1.2"]]).markdown().splitlines()[-1]
    '| append | 1.2 |'
    """

    title: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    """The notes below the table."""

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def sheets(name: str, facts: Facts) -> list[Sheet]:
    """Return the tables of one suite; tables without figures are left out.

    ::

        for sheet in sheets("stores", facts):
            print(sheet.markdown())
    """
    return [sheet for sheet in _MAKERS[name](facts) if sheet.rows or sheet.notes]


def made_by(facts: Facts) -> str:
    """Return one sentence on how the figures were made.

    ::

        made_by(facts)  # 'Made on 2030-01-31 by `holdfast bench stores` with …'
    """
    machine, versions = facts["machine"], facts["versions"]
    servers = {"postgres": "Postgres", "pgvector": "pgvector", "valkey": "Valkey"}
    parts = [f"Python {facts['python']}"]
    parts += [f"{shown} {versions[name]}" for name, shown in servers.items() if name in versions]
    place = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:g} GB"
    made = f"Made on {facts['date']} by `{facts['command']}` with {', '.join(parts)} on {place}"
    return f"{made}; load average at the start {machine['load_average']:g}."


def _bar(bar: float, *, met: bool) -> str:
    return f"{bar:g}" if met else f"{bar:g} (missed)"


def _bars(facts: Facts) -> Sheet:
    rows = [
        [name, f"{one['got']:g}", _bar(one["bar"], met=one["met"])]
        for name, one in facts.get("bars", {}).items()
    ]
    return Sheet("What was to be reached", ("figure", "got", "bar"), rows)


def _missing(facts: Facts) -> list[str]:
    return [f"Not measured: {one['name']}, {one['why']}." for one in facts.get("missing", [])]


def _stores(facts: Facts) -> Iterable[Sheet]:
    columns = ("call", "p50", "p95", "floor p50", "ratio", "bar", "round trips")
    for key, title in (("results", "Postgres"), ("redis", "Valkey"), ("objects", "S3, SeaweedFS")):
        rows = [
            [
                one["name"],
                *(f"{one[name]:,.0f} µs" for name in ("ours_p50", "ours_p95", "floor_p50")),
                f"{one['ratio']:.2f}",
                _bar(one["bar"], met=one["met"]),
                f"{one['round_trips']:g}",
            ]
            for one in facts.get(key, [])
        ]
        yield Sheet(title, columns, rows, _of_postgres(facts) if key == "results" else [])
    yield Sheet(
        "Row level security, on and off",
        ("call", "on p50", "off p50", "ratio", "bar", "the same twice"),
        [
            [
                *(one["name"], f"{one['on_us']:,.0f} µs", f"{one['off_us']:,.0f} µs"),
                *(f"{one['ratio']:.2f}", _bar(one["bar"], met=one["met"])),
                f"{one['same_twice']:.2f}",
            ]
            for one in facts.get("policies", [])
        ],
    )
    memory = facts.get("memory", {})
    rows = [
        [one["name"], f"{one['p50_us']:,.0f} µs", f"{one['p95_us']:,.0f} µs"]
        for one in memory.get("operations", [])
    ]
    notes = [f"`import holdfast` takes {memory['import_seconds']:g} s."] if memory else []
    yield Sheet("In memory", ("call", "p50", "p95"), rows, notes + _missing(facts))


def _of_postgres(facts: Facts) -> list[str]:
    if "results" not in facts:
        return []
    grown = facts["append at length 10,000 against length 10"]
    killed = facts["seconds from kill -9 of Postgres to the next append"]
    text = (
        f"An append to a session of 10,000 events costs {grown:.2f} times one to a short session. "
        f"Recall by vector finds {facts['fidelity@5']:.3f} of what exact search finds. "
        f"{killed:.2f} s after kill -9 of a server process the same client has its next append "
        "acknowledged."
    )
    return [text]


def _tasks(facts: Facts) -> Iterable[Sheet]:
    done = "claims and completes a second"
    sizes = facts["rates"][0].get("by_batch") or {str(facts["batch"]): 0.0}
    many = "submit_many" in facts["rates"][0]
    columns = (
        *("queue", "submits a second", *(["submits a second, 100 at once"] if many else [])),
        *(f"{done}, {size} each" for size in sizes),
    )
    rows = [
        [
            *(one["name"], f"{one['submit']:,.0f}"),
            *([f"{one['submit_many']:,.0f}"] if many else []),
            *(f"{one.get('by_batch', {}).get(s, one['claim_and_complete']):,.0f}" for s in sizes),
        ]
        for one in facts["rates"]
    ]
    grown = f"{facts['growth']:.2f} times one to a task with 10"
    notes = [f"A message to a task with 1,000 messages costs {grown}."]
    notes += [f"Not measured: {one}, not installed." for one in facts["missing"]]
    notes += [f"{'Met' if met else 'Missed'}: {name}." for name, met in facts["bars"].items()]
    yield Sheet("No-op tasks", columns, rows, notes)
    if facts.get("functions"):
        run = [[name, f"{rate:,.0f}"] for name, rate in facts["functions"].items()]
        title = "No-op functions, queued one by one and run by a worker"
        yield Sheet(title, ("runtime", "functions a second"), run, [])


def _recall(facts: Facts) -> Iterable[Sheet]:
    title = f"{facts['data']}: {facts['questions']:,} questions, {facts['turns']:,} turns"
    rows = [
        [
            one["engine"],
            one["method"],
            *(f"{one['all'][name]:.3f}" for name in RECALL_SCORES if name in one["all"]),
            f"{one['p50_ms']:.2f} ms",
            f"{one['p95_ms']:.2f} ms",
        ]
        for one in facts["methods"]
    ]
    scores = [RECALL_SCORES[name] for name in facts["methods"][0]["all"] if name in RECALL_SCORES]
    notes = ["Evidence in N tokens: its share in a prompt that holds, by rank, the turns that fit."]
    yield Sheet(title, ("engine", "method", *scores, "p50", "p95"), rows, notes)
    yield from _recall_index(facts.get("index", {}))
    yield _bars(facts)


def _recall_index(index: dict[str, Any]) -> Iterable[Sheet]:
    for method, one in index.items():
        rows = [
            [name, f"{table['rows']:,}", f"{table['bytes'] / one['turns']:,.0f}"]
            for name, table in one["tables"].items()
        ]
        sums = [
            f"{one[f'{part}_bytes_per_turn']:,.0f} {part}" for part in ("words", "vector", "log")
        ]
        notes = [f"Bytes per turn: {', '.join(sums)}."]
        yield Sheet(
            f"The index on Postgres, {method}", ("table", "rows", "bytes/turn"), rows, notes
        )


def _hybrid(facts: Facts) -> Iterable[Sheet]:
    from holdfast.bench.hybrid_report import OPERATIONS  # noqa: PLC0415 - it needs numpy

    names = tuple(facts["space"])
    loads = {
        "paced": f"Paced: {facts['agents']} agents, 10 calls a second each",
        "closed": f"Closed loop: {facts['agents']} agents, each as fast as it is answered",
        "writes": f"Writes in a closed loop of {facts['agents']} agents",
    }
    for load, title in loads.items():
        found = {
            (row["operation"], row["contestant"]): row
            for row in facts["latency"]
            if row["load"] == load
        }
        wanted = dict.fromkeys(
            row for row in OPERATIONS if any((row, one) in found for one in names)
        )
        rows = [
            [OPERATIONS[row], *(_times(found.get((row, one))) for one in names)] for row in wanted
        ]
        yield Sheet(f"{title}: p50 / p95 / p99 in µs", ("operation", *names), rows)
    yield _answers(facts, names)
    space = facts["space"]
    lines = (("redis", "memory in Redis"), ("postgres", "disk in Postgres"))
    rows = [
        [shown, *(f"{space[one][f'{key}_mb_per_1000_agents']:,.0f} MB" for one in names)]
        for key, shown in lines
    ]
    yield Sheet(
        f"For 1,000 agents with {facts['turns']} turns each", ("", *names), rows, _cannot(facts)
    )
    yield _bars(facts)


def _times(row: dict[str, Any] | None) -> str:
    if row is None:
        return "—"
    return " / ".join(f"{row[name]:,.0f}" for name in ("p50_us", "p95_us", "p99_us"))


def _answers(facts: Facts, names: tuple[str, ...]) -> Sheet:
    lines = {
        "fidelity_5": "fidelity@5: share of the exact nearest 5",
        "fidelity_5_own_subjects": "… of subjects that only the agent has",
        "fidelity_5_shared_subjects": "… of subjects that all agents have",
        "rows_mean": "rows of the 5 that were asked for, mean",
        "rows_least": "rows of the 5 that were asked for, least",
        "recall_5": "recall@5 of the turns about the subject",
        "recall_5_of_exact": "… of exact search, which no index exceeds but by luck",
    }
    answers = facts["answers"]
    rows = [
        [shown, *(f"{answers[one][key]:.3g}" if answers[one] else "—" for one in names)]
        for key, shown in lines.items()
    ]
    plans = [f"The plan of {name}: `{plan}`." for name, plan in facts["plans"].items()]
    return Sheet("How good the answers are", ("", *names), rows, plans)


def _cannot(facts: Facts) -> list[str]:
    from holdfast.bench.hybrid_report import OPERATIONS  # noqa: PLC0415 - it needs numpy

    return [
        f"What {name} cannot do: {OPERATIONS[operation]}; {why}."
        for name, refused in facts["cannot"].items()
        for operation, why in refused.items()
    ]


def _peers(facts: Facts) -> Iterable[Sheet]:
    columns = ("operation", "Holdfast", "peer", "p50", "peer p50", "times faster", "bar")
    rows = [
        [
            one["operation"],
            one["ours"],
            one["peer"],
            f"{one['ours_p50_us']:,.0f} µs",
            f"{one['peer_p50_us']:,.0f} µs",
            f"{one['ratio']:.2f}",
            _bar(one["bar"], met=one["met"]),
        ]
        for one in facts["rows"]
    ]
    yield Sheet("The same work by others", columns, rows, _missing(facts))
    yield _peers_growth(facts)


def _peers_growth(facts: Facts) -> Sheet:
    columns = ("operation", "from", "to", "Holdfast", "peer", "bar")
    rows = [
        [
            one["name"],
            f"{one['from']:,}",
            f"{one['to']:,}",
            f"{one['ours']:.2f}",
            f"{one['peer']:.2f}",
            _bar(one["bar"], met=one["met"]),
        ]
        for one in facts["growth"]
    ]
    return Sheet("What the same call costs on a long one, times a short one", columns, rows)


def _growth(facts: Facts) -> Iterable[Sheet]:
    for grows in dict.fromkeys(row["grows"] for row in facts["rows"]):
        chosen = [row for row in facts["rows"] if row["grows"] == grows]
        sizes = [point["size"] for point in chosen[0]["points"]]
        rows = [
            [
                row["operation"],
                row["wiring"],
                *(f"{point['p50_us']:,.0f} µs" for point in row["points"]),
                "—" if row["slope"] is None else f"{row['slope']:.2f}",
            ]
            for row in chosen
        ]
        columns = ("call", "wiring", *(f"{size:,}" for size in sizes), "slope")
        yield Sheet(f"As the {grows} grow: p50", columns, rows)
    rows = [[f"{one['size']:,}", f"{one['fidelity_5']:.3f}"] for one in facts["fidelity_5"]]
    yield Sheet("Search in a collection", ("documents", "fidelity@5"), rows)
    rows = [
        [
            f"{one['size']:,}",
            f"{one['indexed_per_second']:,.0f}",
            f"{one['words_bytes_per_turn']:,.0f}",
            f"{one['vector_bytes_per_turn']:,.0f}",
            f"{one['fidelity_5']:.3f}",
        ]
        for one in facts.get("turns", [])
    ]
    columns = ("turns", "indexed a second", "bytes/turn, words", "vectors", "fidelity@5")
    yield Sheet("The index of one agent on Postgres", columns, rows)
    if facts.get("bars"):
        yield _bars(facts)


_MAKERS: dict[str, Callable[[Facts], Iterable[Sheet]]] = {
    "stores": _stores,
    "tasks": _tasks,
    "hybrid": _hybrid,
    "recall": _recall,
    "peers": _peers,
    "growth": _growth,
}
