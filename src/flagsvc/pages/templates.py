"""Templates of pages. Every value is escaped, and a name that a page does not have is an error."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined

from flagsvc.pages.forms import EXACT, as_area, as_line

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
        self._environment.globals["static"] = static
        self._environment.globals["exact"] = make_exact
        self._environment.filters["segment"] = segment

    def render(self, name: str, **values: Any) -> bytes:
        """Return a page as HTML. Raises jinja2.UndefinedError for a name that is missing."""
        return self._environment.get_template(name).render(values).encode()

    def load(self) -> None:
        """Compile every template now, so that no request waits for it: about 7 ms each."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def pieces(self, name: str, **values: Any) -> Iterator[str]:
        """Give the same text in pieces. The work for a piece is done when it is taken."""
        return self._environment.get_template(name).generate(values)


def read_templates(package: str) -> dict[str, str]:
    """Return the text of every template of a package by its name."""
    return {each.name: each.read_text(encoding="utf-8") for each in files(package).joinpath(FOLDER).iterdir()}


def segment(text: str) -> str:
    """Return a text as one segment of a path. A `.json` at its end belongs to the text, and not to the address of the data."""
    quoted = quote(text, safe="", errors="surrogatepass")
    return f"{quoted.removesuffix(DATA_SUFFIX)}%2Ejson" if quoted.endswith(DATA_SUFFIX) else quoted


class Html(str):
    """A text that is HTML already, so that no template escapes it again."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def make_exact(name: str, value: str | None, at: int = 0, *, lines: bool = False) -> Html:
    """Return a hidden field with the exact text of a field that changes on its way through a browser; else nothing.

    `at` is the place of the field among those of its name. `lines` tells a field of several lines.
    """
    text = value or ""
    if text == text.strip() == (as_area(text) if lines else as_line(text)):
        return Html()
    shown, exact = (html.escape(each) for each in (EXACT.format(at, name), json.dumps(text)))
    return Html(f'<input type="hidden" name="{shown}" value="{exact}">')
