"""The proxy inside a FastAPI application, under /flags: `uvicorn --factory mount_fastapi:application` in this folder.

The options come from the environment (FLAGSVC_URL, FLAGSVC_API_TOKEN, FLAGSVC_PROXY_CLIENT_KEYS); see
docs/how-to/mount-in-an-application.md.
"""

from __future__ import annotations

import os

from fastapi import FastAPI

from flagsvc import ProxyOptions, create_app
from flagsvc.settings.load import load


def application(options: ProxyOptions | None = None) -> FastAPI:
    """Return an application with a route of its own and the proxy beside it."""
    proxy = create_app(options or load(os.environ, None, {}).options)
    app = FastAPI(lifespan=proxy.lifespan)  # starts and stops the proxy together with the application
    app.mount("/flags", proxy)

    @app.get("/")
    async def index() -> dict[str, str]:
        return {"flags": "/flags/proxy"}

    return app
