"""What else is kept on the server: a row for each of the pages that are not in the menu."""

from __future__ import annotations

from typing import NamedTuple

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.page import page


class Setting(NamedTuple):
    """A page below the settings: its title, its path below the pages, and what it is for."""

    title: str
    path: str
    words: str


SETTINGS: tuple[Setting, ...] = (
    Setting("Compare", "/compare", "Two environments side by side, and copying flags from one to the other."),
    Setting("Import", "/import", "Import flags from a file or a text, after a look at what changes."),
    Setting("Export", "/export", "Save flags of an environment as a file that can be imported."),
    Setting("My tokens", "/my-tokens", "Your personal tokens: make one, delete one."),
    Setting("My sessions", "/sessions", "Where you are signed in, and ending it."),
    Setting("People", "/people", "The users, their root roles and sessions. It needs the permission ADMIN."),
    Setting("Projects", "/projects", "Make projects, and change their environments and members."),
    Setting("Environments", "/environments", "Make, order, switch and delete environments."),
    Setting(
        "Context fields", "/context-fields", "What conditions compare: make fields, and change their legal values."
    ),
    Setting("Tag types", "/tag-types", "Make, change and delete the types of tags."),
    Setting("Webhooks", "/webhooks", "Send events to a program of yours: which, where to, and what was sent."),
    Setting("Strategy types", "/strategy-types", "Custom strategies and their parameters; deprecate a strategy type."),
)


def show(call: ApiCall) -> ApiAnswer:
    """Return the pages below the settings."""
    return ApiAnswer({"settings": [each._asdict() for each in SETTINGS]})


ROUTES = (page("/settings", show, "settings.html", "What else is kept on the server."),)
