"""The theme of pages: what a person has chosen, in a cookie. The server writes the theme into each page, so that none flashes."""

from __future__ import annotations

from typing import Final

from flagsvc.http.answers import Answer
from flagsvc.pages.forms import Form
from flagsvc.pages.headers import keep_choice, read_cookie
from flagsvc.pages.site import redirect
from flagsvc.pages.templates import SYSTEM, THEMES

COOKIE_NAME: Final = "flagsvc-theme"


def theme_of(cookies: bytes | None) -> str:
    """Return the theme in a Cookie header; that of the system without a known theme."""
    chosen = read_cookie(cookies, COOKIE_NAME)
    return chosen if chosen in THEMES else SYSTEM


def choose_theme(form: Form, pages: str) -> Answer:
    """Return the redirect back to a page below `pages`, with the cookie of the theme that a form chooses."""
    chosen, back = form.text("theme"), form.text("back")
    is_own = back.startswith(f"{pages}/") and back.isascii() and back.isprintable()
    kept = chosen if chosen in THEMES and chosen != SYSTEM else ""
    return redirect(back if is_own else pages, keep_choice(COOKIE_NAME, kept, pages))
