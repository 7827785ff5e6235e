from __future__ import annotations

import pytest

from holdfast.kernel.core.errors import ConfigError, MissingExtraError, UnknownSchemeError
from holdfast.wiring.engines import EngineSpec, engine_of_settings, engine_of_url, load
from holdfast.wiring.masking import mask_url
from holdfast.wiring.settings import STORAGE_TYPES, Settings

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


def test_an_unknown_storage_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        Settings.from_environment({"STORAGE_TYPE": "mysql"})
    assert caught.value.known == STORAGE_TYPES
    assert "memory, embedded, postgres" in str(caught.value)


def test_a_mistyped_variable_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        Settings.from_environment({"HOLDFAST_TENNANT": "acme"})
    assert caught.value.known == ("HOLDFAST_TENANT",)


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
    ],
)
def test_a_secret_never_shows(url: str) -> None:
    assert SECRET not in mask_url(url)
    assert SECRET not in repr(Settings(database_url=url, redis_url=url, blob_url=url))


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


def test_an_unknown_url_does_not_show_its_secret() -> None:
    with pytest.raises(UnknownSchemeError) as caught:
        engine_of_url(f"mysql://ana:{SECRET}@db")
    assert SECRET not in str(caught.value)


def test_a_missing_driver_says_the_pip_line() -> None:
    spec = EngineSpec("redis", "holdfast.wiring.inmemory", driver="no_such_driver", extra="redis")
    with pytest.raises(MissingExtraError, match=r"pip install 'holdfast\[redis\]'"):
        load(spec)
