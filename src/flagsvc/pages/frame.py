"""What is around every page: its place, its sections, and who is signed in."""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    """A section of the pages, for the navigation: its title, and its path below that of the pages."""

    title: str
    path: str


class Notice(NamedTuple):
    """What was just done, as sentences, with the way back.

    `undo` is the address that takes it back, empty where nothing does; `obstacle` says why this user may not. `asks` tells that
    the way back asks first. `back` is the page to return to.
    """

    sentences: tuple[str, ...]
    undo: str = ""
    obstacle: str = ""
    asks: bool = False
    back: str = ""


class Frame(NamedTuple):
    """What is around a page: the path of the pages, of their files and of this page, who is signed in, and the sections.

    `who` is empty where pages need no sign-in. `stream` is the path of the events for live pages; empty for those who may not have
    them. `notice` tells what was done before this page was shown.
    """

    pages: str
    files: str
    path: str
    who: str
    sections: tuple[Section, ...]
    stream: str = ""
    notice: Notice | None = None
