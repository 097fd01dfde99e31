"""Our proxy mounted in another application, or an empty application, under uvicorn with its own protocol.

`python mounted.py PORT proxy`, or `python mounted.py PORT empty ANSWER`. ANSWER is a JSON list: the header fields of each answer,
and the bytes of its body. So the empty one writes what the proxy writes, and what it costs is uvicorn's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from flagsvc import create_app
from flagsvc.settings.load import load

PREFIX = "/flags"

Application = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


def empty() -> Application:
    """Return an application that answers every request alike, and reads nothing of it."""
    fields, size = json.loads(sys.argv[3])
    headers = [(name.encode(), value.encode()) for name, value in fields]
    body = b" " * size

    async def same(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    return same


def with_proxy() -> Application:
    """Return an application that has the proxy below a prefix, as frameworks mount one."""
    proxy = create_app(load(os.environ, None, {}).options)

    async def parent(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await proxy(scope, receive, send)
        elif scope["path"].startswith(PREFIX):
            await proxy({**scope, "root_path": scope.get("root_path", "") + PREFIX}, receive, send)
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return parent


APPLICATIONS: dict[str, Callable[[], Application]] = {"proxy": with_proxy, "empty": empty}


def main() -> None:
    """Serve until stopped."""
    config = uvicorn.Config(
        APPLICATIONS[sys.argv[2]](),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="error",
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
