from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.values.errors import ConfigError, MissingExtraError, UnknownSchemeError, pip_line
from holdfast.wiring import notices
from holdfast.wiring.engines import EngineSpec, engine_of_settings, engine_of_url, load
from holdfast.wiring.masking import mask_url
from holdfast.wiring.settings import STORAGE_TYPES, Settings, unknown_variables

SECRET = "s3cr3t-passw0rd"  # noqa: S105 - what must not be seen


def test_an_empty_environment_is_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()
    assert engine_of_settings(Settings()) is None


def test_every_setting_is_read_from_its_variable() -> None:
    settings = Settings.from_environment(
        {
            "DATABASE_URL": "postgresql://db/main",
            "REDIS_URL": "redis://cache",
            "BLOB_URL": "s3://bucket",
            "HOLDFAST_DIR": "data",
            "HOLDFAST_TENANT": "acme",
            "HOLDFAST_BLOB_TTL_SECONDS": "60",
            "HOLDFAST_CHANNEL_RETENTION_SECONDS": "1.5",
            "HOLDFAST_COMMAND_TIMEOUT_SECONDS": "5",
            "PATH": "ignored",
        }
    )
    assert settings == Settings(
        database_url="postgresql://db/main",
        redis_url="redis://cache",
        blob_url="s3://bucket",
        directory="data",
        tenant="acme",
        blob_ttl_seconds=60,
        channel_retention_seconds=1.5,
        command_timeout_seconds=5,
    )


@pytest.mark.parametrize("folder", ["data", ".holdfast"])
def test_a_folder_alone_implies_embedded_postgres(folder: str) -> None:
    settings = Settings.from_environment({"HOLDFAST_DIR": folder})
    assert settings == Settings(storage_type="embedded", directory=folder)
    memory = Settings.from_environment({"HOLDFAST_DIR": folder, "STORAGE_TYPE": "memory"})
    assert memory.storage_type == "memory"


def test_an_unknown_storage_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        Settings.from_environment({"STORAGE_TYPE": "mysql"})
    assert caught.value.known == STORAGE_TYPES
    assert "memory, embedded, postgres" in str(caught.value)


def test_a_mistyped_variable_is_a_warning_that_names_the_nearest_one(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "_said", set())
    for _ in range(2):
        assert Settings.from_environment({"HOLDFAST_TENNANT": "acme"}) == Settings()
    [warned] = caplog.messages
    assert warned.endswith(
        "HOLDFAST_TENNANT is unknown and has no effect: did you mean HOLDFAST_TENANT?"
    )


def test_variables_that_kubernetes_makes_for_a_service_are_no_error() -> None:
    made = {"HOLDFAST_SERVICE_HOST": "10.0.0.1", "HOLDFAST_PORT": "tcp://10.0.0.1:8000"}
    assert Settings.from_environment(made) == Settings()
    assert len(unknown_variables(made)) == 2


def test_the_file_env_is_read_and_the_environment_counts_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL", "HOLDFAST_TENANT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".env").write_text(
        "# ours\nSTORAGE_TYPE=memory\nexport HOLDFAST_TENANT='acme'\nEMPTY\n", encoding="utf-8"
    )
    assert Settings.from_environment() == Settings(storage_type="memory", tenant="acme")
    monkeypatch.setenv("HOLDFAST_TENANT", "other")
    assert Settings.from_environment().tenant == "other"
    # Reading it changes nothing for the rest of the process.
    assert "STORAGE_TYPE" not in os.environ


def test_a_file_env_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(b"STORAGE_TYPE=\xff\xfe")
    with pytest.raises(ConfigError, match=r"the file \.env cannot be read"):
        Settings.from_environment()


@pytest.mark.parametrize("url", ["postgresql://db:99999/main", "redis://:s3cret@cache:70000/0"])
def test_a_port_beyond_all_ports_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="must be from 0 to 65535") as caught:
        engine_of_url(url)
    assert "s3cret" not in str(caught.value)


def test_a_url_of_sqlalchemy_says_what_to_drop() -> None:
    with pytest.raises(ConfigError, match=r"drop '\+asyncpg'"):
        engine_of_url("postgresql+asyncpg://db/main")


@pytest.mark.parametrize("bad", ["soon", "0", "-1", "nan", "1e99"])
def test_a_bad_number_of_seconds_names_its_variable(bad: str) -> None:
    with pytest.raises(ConfigError, match="HOLDFAST_BLOB_TTL_SECONDS"):
        Settings.from_environment({"HOLDFAST_BLOB_TTL_SECONDS": bad})


