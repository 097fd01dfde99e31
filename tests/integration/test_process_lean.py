"""The memory of a serving proxy: modules that it does not need, and the size of the process."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import needs
from support.fake_upstream import FakeUpstream, fake_upstream
from support.processes import ROOT, clean_environment, our_proxy, proxy_environment

SERVE = """
import asyncio, os, sys
import flagsvc.cli.proxy, flagsvc.process.serve
from flagsvc import create_app
from flagsvc.settings.load import load

async def live():
    async with create_app(load(os.environ, None, {}).options) as app:
        await app.ready(20)
        assert "1 toggle" in str(app.greeting()), app.greeting()

asyncio.run(live())
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""
NEEDLESS = {
    *("httpx", "httpcore", "h11", "anyio", "idna"),  # the upstream is spoken to over httptools
    *("sqlalchemy", "alembic", "psycopg", "rich", "yaml", "tomllib"),  # the flag server, other commands, files
    *("re2", "offapi", "certifi", "prometheus_client"),  # a pattern, the page with the documentation, https, a scrape
    "redis",  # a storage on a server
}
MOST_MB = 50


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    """What benchmarks/documents.py defines."""
    return runpy.run_path(str(ROOT / "benchmarks" / "documents.py"))


def test_what_a_proxy_does_not_import(tmp_path: Path) -> None:
    """Synchronised with an upstream over http, it has loaded nothing that only other jobs need."""
    with fake_upstream({"version": 2, "features": [{"name": "first", "enabled": True}]}) as upstream:
        env = clean_environment(tmp_path) | proxy_environment(upstream.url, 0, {})
        done = subprocess.run(
            [sys.executable, "-c", SERVE], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "httptools" in loaded and not loaded & NEEDLESS


def test_the_memory_of_a_proxy_with_a_thousand_flags(documents: dict[str, Any]) -> None:
    """Under 50 MB resident, after answers to many different users."""
    if sys.platform != "linux":
        needs.missing("/proc tells how much memory a process has")
    upstream: FakeUpstream
    with fake_upstream(documents["document"](1000)) as upstream, our_proxy(upstream.url) as proxy:
        for user in range(200):
            assert len(proxy.toggles(f"?userId={user}&properties[region]=eu-west")) > 300
        status = Path(f"/proc/{proxy.program.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        assert found is not None and int(found[1]) / 1024 < MOST_MB
