"""Our proxy mounted in another application, under uvicorn with its own protocol: `python mounted.py PORT`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import uvicorn

from flagsvc import ProxyOptions, create_app
from flagsvc.settings.load import load

PREFIX = "/flags"


def application(options: ProxyOptions) -> Callable[..., Any]:
    """Return an ASGI application that has the proxy below a prefix, as frameworks mount one."""
    proxy = create_app(options)

    async def parent(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await proxy(scope, receive, send)
        elif scope["path"].startswith(PREFIX):
            await proxy({**scope, "root_path": scope.get("root_path", "") + PREFIX}, receive, send)
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return parent


def main() -> None:
    """Serve until stopped."""
    options = load(os.environ, None, {}).options
    config = uvicorn.Config(
        application(options),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="error",
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
