"""deploy/compose.yaml: whole, without a secret, and in the words that the code knows."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.engines.objects.address import Address
from holdfast.wiring.engines import POSTGRES, REDIS, engine_of_url
from holdfast.wiring.secret_files import BY_FILE
from tests.architecture.source import ROOT

FILE = ROOT / "deploy" / "compose.yaml"
TEXT = FILE.read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: one for name, one in SERVICES.items() if "build" in one}
STAYING = {"serve", "worker", "consolidate"}
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::([?-])([^}]*))?\}")
SECRET = re.compile("PASSWORD|SECRET|_KEY|_URL")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``make-secrets.sh`` writes."""
    folder = tmp_path_factory.mktemp("deploy")
    script = folder / "make-secrets.sh"
    script.write_bytes((FILE.parent / "make-secrets.sh").read_bytes())
    for _ in range(2):
        subprocess.run(["/bin/sh", str(script)], check=True, capture_output=True)
    return folder / "secrets"


def test_it_fits_the_schema_of_the_compose_specification(tmp_path: Path) -> None:
    assert _fits_the_schema(FILE)
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(TEXT.replace("healthcheck:", "healthchecks:", 1))
    assert not _fits_the_schema(wrong)


def _fits_the_schema(file: Path) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, str(file)], check=False, capture_output=True).returncode == 0


def test_every_service_is_checked_or_waits_for_those_that_are() -> None:
    servers, once = {"postgres", "valkey", "seaweedfs"}, {"migrate", "login", "doctor"}
    assert set(SERVICES) == servers | once | STAYING
    for name, service in SERVICES.items():
        waits = service.get("depends_on", {})
        assert service.get("healthcheck", {}).get("test") or waits, name
        for other, how in waits.items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{name} waits for {other}"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert SERVICES[other]["restart"] == "no", f"{other} never completes"
    for name in STAYING:
        assert set(SERVICES[name]["depends_on"]) == servers | {"doctor"}
        assert SERVICES[name]["stop_grace_period"] == "45s"
    assert "--strict" in SERVICES["doctor"]["command"]


def test_each_of_our_processes_that_stays_is_checked_by_its_health() -> None:
    for name, service in OURS.items():
        words = service["command"].split()
        if service["restart"] == "no":
            continue
        port = dict(pairwise(words)).get("--port" if words[1] == "serve" else "--metrics-port")
        assert f"http://127.0.0.1:{port}/health/ready" in service["healthcheck"]["test"][-1], name


def test_every_secret_is_a_file_that_the_script_writes(secrets: Path) -> None:
    for name, service in SERVICES.items():
        used = set()
        for variable, value in service.get("environment", {}).items():
            if re.search(SECRET, variable):
                assert variable.endswith("_FILE"), f"{name}: {variable}"
                used.add(value.removeprefix("/run/secrets/"))
        words = [service.get("command", ""), service.get("entrypoint", "")]
        used |= set(re.findall(r"/run/secrets/(\w+)", str(words)))
        assert used == set(service.get("secrets", [])), name
    written = {path.name: path.read_text() for path in secrets.iterdir()}
    assert set(written) == set(COMPOSE["secrets"])
    for name, how in COMPOSE["secrets"].items():
        assert how == {"file": f"secrets/{name}"}
    assert secrets.stat().st_mode & 0o777 == 0o700
    passwords = {text for name, text in written.items() if not name.endswith("_url")}
    assert len(passwords) == 5
    assert all(re.fullmatch(r"[0-9a-f]{48}", one) for one in passwords)
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    for _, how, _ in VARIABLE.findall(TEXT):
        assert how == "-", "a variable without a default is a secret"


def test_the_environment_is_in_the_words_of_the_settings(secrets: Path) -> None:
    assert set(OURS) == {"migrate", "login", "doctor"} | STAYING
    kinds = {"DATABASE_URL_FILE": POSTGRES, "REDIS_URL_FILE": REDIS}
    for name, service in OURS.items():
        assert set(service["environment"]) <= {f"{one}_FILE" for one in BY_FILE}, name
        for variable, path in service["environment"].items():
            value = (secrets / path.removeprefix("/run/secrets/")).read_text()
            if variable in kinds:
                assert engine_of_url(value) is kinds[variable]
            if variable == "BLOB_URL_FILE":
                assert Address.parse(value).config["secret_access_key"]
        assert service["command"].split()[0] == "holdfast"


def test_only_what_migrates_logs_in_as_the_superuser(secrets: Path) -> None:
    superuser = SERVICES["postgres"]["environment"]["POSTGRES_USER"]
    login = SERVICES["login"]["command"].split()[3]
    for name, user in (("owner_url", superuser), ("database_url", login)):
        assert urlsplit((secrets / name).read_text()).username == user
    for name, service in OURS.items():
        assert ("owner_url" in service["secrets"]) == (name in {"migrate", "login"}), name


def test_our_processes_have_no_rights_that_they_do_not_need() -> None:
    for name, service in OURS.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        assert service["security_opt"] == ["no-new-privileges:true"], name


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
    assert "--maxmemory 512mb" in command
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
