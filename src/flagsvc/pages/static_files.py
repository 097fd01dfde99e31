"""The files of pages. A path has a digest of the content, so that a browser keeps the file for ever and still gets a new one."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from flagsvc.http.compression import gzip

FOLDER: Final = "static"
DIGEST_CHARACTERS: Final = 16
MEDIA: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
"""Media type by the end of the name."""


class StaticFile(NamedTuple):
    """A file: `address` is its path below that of the files, `tag` its entity tag."""

    address: str
    media: bytes
    tag: bytes
    body: bytes
    gzipped: bytes


class StaticFiles:
    """All files, read once. Raises KeyError for one of no kind that MEDIA has."""

    def __init__(self) -> None:
        self._files: dict[str, StaticFile] = {}
        for each in files(__package__).joinpath(FOLDER).iterdir():
            media = MEDIA[each.name[each.name.rfind(".") :]]
            self._files[each.name] = _read(each.name, media, each.read_bytes())

    def find(self, digest: str, name: str) -> StaticFile | None:
        """Return the file of an address; None if there is none, or another version."""
        found = self._files.get(name)
        return found if found is not None and found.address == f"{digest}/{name}" else None

    def address(self, name: str) -> str:
        """Return the address of a file. Raises KeyError without one."""
        return self._files[name].address


def _read(name: str, media: bytes, body: bytes) -> StaticFile:
    digest = sha256(body).hexdigest()[:DIGEST_CHARACTERS]
    return StaticFile(f"{digest}/{name}", media, f'"{digest}"'.encode(), body, gzip(body))
