"""The pages of one product: a page, the page of an error, a redirect, a file, and the way to them.

A page is an Answer whose body are its values. The same values, as JSON, are its data, at the same address with `.json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flagsvc.http.answers import Answer
from flagsvc.http.messages import HTML
from flagsvc.pages.headers import FILE_HEADERS, PAGE_HEADERS
from flagsvc.pages.templates import Frame, Section, StaticFiles, Templates

SEE_OTHER: Final = 303
HTML_HEADERS: Final = (*PAGE_HEADERS, (b"content-type", HTML))


class Site:
    """The templates of a package over the shared ones, the files, and the sections of the navigation.

    `home` is where the page of an error leads to.
    """

    def __init__(self, package: str, home: Section, *sections: Section) -> None:
        self.home = home
        self.files = StaticFiles()
        self.templates = Templates(package, self.files.address)
        self.sections = sections

    def frame(self, pages: str, path: str, who: str, theme: str, *, role: str = "", live: bool, now: float = 0.0) -> Frame:
        """Return what is around the page at `path`. `pages` is the path of all pages; `live` tells whether it may have events.

        `now` is the moment in seconds since the epoch.
        """
        stream, alive = (f"{pages}/stream", f"{pages}/alive") if live else ("", "")
        return Frame(pages, f"{pages}/static", path, who, self.sections, stream, alive, None, role, theme, now=now)

    def error(
        self,
        frame: Frame,
        status: int,
        message: str,
        headers: Sequence[tuple[bytes, bytes]] = (),
        *,
        details: Sequence[str] = (),
        permissions: Sequence[str] = (),
        typed: Sequence[tuple[str, str]] | None = None,
    ) -> Answer:
        """Return the page of an error. The caller needs any of the `permissions`.

        `typed` are the names and values of a form that can be sent again after signing in; None for no form.
        """
        values: dict[str, Any] = {
            "home": self.home,
            "status": status,
            "message": message,
            "details": details,
            "permissions": permissions,
            "typed": typed,
        }
        return Answer(self.templates.render("error.html", frame=frame, **values), status, (*headers, *HTML_HEADERS))

    def file(self, digest: str, name: str) -> Answer | None:
        """Return a file; None for an unknown one, or another version of it."""
        found = self.files.find(digest, name)
        if found is None:
            return None
        headers = (*FILE_HEADERS, (b"content-type", found.media))
        return Answer(found.body, headers=headers, gzipped=found.gzipped, tag=found.tag)


def redirect(address: str, *headers: tuple[bytes, bytes]) -> Answer:
    """Return a redirect; browsers ask for the address with GET."""
    return Answer(None, SEE_OTHER, ((b"location", address.encode()), *headers, *PAGE_HEADERS))
