"""Secrets by file: ``NAME_FILE`` names a file with the value of ``NAME``."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Settings
from holdfast.errors import ConfigError
from holdfast.wiring.secret_files import BY_FILE, MAX_BYTES, with_secret_files
from holdfast.wiring.settings import _NAMES, _masked, unknown_variables

URL = "postgresql://app:s3cret@db/main"


def test_a_secret_comes_from_its_file_without_the_last_newline(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{URL}\n")
    settings = Settings.from_environment({"DATABASE_URL_FILE": str(file)})
    assert settings.database_url == URL
    assert "s3cret" not in repr(settings)


def test_every_masked_setting_may_be_in_a_file() -> None:
    masked = {
        name
        for field, name in _NAMES.items()
        if field.endswith("_url") or _masked(field, "x") == "***"
    }
    assert masked == set(BY_FILE) - {"HOLDFAST_LOGIN_PASSWORD"}


def test_its_variable_is_known_and_that_of_a_plain_setting_is_not() -> None:
    assert unknown_variables({f"{name}_FILE": "x" for name in BY_FILE}) == []
    assert unknown_variables({"HOLDFAST_LOGIN_PASSWORD": "x"}) == []
    assert len(unknown_variables({"HOLDFAST_TENANT_FILE": "x"})) == 1


def test_both_a_value_and_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL and DATABASE_URL_FILE"):
        with_secret_files({"DATABASE_URL": URL, "DATABASE_URL_FILE": str(tmp_path / "url")})
    assert with_secret_files({"DATABASE_URL": URL, "DATABASE_URL_FILE": ""})["DATABASE_URL"] == URL


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read"),
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xff", "UTF-8"),
        (b"x" * (MAX_BYTES + 1), "more than"),
    ],
)
def test_a_file_that_holds_no_secret_is_refused_with_its_variable(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=why) as caught:
        Settings.from_environment({"HOLDFAST_KEYS_FILE": str(file)})
    assert "HOLDFAST_KEYS_FILE" in str(caught.value)


def test_a_path_with_a_null_byte_is_refused() -> None:
    with pytest.raises(ConfigError, match="REDIS_URL_FILE"):
        with_secret_files({"REDIS_URL_FILE": "a\0b"})
