"""The interactive page in a real browser, under its own Content-Security-Policy and without another host."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from flagsvc.http.server.asgi import AsgiApp
from support.browser import browser
from support.wirekit import in_process, open_wire

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


@pytest.mark.parametrize("path", ["/base/docs/openapi", "/base/docs/openapi/"])
def test_the_page_shows_the_endpoints(path: str) -> None:
    """The page shows every endpoint, and the browser reports no error."""
    with served(open_wire(in_process, enable_oas=True, base_path="/base").app) as address, browser() as page:
        page.go(address + path)
        for shown in ("/base/proxy", "/base/proxy/client/metrics", "/base/docs/openapi.json"):
            page.wait_for(f"!!document.querySelector('[data-path=\"{shown}\"]')")
        assert page.complaints() == []
        assert [asked for asked in page.requested() if not asked.startswith((address, "data:"))] == []


def test_the_browser_would_complain() -> None:
    """The test above relies on this: a violation of a policy is reported."""

    async def forbidden(scope: object, receive: object, send: object) -> None:
        headers = [(b"content-type", b"text/html"), (b"content-security-policy", b"default-src 'none'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"<script>1</script>"})  # type: ignore[operator]

    with served(forbidden) as address, browser() as page:  # type: ignore[arg-type]
        page.go(address)
        page.wait(page.complaints, "a complaint")
