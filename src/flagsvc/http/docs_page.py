"""The interactive page of the OpenAPI document and its files, all from our own origin.

The bundle is Swagger UI's, from the package `offapi`. The Content-Security-Policy of the page names no other origin and allows no
inline script, so a small file of our own starts the bundle. Every link is relative, so that the page works below any base path and
mount path (specification: GET /docs/openapi; behaviour: Documentation page).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

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


def page(title: str, path: bytes) -> bytes:
    """Return the page for a path, with or without a slash at the end."""
    slashed = path.endswith(b"/")
    places = {"files": "" if slashed else "openapi/", "document": "../openapi.json" if slashed else "openapi.json"}
    return PAGE.format(title=title, **places).encode()


def contents() -> dict[str, bytes]:
    """Return the page's files by name. The package is located, but not imported, because an import reads megabytes."""
    found = find_spec("offapi")
    folder = Path(str(found.origin)).parent if found is not None else Path()
    bundled = {name: (folder / name).read_bytes() for name in BUNDLED}
    return bundled | {name: text.encode() for name, text in WRITTEN.items()}
