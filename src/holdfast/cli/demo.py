"""``holdfast demo``: shows an agent that survives ``kill -9``."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from holdfast.cli.demo_agent import REPORT
from holdfast.cli.demo_agent import app as agent
from holdfast.cli.demo_client import DemoClient, artifact_of, question_of, state_of
from holdfast.cli.demo_stage import Stage
from holdfast.cli.demo_studio import fill_world, has_studio, studio_link
from holdfast.values.content import TextBlock
from holdfast.values.errors import ConfigError, pip_line
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings

QUESTION = "When is the stream through the Goulet of Brest slack, and why are there tides?"
ANSWER = '{"reader": "sailor", "copies": 2}'
CUT_AFTER_LINES = 5
STEPS = ("fetch", "read", "draft", "publish")
PORT = 8000


def demo(
    *,
    once: Annotated[
        bool | None,
        typer.Option(
            "--once/--stay",
            help="End when the task is done, or stay until Ctrl-C; unless given, it stays in a "
            "terminal.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only the verdict, as JSON; with --once.")
    ] = False,
    folder: Annotated[
        str, typer.Option(help="Keep everything here; unless given, a temporary folder.")
    ] = "",
    port: Annotated[
        int, typer.Option(min=0, help="The service's port; 0 is any that is free.")
    ] = PORT,
) -> None:
    """Watch a task survive the death of its worker, then of the worker, service and Postgres.

    It starts Postgres in a folder, the service and a worker as separate processes, submits a task,
    kills the worker with SIGKILL while it streams an artifact, and starts another one, which
    continues without repeating a finished step. The agent asks a question. Then the worker, the
    service and Postgres are all killed and started again; the question is still there and is
    answered. In a terminal the service then keeps running until Ctrl-C, with a link to Studio,
    which shows sample data, and with three curl commands to try. Elsewhere, for example in CI, it
    ends by itself, as with --once.

    The processes count in a file how often each step ran, so the count does not rely on the
    ledger. Exit code 0 only if the task is completed, no finished step ran twice, and the artifact
    has the same bytes as one made without a kill.

    For example:

        holdfast demo

        holdfast demo --once --json
    """
    if once is None:
        # Not a terminal (CI, a container): no person could end it with Ctrl-C.
        once = not sys.stdout.isatty()
    if as_json and not once:
        raise ConfigError("--json prints the result at the end: pass --once, too")
    signal.signal(signal.SIGTERM, _leave)
    with Stage(folder, port=free_port(port)) as stage:
        play = Play(stage, Console(highlight=False, quiet=as_json))
        try:
            verdict = play.run()
            if as_json:
                typer.echo(json.dumps(verdict))
            if not once:
                play.stay()
            elif not as_json:
                play.say("ended; `holdfast studio --demo` shows a world like this one in a browser")
        except KeyboardInterrupt:
            play.say("ending all processes")
            raise typer.Exit(130) from None
    raise typer.Exit(0 if verdict["ok"] else 1)


class Play:
    """The steps of the demo, in order, printed as they happen.

    ::

        with Stage("", port=8000) as stage:
            verdict = Play(stage, Console()).run()
    """

    def __init__(self, stage: Stage, console: Console) -> None:
        self._stage = stage
        self._out = console
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the time since the start."""
        self._out.print(f"[dim]{time.monotonic() - self._begun:6.1f} s[/]  {text}", soft_wrap=True)

    def run(self) -> dict[str, Any]:
        """Run all steps and return the verdict."""
        stage = self._stage
        self._out.print("[bold]An agent that survives kill -9[/]\n")
        with closing(DemoClient(stage.url, check=stage.check)) as client:
            task_id = self._cut_a_stream(client)
            question = self._ask(client, task_id)
            restored = self._end_the_world(client, task_id)
            done = self._answer(client, task_id)
        verdict = self._verdict(done) | {"question_survived": question == restored}
        verdict["ok"] = verdict["ok"] and verdict["question_survived"]
        self._tell(verdict)
        return verdict

    def _cut_a_stream(self, client: DemoClient) -> str:
        stage = self._stage
        with self._out.status("starting Postgres and the service"):
            stage.start("service")
            client.ready()
        self.say(f"Postgres runs in {escape(str(stage.state))}, the service at {stage.url}")
        stage.start("worker")
        self.say("a worker has started")
        task_id = str(client.send(QUESTION)["id"])
        self.say(f"submitted task [bold]{task_id}[/]: {QUESTION}")
        with self._out.status("the worker fetches, reads, and begins to stream its report"):
            cut = f"wrote line {CUT_AFTER_LINES}"
            client.wait("the report to be half written", lambda: cut in stage.noted())
        pid = stage.kill("worker")
        self.say(f"[red]kill -9[/] of the worker ({pid}) in the middle of {REPORT}")
        stage.start("worker")
        self.say("another worker has started; it may go on when the dead one's lease has run out")
        return task_id

    def _ask(self, client: DemoClient, task_id: str) -> str:
        with self._out.status("the second worker goes on"):
            task = client.until(task_id, "INPUT_REQUIRED")
        finished = [step for step in STEPS if self._count("finished")[step]]
        self.say(f"it went on: finished are {', '.join(finished)}, each once")
        question = question_of(task)
        self.say(f"the agent asks: [yellow]{escape(question)}[/]")
        return question

    def _end_the_world(self, client: DemoClient, task_id: str) -> str:
        stage = self._stage
        killed = [f"worker ({stage.kill('worker')})", f"service ({stage.kill('service')})"]
        killed.append(f"Postgres ({stage.kill_postgres()})")
        self.say(f"[red]kill -9[/] of everything: {', '.join(killed)}")
        with self._out.status("starting everything again"):
            stage.start("service")
            client.ready()
            stage.start("worker")
        task = client.task(task_id)
        self.say(f"all is up again; the task is {state_of(task)}, its question still there")
        return question_of(task)

    def _answer(self, client: DemoClient, task_id: str) -> dict[str, Any]:
        client.send(ANSWER, task_id=task_id)
        self.say(f"answered through the service, as its question wants it: [green]{ANSWER}[/]")
        with self._out.status("the third worker goes on"):
            done = client.until(task_id)
        self.say("a child task published the report; its parent waited without a worker")
        self.say(f"the task is [bold]{state_of(done)}[/]: {escape(question_of(done))}")
        return done

    def _count(self, what: str) -> Counter[str]:
        notes = [line.split(" ") for line in self._stage.noted()]
        return Counter(words[1] for words in notes if words[0] == what)

    def _verdict(self, done: dict[str, Any]) -> dict[str, Any]:
        stage = self._stage
        executed, begun = self._count("finished"), self._count("began")
        repeated = _begun_again(stage.noted())
        identical = artifact_of(done, REPORT) == asyncio.run(_undisturbed())
        state = state_of(done).lower().replace("_", "-")
        return {
            "state": state,
            "kills": len(stage.killed),
            "killed": stage.killed,
            "workers": stage.started["worker"],
            "steps_executed": {step: executed[step] for step in STEPS},
            "steps_begun": {step: begun[step] for step in STEPS},
            "repeated_steps": repeated,
            "artifact_identical": identical,
            "task": done["id"],
            "seconds": round(time.monotonic() - self._begun, 1),
            "ok": state == "completed"
            and repeated == 0
            and identical
            and all(executed[step] == 1 for step in STEPS),
        }

    def _tell(self, verdict: dict[str, Any]) -> None:
        if self._out.quiet:
            return
        executed = ", ".join(f"{name} {count}" for name, count in verdict["steps_executed"].items())
        self.say(f"killed: {', '.join(verdict['killed'])}; steps executed: {executed}")
        same = "the same bytes as" if verdict["artifact_identical"] else "[red]other bytes than[/]"
        self.say(f"steps repeated after they were finished: {verdict['repeated_steps']}")
        self.say(f"{REPORT} has {same} one written without a kill")
        self._out.print("\n[bold]holdfast tasks show[/]\n")
        subprocess.run(  # noqa: S603 - our own command
            self._stage.command("tasks", "show", verdict["task"]),
            cwd=self._stage.folder,
            env=self._stage.environment,
            check=False,
        )

    def stay(self) -> None:
        """Keep everything running, print commands to try, and wait for Ctrl-C."""
        stage = self._stage
        body = {
            "message": {
                "messageId": "m1",
                "role": "ROLE_USER",
                "parts": [{"text": "Tides of Brest?"}],
            }
        }
        version = "-H 'A2A-Version: 1.0'"
        self._out.print(f"\n[bold]The service stays at {stage.url} until Ctrl-C. Try:[/]\n")
        sent = f"-H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"
        for line in (
            f"curl -s {stage.url}/.well-known/agent-card.json",
            f"curl -s {stage.url}/message:send {version} {sent}",
            f"curl -s {stage.url}/tasks {version}",
        ):
            self._out.print(f"  {escape(line)}", soft_wrap=True)
        listed = escape(self._beside("tasks list"))
        self._out.print(f"\nor, beside it:\n\n  {listed}", soft_wrap=True)
        self._open_studio()
        with suppress(KeyboardInterrupt):
            while True:
                stage.check()
                time.sleep(0.5)
        self._out.print()
        self.say("ending all processes")

    def _open_studio(self) -> None:
        if not has_studio():
            line = escape(pip_line("studio"))
            self._out.print(f"\nFor Studio, the same in a browser: {line}", soft_wrap=True)
            return
        with self._out.status("adding a small world to look at in Studio") as status:
            fill_world(self._stage, lambda what: status.update(f"adding {what} for Studio"))
        # A worker for the agents of the world: what is answered or forked there goes on.
        self._stage.start("agents")
        self._out.print("\n[bold]Look at it in a browser:[/]\n")
        self._out.print(f"  {escape(studio_link(self._stage))}\n", soft_wrap=True)
        self._out.print("The link works once, within five minutes. Another:\n")
        self._out.print(f"  {escape(self._beside('studio'))}", soft_wrap=True)

    def _beside(self, command: str) -> str:
        """Return a command line for another terminal, where no virtual environment is active."""
        own = f"STORAGE_TYPE=embedded HOLDFAST_DIR={shlex.quote(str(self._stage.state))}"
        beside = Path(sys.executable).with_name("holdfast")
        return f"{own} {shlex.quote(str(beside)) if beside.exists() else 'holdfast'} {command}"


def free_port(wanted: int) -> int:
    """Return the wanted port if it is free on loopback, otherwise any free port.

    >>> free_port(0) > 0
    True
    """
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise ConfigError("no port of 127.0.0.1 is free")


def _begun_again(noted: list[str]) -> int:
    """Return how often a step began that had finished before.

    >>> _begun_again(["began a", "began a", "finished a", "began a"])
    1
    """
    finished: set[str] = set()
    again = 0
    for line in noted:
        what, _, step = line.partition(" ")
        again += what == "began" and step in finished
        if what == "finished":
            finished.add(step)
    return again


async def _undisturbed() -> str:
    """Return the report that the same agent writes in one run, in memory, without a kill."""
    async with open_state("memory:", settings=Settings()) as state:
        task = await agent.submit(state, QUESTION)
        await agent.run_until_idle(state)
        found = await state.tasks.get(task.id)
    artifacts = found.artifacts if found else []
    parts = [part for one in artifacts if one.id == REPORT for part in one.parts]
    return "".join(part.text for part in parts if isinstance(part, TextBlock))


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, so that the demo stops its processes."""
    sys.exit(143)
