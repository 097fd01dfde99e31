"""The theme of pages: what a person has chosen, in a cookie. The server writes the theme into each page, so that none flashes."""

from __future__ import annotations

from typing import Final

from flagsvc.http.answers import Answer
from flagsvc.pages.forms import Form
from flagsvc.pages.headers import make_cookie, read_cookie
from flagsvc.pages.site import redirect
from flagsvc.pages.templates import SYSTEM, THEMES

COOKIE_NAME: Final = "flagsvc-theme"
KEPT_S: Final = 365 * 86_400
"""Seconds for which a browser keeps the choice."""


def theme_of(cookies: bytes | None) -> str:
    """Return the theme in a Cookie header; that of the system without a known theme."""
    chosen = read_cookie(cookies, COOKIE_NAME)
    return chosen if chosen in THEMES else SYSTEM


def choose_theme(form: Form, pages: str) -> Answer:
    """Return the redirect back to a page below `pages`, with the cookie of the theme that a form chooses."""
    chosen, back = form.text("theme"), form.text("back")
    seconds = KEPT_S if chosen in THEMES and chosen != SYSTEM else 0
    is_own = back.startswith(f"{pages}/") and back.isascii() and back.isprintable()
    cookie = make_cookie(COOKIE_NAME, chosen if seconds else "", pages, seconds, "Lax")
    return redirect(back if is_own else pages, cookie)
