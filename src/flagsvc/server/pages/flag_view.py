"""How somebody sees the list of flags: which environments, and how dense. The browser keeps it in a cookie.

A browser loses a cookie of more than 4,096 bytes without a word, so the cookie has short digests of names, and so many at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE
from flagsvc.pages.headers import keep_choice, read_cookie
from flagsvc.pages.site import redirect
from flagsvc.server.api.authorization import PAGES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.page import change
from flagsvc.server.pages.sign_in import local_page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import bad_data
from flagsvc.server.store.resources import environments

COOKIE_NAME: Final = "flagsvc-list"
DENSE, ROOMY = "dense", "roomy"
MANY: Final = 6
"""More environments than these are shown in dense rows."""
DIGEST_BYTES: Final = 4
MOST_HIDDEN: Final = 400
"""The most environments that a browser hides: their digests fit into a cookie."""
TOO_MANY: Final = f"A browser can hide {MOST_HIDDEN} environments, and these are {{}}. Tick more environments."


class View(NamedTuple):
    """Which environments are not shown, by digests of their names, and whether rows are dense. A new environment is shown."""

    hidden: frozenset[str] = frozenset()
    dense: bool = False


def read_view(call: ApiCall) -> View:
    """Return what the browser keeps; everything for one that keeps nothing."""
    kept = read_cookie(call.head.other(COOKIE), COOKIE_NAME)
    density, *hidden = kept.split("/")
    return View(frozenset(hidden), density == DENSE)


def digest_of(name: str) -> str:
    """Return what the cookie has of an environment."""
    return blake2b(name.encode(), digest_size=DIGEST_BYTES).hexdigest()


def show_environments(view: View, known: Sequence[Json]) -> list[Json]:
    """Return the environments that are shown: all if each is hidden."""
    return [each for each in known if digest_of(each["name"]) not in view.hidden] or list(known)


def keep_view(call: ApiCall) -> Answer:
    """Let the browser keep which environments are ticked, and whether rows are dense; go back to the list.

    Raises CallerError (400) for more hidden environments than a browser keeps.
    """
    shown = call.form.texts("shown")
    with call.store.reading() as tx:
        hidden = [each["name"] for each in environments.list_plain(tx) if each["name"] not in shown]
    if len(hidden) > MOST_HIDDEN:
        raise bad_data(TOO_MANY.format(len(hidden)))
    kept = "/".join([DENSE if call.form.has(DENSE) else ROOMY, *map(digest_of, hidden)])
    pages = f"{call.root}{PAGES}"
    place = local_page(call.form.text("back"))
    return redirect(f"{pages}{place}", keep_choice(COOKIE_NAME, kept, pages))


ROUTES = (change("/list-view", keep_view, reads=True, summary="Keep how the list of flags is seen."),)
