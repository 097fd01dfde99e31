"""The first steps on the list of flags: what is done, where each step leads, who sees them, and hiding them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete

from flagsvc.server.store.resources.applications import Registration, register
from flagsvc.server.store.schema import tokens
from support.flagservers import EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient
from support.page_forms import Visitor

FLAGS = "/api/admin/projects/default/features"


def prepare(client: AppClient) -> None:
    """Delete the tokens of the scene that are for clients."""
    with client.server.store.writing(None) as tx:
        tx.db.execute(delete(tokens).where(tokens.c.kind.in_(("backend", "frontend"))))


def create_flag(client: AppClient) -> None:
    client.post(FLAGS, {"name": "a.json"})


def archive_flag(client: AppClient) -> None:
    create_flag(client)
    client.delete(f"{FLAGS}/a.json")


def create_token(client: AppClient) -> None:
    client.post("/api/admin/api-tokens", {"tokenName": "web", "type": "frontend"})


def report(client: AppClient) -> None:
    with client.server.store.writing(None) as tx:
        register(tx, [Registration("billing", "development")])


@pytest.mark.parametrize(
    ("done", "expected", "leads"),
    [
        ((), [False, False, False], ["/new-flag", "/tokens/new", ""]),
        ((create_flag,), [True, False, False], ["/new-flag", "/tokens/new", "/flags/a%2Ejson"]),
        ((archive_flag,), [False, False, False], ["/new-flag", "/tokens/new", ""]),
        ((create_token,), [False, True, False], ["/new-flag", "/tokens/new", ""]),
        ((create_flag, report), [True, False, True], ["/new-flag", "/tokens/new", "/flags/a%2Ejson"]),
    ],
)
def test_what_is_done(client: AppClient, done: Any, expected: list[bool], leads: list[str]) -> None:
    """A step is done when the server has what the step makes. What is not done leads to its page, and to no other page."""
    for each in done:
        each(client)
    visitor = Visitor(client)
    assert visitor.data("/flags")["first_steps"] == [
        {"done": is_done, "path": path} for is_done, path in zip(expected, leads, strict=True)
    ]
    card = visitor.see("/flags").text.partition('<section class="card pad first-steps"')[2].partition("</section>")[0]
    assert card.count('<li class="ticked">') == card.count(": done") == sum(expected)
    for is_done, path in zip(expected, leads, strict=True):
        assert (f'href="/ui{path}"' in card) is (bool(path) and not is_done)


def test_all_is_done(client: AppClient) -> None:
    """A server that has all three shows no card."""
    for each in (create_flag, create_token, report):
        each(client)
    visitor = Visitor(client)
    assert visitor.data("/flags")["first_steps"] == [] and "First steps" not in visitor.see("/flags").text


@pytest.mark.parametrize(("secret", "number"), [(USER_SECRET, 3), (EDITOR_SECRET, 3), (VIEWER_SECRET, 0)])
def test_who_sees_them(client: AppClient, secret: str, number: int) -> None:
    """Who may create no flag sees no card."""
    assert len(Visitor(client, secret).data("/flags")["first_steps"]) == number


def test_hiding_them(client: AppClient) -> None:
    """The card stays away in the browser where somebody has hidden it, and in no other browser."""
    visitor = Visitor(client)
    answer = visitor.send("/first-steps/hide")
    assert (answer.status, answer.headers["location"]) == (303, "/ui/flags")
    visitor.cookie = f"{visitor.cookie}; {answer.headers['set-cookie'].partition(';')[0]}"
    assert visitor.data("/flags")["first_steps"] == []
    assert len(Visitor(client).data("/flags")["first_steps"]) == 3
