"""The files in `static/` that others have written. A test computes the digests; CONTRIBUTING.md says how to renew a file."""

from __future__ import annotations

from typing import Final, NamedTuple


class Vendored(NamedTuple):
    """A file: its name with its version, the npm package and the path in it, its licence, and its SHA-384 in base64."""

    name: str
    package: str
    path: str
    licence: str
    sha384: str


VENDORED: Final = (
    Vendored(
        "htmx-4.0.1.min.js",
        "htmx.org@4.0.1",
        "dist/htmx.min.js",
        "0BSD",
        "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
    ),
)
