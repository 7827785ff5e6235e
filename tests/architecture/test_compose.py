"""compose.yaml: whole, without a secret, and in the words that the code knows."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import yaml  # type: ignore[import-untyped]

from holdfast.wiring.engines import POSTGRES, REDIS, engine_of_url
from holdfast.wiring.settings import _NAMES
from tests.architecture.source import ROOT

TEXT = (ROOT / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: one for name, one in SERVICES.items() if "build" in one}
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::([?-])([^}]*))?\}")
SECRET = re.compile("PASSWORD|SECRET|_KEY")
DRIVER_NAMES = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def _example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


def test_every_service_is_checked_or_waits_for_those_that_are() -> None:
    assert {*("postgres", "valkey", "seaweedfs", "migrate", "login", "serve", "worker")} == set(
        SERVICES
    )
    for name, service in SERVICES.items():
        waits = service.get("depends_on", {})
        assert service.get("healthcheck", {}).get("test") or waits, name
        for other, how in waits.items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{name} waits for {other}"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert SERVICES[other]["restart"] == "no", f"{other} never completes"
    for name in ("serve", "worker"):
        assert set(SERVICES[name]["depends_on"]) == {"postgres", "valkey", "seaweedfs", "login"}


def test_each_of_our_processes_that_stays_is_checked_by_its_health() -> None:
    for name, service in OURS.items():
        words = service["command"].split()
        if service["restart"] == "no":
            continue
        port = dict(pairwise(words)).get("--port" if words[1] == "serve" else "--metrics-port")
        assert f"http://127.0.0.1:{port}/health" in service["healthcheck"]["test"][-1], name


def test_every_secret_comes_from_the_environment_and_must_be_set() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(SECRET, variable):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), f"{name}: {variable}"
            password = re.match(r"\w+://\w*:([^@]*)@", value)
            assert not password or VARIABLE.fullmatch(password[1]), f"{name}: {variable}"
    secrets = {one for one in _example() if re.search(SECRET, one)}
    assert len(secrets) == 5
    for variable, how, _ in VARIABLE.findall(TEXT):
        assert how == ("?" if variable in secrets else "-"), variable
    # Nothing in the example that somebody could leave as it is.
    assert {_example()[one] for one in secrets} == {""}


def test_the_example_names_every_variable_and_no_other() -> None:
    used = {name for name, _, _ in VARIABLE.findall(TEXT)}
    assert used == set(_example())
    for name, how, default in VARIABLE.findall(TEXT):
        assert how != "-" or _example()[name] == default
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert ".env" in ignored


def test_the_environment_is_in_the_words_of_the_settings() -> None:
    assert set(OURS) == {"migrate", "login", "serve", "worker"}
    for name, service in OURS.items():
        unknown = set(service["environment"]) - set(_NAMES.values()) - DRIVER_NAMES
        assert unknown == ({"HOLDFAST_LOGIN_PASSWORD"} if name == "login" else set()), name
        assert engine_of_url(service["environment"]["DATABASE_URL"]) is POSTGRES
        if service["restart"] != "no":
            assert engine_of_url(service["environment"]["REDIS_URL"]) is REDIS
        assert service["command"].split()[0] == "holdfast"


def test_only_what_migrates_logs_in_as_the_superuser() -> None:
    superuser = SERVICES["postgres"]["environment"]["POSTGRES_USER"]
    for name, service in OURS.items():
        login = service["environment"]["DATABASE_URL"].removeprefix("postgresql://").split(":")[0]
        assert (login == superuser) == (service["restart"] == "no"), name
        assert login in {superuser, SERVICES["login"]["command"].split()[3]}, name


def test_images_are_pinned_ports_are_on_loopback_and_data_is_kept() -> None:
    for name, service in SERVICES.items():
        image, _, tag = service["image"].partition(":")
        assert image, name
        assert tag not in {"", "latest"}, name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name}: {port}"
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in COMPOSE["volumes"], f"{name}: {volume}"
    kept = {
        volume.partition(":")[0] for one in SERVICES.values() for volume in one.get("volumes", [])
    }
    assert kept == set(COMPOSE["volumes"]) == {"postgres", "valkey", "seaweedfs"}


def test_valkey_writes_each_command_to_disk_and_evicts_nothing() -> None:
    command = " ".join(SERVICES["valkey"]["command"])
    for option in ("--appendonly yes", "--appendfsync always", "--maxmemory-policy noeviction"):
        assert option in command
    assert "--requirepass" in command


def test_the_image_runs_as_nobody_special_and_copies_what_there_is() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    [base] = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert re.fullmatch(r"[\w/.-]+:\d[\w.-]*", base)
    [user] = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert user not in {"root", "0"}
    for line in lines:
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
                assert ".env" not in source
