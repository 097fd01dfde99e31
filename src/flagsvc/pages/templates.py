"""Templates and files of pages, and the frame of every page: its place, its sections, and who is signed in.

Every value is escaped, and a name that a page does not have is an error. The path of a file has a digest of its content, so that a
browser keeps the file for ever and still gets a new one.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined

from flagsvc.core.direction import isolate, isolate_quoted
from flagsvc.http.compression import gzip
from flagsvc.pages.charts import draw_picture
from flagsvc.pages.forms import EXACT, as_area, as_line
from flagsvc.pages.times import in_full, in_words, read_moment

FOLDER: Final = "templates"

DATA_SUFFIX = ".json"
"""The address of a page with this at its end gives the page's data."""


class Templates:
    """Renders the templates of a package, over the shared ones of this package. `static` returns the address of a file.

    All are read once, so that a process has its own pages also after an upgrade of the package. A template is compiled when it is
    first needed, or by `load`.
    """

    def __init__(self, package: str, static: Callable[[str], str]) -> None:
        self._environment = Environment(
            loader=DictLoader(read_templates(__package__) | read_templates(package)),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals |= FUNCTIONS | {"static": static}
        self._environment.filters |= {
            "segment": segment,
            "isolate": isolate_value,
            "isolate_quoted": isolate_quoted,
            "isolated": isolated,
            "initials": initials,
            "by_name": by_name,
        }

    def render(self, name: str, **values: Any) -> bytes:
        """Return a page as HTML. Raises jinja2.UndefinedError for a name that is missing."""
        with showing(values):
            return self._environment.get_template(name).render(values).encode("utf-8", "replace")

    def load(self) -> None:
        """Compile every template now, so that no request waits for it: about 7 ms each."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def pieces(self, name: str, **values: Any) -> Iterator[str]:
        """Give the same text in pieces. The work for a piece is done when it is taken."""
        SHOWN.set(values["frame"])  # of the task that makes the page alone
        return self._environment.get_template(name).generate(values)


def read_templates(package: str) -> dict[str, str]:
    """Return the text of every template of a package by its name."""
    return {each.name: each.read_text(encoding="utf-8") for each in files(package).joinpath(FOLDER).iterdir()}


def segment(text: str) -> str:
    """Return a text as one segment of a path. A `.json` at its end belongs to the text, and not to the address of the data."""
    quoted = quote(text, safe="", errors="surrogatepass")
    return f"{quoted.removesuffix(DATA_SUFFIX)}%2Ejson" if quoted.endswith(DATA_SUFFIX) else quoted


def by_name(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return rows by their names."""
    return {each["name"]: each for each in rows}


def isolate_value(value: object) -> str:
    """Return a value as a text for a sentence, a title or an option: it changes the direction of nothing around it."""
    return "" if value is None else isolate(str(value))


WORDS: Final = re.compile(r"[^\W_]+")


def initials(name: str) -> str:
    """Return the first letters of the first two words of a name, for an avatar. Without a letter or digit, return `?`."""
    return "".join([each[0] for each in WORDS.findall(name.partition("@")[0])[:2]]).upper() or "?"


class Html(str):
    """A text that is HTML already, so that no template escapes it again."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def isolated(summary: str) -> Html:
    """Return a sentence with the names between two `**` isolated, so that no name changes the direction of the others."""
    parts = [html.escape(each) for each in summary.split("**")]
    return Html("".join(f"<bdi>{each}</bdi>" if at % 2 else each for at, each in enumerate(parts)))


def make_exact(name: str, value: str | None, at: int = 0, *, lines: bool = False) -> Html:
    """Return a hidden field with the exact text of a field that changes on its way through a browser; else nothing.

    `at` is the place of the field among those of its name. `lines` tells a field of several lines.
    """
    text = value or ""
    if text == text.strip() == (as_area(text) if lines else as_line(text)):
        return Html()
    shown, exact = (html.escape(each) for each in (EXACT.format(at, name), json.dumps(text)))
    return Html(f'<input type="hidden" name="{shown}" value="{exact}">')


class Section(NamedTuple):
    """A section of the pages, for the navigation: its title, its path below the path of the pages, and the name of its icon.

    `covers` are parts of the paths of further pages in it.
    """

    title: str
    path: str
    icon: str = ""
    covers: tuple[str, ...] = ()


class Notice(NamedTuple):
    """What was just done, as sentences, with the way back.

    `undo` is the address that takes it back, empty where nothing does; `obstacle` says why this user may not. `asks` tells that
    the way back needs a confirmation. `back` is the page to return to. `arrival` tells where the change is; None for a change of no
    flag.
    """

    sentences: tuple[str, ...]
    undo: str = ""
    obstacle: str = ""
    asks: bool = False
    back: str = ""
    arrival: Mapping[str, Any] | None = None


SYSTEM: Final = "system"
THEMES: Final = (SYSTEM, "light", "dark")
"""What a person may choose. The theme of the system is what the browser prefers."""


class Frame(NamedTuple):
    """What is around a page: the path of the pages, of their files and of this page, who is signed in, and the sections.

    `who` is a name, and empty where pages need no sign-in; `role` says what that person may do. `theme` is one of `themes`.
    `palette` is the path of the palette; empty without one. `stream` is the path of the events for live pages; empty for those who
    may not have them. `alive` is the path that tells whether the viewer is still signed in; empty for those who are not. `notice`
    tells what was done before this page was shown.
    `now` is the moment in seconds since the epoch. `may_ever` tells whether the viewer has a permission anywhere: what
    needs another one is not offered.
    """

    pages: str
    files: str
    path: str
    who: str
    sections: tuple[Section, ...]
    stream: str = ""
    alive: str = ""
    notice: Notice | None = None
    role: str = ""
    theme: str = SYSTEM
    themes: tuple[str, ...] = THEMES
    palette: str = ""
    now: float = 0.0
    may_ever: Callable[[str], bool] = lambda permission: True

    @property
    def section(self) -> Section | None:
        """Return the first section that this page is in; None for a page of none."""
        place = self.path.removeprefix(self.pages)
        return next((each for each in self.sections if any(part in place for part in (each.path, *each.covers))), None)


NOWHERE: Final = Frame("", "", "", "", ())
SHOWN: Final[ContextVar[Frame]] = ContextVar("frame")
"""The frame of the page that is made now, for parts of templates that get no frame."""


@contextmanager
def showing(values: Mapping[str, Any]) -> Iterator[None]:
    """Have the functions of templates work for the page of these values."""
    token = SHOWN.set(values.get("frame", NOWHERE))
    try:
        yield
    finally:
        SHOWN.reset(token)


def words_of_moment(text: str) -> str:
    """Return how far the moment of an ISO text is from the page's."""
    return in_words(read_moment(text), datetime.fromtimestamp(SHOWN.get(NOWHERE).now, UTC))


def text_of_moment(text: str) -> str:
    return in_full(read_moment(text))


def may_ever(permission: str) -> bool:
    """Return whether the viewer of the page has a permission anywhere."""
    return SHOWN.get(NOWHERE).may_ever(permission)


FUNCTIONS: Final = {
    "draw_picture": draw_picture,
    "exact": make_exact,
    "in_words": words_of_moment,
    "in_full": text_of_moment,
    "may_ever": may_ever,
    "zip": zip,
}
"""What every template may call."""


def line_points(values: Sequence[float], height: int) -> str:
    """Return the points of a line: the values one beside the other, the largest one at the top of `height`."""
    highest = max(values, default=0) or 1
    return " ".join([f"{at},{height - each / highest * height:.1f}" for at, each in enumerate(values)])


FILES_FOLDER: Final = "static"
DIGEST_CHARACTERS: Final = 16
MEDIA: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
"""Media type by the end of the name."""


class StaticFile(NamedTuple):
    """A file: `address` is its path below the path of the files, `tag` its entity tag."""

    address: str
    media: bytes
    tag: bytes
    body: bytes
    gzipped: bytes


class StaticFiles:
    """All files, read once. Raises KeyError for one of no kind that MEDIA has."""

    def __init__(self) -> None:
        self._files: dict[str, StaticFile] = {}
        for each in files(__package__).joinpath(FILES_FOLDER).iterdir():
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
