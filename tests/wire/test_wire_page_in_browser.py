"""The interactive page in a real browser, under its own Content-Security-Policy and without another host."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from wirekit import AsgiApp, in_process, open_wire

import needs

SECONDS = 60


@contextmanager
def served(app: AsgiApp) -> Iterator[str]:
    """Serve an application on a free loopback port; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


def browse(url: str, folder: Path) -> tuple[str, str]:
    """Return the page as it stands after its scripts ran, and what the browser complained about; no other host is reachable."""
    command = [
        needs.program("chromium", "chromium-browser", "google-chrome"),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--enable-logging=stderr",
        f"--user-data-dir={folder}",
        "--virtual-time-budget=15000",
        "--dump-dom",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("path", ["/base/docs/openapi", "/base/docs/openapi/"])
def test_the_page_shows_the_endpoints(path: str, tmp_path: Path) -> None:
    """Every endpoint is there, and the browser has nothing to complain about."""
    with served(open_wire(in_process, enable_oas=True, base_path="/base").app) as address:
        page, complaints = browse(address + path, tmp_path)
    assert complaints == ""
    for shown in ("/base/proxy", "/base/proxy/client/metrics", "/base/docs/openapi.json"):
        assert f'data-path="{shown}"' in page


def test_the_browser_would_complain(tmp_path: Path) -> None:
    """What the test above relies on: a violation of a policy is seen."""

    async def forbidden(scope: object, receive: object, send: object) -> None:
        headers = [(b"content-type", b"text/html"), (b"content-security-policy", b"default-src 'none'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"<script>1</script>"})  # type: ignore[operator]

    with served(forbidden) as address:  # type: ignore[arg-type]
        assert browse(address, tmp_path)[1]