@pytest.mark.parametrize("bad", ["soon", "0", "2147484"])
def test_a_bad_limit_of_a_statement_names_its_variable(bad: str) -> None:
    with pytest.raises(ConfigError, match="HOLDFAST_COMMAND_TIMEOUT_SECONDS"):
        Settings.from_environment({"HOLDFAST_COMMAND_TIMEOUT_SECONDS": bad})


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL is not set"):
        Settings(storage_type="postgres")
    for kind in ("memory", "embedded"):
        with pytest.raises(ConfigError, match="DATABASE_URL is set too"):
            Settings(storage_type=kind, database_url="postgresql://db/main")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:{SECRET}@db/main",
        f"postgresql://ana:p@ss:{SECRET}@db/main",
        f"redis://:{SECRET}@cache:6379/0",
        f"s3://bucket/prefix?endpoint=http://x&secret_access_key={SECRET}&region=eu",
        f"s3://bucket?aws_session_token={SECRET}",
        f"postgresql://db/main?password={SECRET}",
        f"postgresql://ana:{SECRET}@[broken/main",
        f"postgresql://ana:a/{SECRET}@db/main",
        f"postgresql://ana:a?{SECRET}@db/main",
        f"postgresql://ana:a#{SECRET}@db/main",
        f"redis://cache?pwd={SECRET}",
        f"host=db password={SECRET} user=ana",
    ],
)
def test_a_secret_never_shows(url: str) -> None:
    assert SECRET not in mask_url(url)
    assert SECRET not in repr(Settings(database_url=url, redis_url=url, blob_url=url))


def test_an_unknown_scheme_shows_no_secret() -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        engine_of_url(f"host=db password={SECRET}")
    assert SECRET not in str(caught.value)
    with pytest.raises(UnknownSchemeError, match="mysql"):
        engine_of_url("mysql://db")


def test_what_is_no_secret_still_shows() -> None:
    url = "s3://bucket/prefix?endpoint=http://x&region=eu&keyboard=de"
    assert mask_url(url) == url
    assert mask_url("postgresql://ana:x@db:5432/main") == "postgresql://ana:***@db:5432/main"


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        ("memory:", "inmemory"),
        ("./state", "embedded"),
        ("../state", "embedded"),
        ("/var/lib/state", "embedded"),
        ("postgresql://db/main", "postgres"),
        ("postgres://db/main", "postgres"),
        ("redis://cache", "redis"),
        ("rediss://cache", "redis"),
        ("redis+cluster://cache", "redis"),
    ],
)
def test_a_url_means_an_engine(url: str, engine: str) -> None:
    assert engine_of_url(url).name == engine


@pytest.mark.parametrize("url", ["mysql://db", "memory", "state", "", "http://x", "mem:"])
def test_an_unknown_url_lists_the_known_ones(url: str) -> None:
    with pytest.raises(UnknownSchemeError, match="memory:"):
        engine_of_url(url)


@pytest.mark.parametrize("folder", ["state/", "data/mine", "state", "my state", ""])
def test_a_folder_without_a_dot_is_shown_and_says_how_a_folder_begins(folder: str) -> None:
    with pytest.raises(UnknownSchemeError, match=r"a folder that begins with \./ or /") as caught:
        engine_of_url(folder)
    assert str(caught.value).startswith(f"unknown URL {folder!r}: ")


def test_an_unknown_url_does_not_show_its_secret() -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        engine_of_url(f"mysql://ana:{SECRET}@db")
    assert SECRET not in str(caught.value)


def test_a_missing_driver_says_the_pip_line() -> None:
    spec = EngineSpec("redis", "holdfast.wiring.inmemory", driver="no_such_driver", extra="redis")
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[redis\]'"):
        load(spec)


@pytest.mark.asyncio
async def test_several_missing_drivers_are_one_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    _hide(monkeypatch, "asyncpg", "redis", "obstore")
    opening = holdfast.open("postgresql://db/x", redis="redis://r", blobs="s3://bucket")
    with pytest.raises(MissingExtraError) as missing:
        await opening
    assert missing.value.extra == "postgres,redis,objects"
    assert str(missing.value) == (
        "the postgres engine and the redis engine and the objects engine cannot run without the "
        "extras 'postgres', 'redis', 'objects': " + pip_line("postgres,redis,objects")
    )


@pytest.mark.asyncio
async def test_a_missing_embedder_is_in_the_same_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    _hide(monkeypatch, "asyncpg", "wordllama")
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[embeddings,postgres\]'"):
        await holdfast.open("postgresql://db/x", embedder="static")


def _hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make modules look as if they were not installed."""
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("text", ["-1", "1001", "ten", "1.5", "٣", "99999999999999999999"])
def test_a_number_of_state_versions_that_cannot_be_kept_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="HOLDFAST_STATE_VERSIONS must be a whole number"):
        Settings.from_environment({"HOLDFAST_STATE_VERSIONS": text})
    assert Settings.from_environment({"HOLDFAST_STATE_VERSIONS": "1000"}).state_versions == 1000
