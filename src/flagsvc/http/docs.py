"""The interactive page and its files, all from our own origin (specification: GET /docs/openapi; behaviour: Documentation page).

The bundle is Swagger UI's, from the package `offapi`. The page runs under a Content-Security-Policy that names no other origin
and allows no inline script: a small file of our own starts the bundle. Every link is relative, so that base path and mount
do not matter.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import msgspec

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.proxy.api.answers import ASK_AGAIN, HTML, JSON, Answers
from flagsvc.proxy.api.openapi import document
from flagsvc.proxy.api.settings import ServiceSettings

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SAFE = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
SCRIPT = b"text/javascript; charset=utf-8"
STYLE = b"text/css; charset=utf-8"
TYPES = {".js": SCRIPT, ".css": STYLE}

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{files}swagger_style.css">
<link rel="stylesheet" href="{files}page.css">
</head>
<body>
<noscript>The endpoints are described in <a href="{document}">openapi.json</a>.</noscript>
<div id="endpoints" data-document="{document}"></div>
<script src="{files}swagger_bundle.js"></script>
<script src="{files}init.js"></script>
</body>
</html>
"""
INIT = """"use strict";
const place = document.getElementById("endpoints");
SwaggerUIBundle({
  domNode: place,
  url: new URL(place.dataset.document, window.location.href).href,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  validatorUrl: null,
});
"""
PAGE_STYLE = "body { margin: 0; }\n"
WRITTEN = {"init.js": INIT, "page.css": PAGE_STYLE}
BUNDLED = ("swagger_bundle.js", "swagger_style.css")


class OpenApi(Handler):
    """GET /docs/openapi.json."""

    def __init__(self, settings: ServiceSettings, answers: Answers) -> None:
        self.settings = settings
        self.answers = answers
        self.shape = answers.shape(JSON, ASK_AGAIN)
        self.made: tuple[bytes, bytes] = (b"", b"")

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the document for the place the application is mounted at; the last one is kept."""
        root = call.request.root
        if not self.made[1] or self.made[0] != root:
            self.made = (root, msgspec.json.encode(document(self.settings, quote(root))))
        return self.answers.seal(self.shape, call, self.made[1])


class DocsPage(Handler):
    """GET /docs/openapi, with or without a slash at the end."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.shape = answers.shape(HTML, ASK_AGAIN, SAFE)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the page."""
        return self.answers.seal(self.shape, call, page("flagsvc proxy: endpoints", call.request.path))


class File(Handler):
    """A file of the page."""

    def __init__(self, name: str, content: bytes, answers: Answers) -> None:
        self.answers = answers
        self.shape = answers.shape(TYPES[Path(name).suffix], ASK_AGAIN, SAFE)
        self.content = content

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the file."""
        return self.answers.seal(self.shape, call, self.content)


def page(title: str, path: bytes) -> bytes:
    """Return the page as it stands at a path, with or without a slash at the end."""
    slashed = path.endswith(b"/")
    places = {"files": "" if slashed else "openapi/", "document": "../openapi.json" if slashed else "openapi.json"}
    return PAGE.format(title=title, **places).encode()


def contents() -> dict[str, bytes]:
    """Return the page's files by name. The package is found, not imported: importing it reads megabytes."""
    found = find_spec("offapi")
    folder = Path(str(found.origin)).parent if found is not None else Path()
    bundled = {name: (folder / name).read_bytes() for name in BUNDLED}
    return bundled | {name: text.encode() for name, text in WRITTEN.items()}


def files(answers: Answers) -> dict[str, Handler]:
    """Return the handlers of the page's files by name."""
    return {name: File(name, content, answers) for name, content in contents().items()}
