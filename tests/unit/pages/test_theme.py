"""The theme of pages: what its cookie says, and where a choice leads to."""

from __future__ import annotations

import pytest

from flagsvc.pages.forms import Form
from flagsvc.pages.templates import initials
from flagsvc.pages.theme import choose_theme, theme_of


@pytest.mark.parametrize(
    ("cookies", "theme"),
    [
        (None, "system"),
        (b"flagsvc-theme=dark", "dark"),
        (b"a=b; flagsvc-theme=light", "light"),
        (b'flagsvc-theme="><script>', "system"),
        (b"flagsvc-theme=", "system"),
    ],
)
def test_only_a_known_theme_counts(cookies: bytes | None, theme: str) -> None:
    """A page has the theme of the cookie, if there is such a theme, and that of the system otherwise."""
    assert theme_of(cookies) == theme


@pytest.mark.parametrize(
    ("theme", "cookie"),
    [
        ("dark", "flagsvc-theme=dark; Path=/base/ui; Max-Age=31536000; HttpOnly; SameSite=Lax"),
        ("system", "flagsvc-theme=; Path=/base/ui; Max-Age=0; HttpOnly; SameSite=Lax"),
        ("pink; Path=/", "flagsvc-theme=; Path=/base/ui; Max-Age=0; HttpOnly; SameSite=Lax"),
    ],
)
def test_a_choice_is_kept(theme: str, cookie: str) -> None:
    """A browser keeps a chosen theme for a year, and nothing for that of the system or an unknown theme."""
    answer = choose_theme(Form(theme=[theme], back=["/base/ui/flags"]), "/base/ui")
    assert dict(answer.headers)[b"set-cookie"].decode() == cookie


@pytest.mark.parametrize(
    ("back", "place"),
    [
        ("/base/ui/flags/a%20b", "/base/ui/flags/a%20b"),
        ("https://elsewhere.example/base/ui/", "/base/ui"),
        ("//elsewhere.example", "/base/ui"),
        ("/base/ui/\nset-cookie: a=b", "/base/ui"),
        ("", "/base/ui"),
    ],
)
def test_a_choice_leads_back_to_a_page(back: str, place: str) -> None:
    """A choice leads back to the page of the form; any other address leads to the first page."""
    assert dict(choose_theme(Form(theme=["dark"], back=[back]), "/base/ui").headers)[b"location"].decode() == place


@pytest.mark.parametrize(
    ("name", "letters"),
    [("Ana Marin", "AM"), ("ada", "A"), ("jo.lind@example.com", "JL"), ("ci-bot 2", "CB"), ("", "?"), ("…", "?"), ("Émile", "É")],
)
def test_an_avatar_has_the_first_letters_of_a_name(name: str, letters: str) -> None:
    """An avatar shows the first letters of the first two words, without the domain of an address."""
    assert initials(name) == letters
