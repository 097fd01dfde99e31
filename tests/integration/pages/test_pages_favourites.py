"""Favourites on pages: the star in the list and on the page of a flag, and the list with favourites first."""

from __future__ import annotations

from typing import Any

from support.flagservers import VIEWER_SECRET, AppClient
from support.page_forms import Visitor

GIVEN: dict[str, Any] = {"features": [{"name": name} for name in ("a", "b", "c")]}


def names(visitor: Visitor, query: str = "") -> list[str]:
    """Return the list, a favourite with a mark."""
    return [f"{each['name']}{'*' if each['favorite'] else ''}" for each in visitor.data(f"/flags{query}")["flags"]]


def test_a_star(client: AppClient) -> None:
    """It is a button that tells whether it is pressed; a press goes back to the list or to the flag. Others see no star."""
    visitor, other = Visitor(client), Visitor(client, VIEWER_SECRET)
    page = visitor.see("/flags?q=b").text
    assert 'aria-pressed="false" formaction="/ui/flags/b/favourite/on" form="switches"' in page
    answer = visitor.send("/flags/b/favourite/on", back="/flags?q=b")
    assert (answer.status, answer.headers["location"]) == (303, "/ui/flags?q=b")
    for path in ("/flags?q=b", "/flags/b"):
        assert 'aria-pressed="true" formaction="/ui/flags/b/favourite/off"' in visitor.see(path).text
        assert 'formaction="/ui/flags/b/favourite/on"' in other.see(path).text
    assert (names(visitor), names(other)) == (["b*", "a", "c"], ["a", "b", "c"])
    assert visitor.send("/flags/b/favourite/off", back="//evil.example").headers["location"] == "/ui/flags"
    assert names(visitor) == ["a", "b", "c"]
    assert visitor.send("/flags/nosuch/favourite/on").status == 404


def test_favourites_first(client: AppClient) -> None:
    """They are first, in each order, until somebody chooses otherwise in this browser. Without favourites there is no choice."""
    visitor = Visitor(client)
    assert visitor.data("/flags")["favourites"] is None and "Favourites first" not in visitor.see("/flags").text
    visitor.send("/flags/c/favourite/on")
    assert names(visitor) == ["c*", "a", "b"] and visitor.data("/flags")["favourites"] is True
    answer = visitor.send("/favourites", first="no", back="/flags?q=")
    assert (answer.status, answer.headers["location"]) == (303, "/ui/flags?q=")
    session, visitor.cookie = visitor.cookie, f"{visitor.cookie}; {answer.headers['set-cookie'].partition(';')[0]}"
    assert names(visitor) == ["a", "b", "c*"] and visitor.data("/flags")["favourites"] is False
    again = visitor.send("/favourites", first="yes").headers["set-cookie"]
    assert "Max-Age=0" in again
    visitor.cookie = session
    assert names(visitor) == ["c*", "a", "b"]
