"""What all forms do alike: what the API refuses comes back with the reason; the second of two people sees what the first did."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import pytest

from support.page_forms import PageClient

F = "/api/admin/projects/default/features/a"
HOSTILE = "</textarea><script>alert(1)</script>\"'&"
BLUE = {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "userId"}
RED = BLUE | {"name": "red", "payload": {"type": "string", "value": " two\nlines "}}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "features": [{"name": "a"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}],
    "contextFields": [{"name": "plan", "legalValues": [{"value": "gold"}, {"value": "silver"}]}],
    "tagTypes": [{"name": "team"}],
}


def prepared(pages: PageClient) -> dict[str, str]:
    """Give the flag variants, a link and a strategy, make a token, and return the ids for the pages of these by name."""
    ask = pages.client.ask
    body = {"environments": ["development"], "variants": [BLUE, RED]}
    assert ask("PUT", f"{F}/variants-batch", body).status == 200
    assert ask("POST", f"{F}/link", {"url": "https://example.com/1"}).status == 204
    rollout = {"rollout": "50", "stickiness": "userId", "groupId": "a"}
    strategy = {"name": "flexibleRollout", "parameters": rollout, "variants": [BLUE, RED]}
    token = {"tokenName": "mine", "type": "client", "expiresAt": "2999-01-30T23:59:59.000Z"}
    assert ask("POST", "/api/admin/api-tokens", token).status == 201
    return {
        "link": pages.client.get(F).json()["links"][0]["id"],
        "strategy": ask("POST", f"{F}/environments/development/strategies", strategy).json()["id"],
        "token": str(max(int(each["id"]) for each in pages.data("/ui/tokens")["tokens"])),
    }


class Refused(NamedTuple):
    """A page and the end of its form, the typed fields, and the reason.

    `first` are buttons that are pressed before. `kept` are the fields that are looked at afterwards, in place of all.
    """

    page: str
    typed: dict[str, Any]
    message: str
    status: int = 400
    end: str = ""
    do: str = "save"
    first: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


OF_A_STRATEGY = {"title": HOSTILE, "c0__field": "company", "c0__values": HOSTILE}


def strategy(message: str, status: int = 400, **typed: Any) -> Refused:
    """Return a new strategy with a condition that is refused."""
    page = "/flags/a/development/strategies/new"
    return Refused(page, OF_A_STRATEGY | typed, message, status, first=("add-condition",), kept=("title",))


REFUSED: dict[str, Refused] = {
    "context field": Refused("/new-context-field", {"name": "plan", "description": HOSTILE}, "already exist", 409),
    "environment": Refused(
        "/new-environment", {"name": "development", "type": HOSTILE, "enabled": None}, 'class="problem"', 409, do=""
    ),
    "name of an environment": Refused(
        "/new-environment", {"name": HOSTILE, "type": "x", "enabled": None}, 'class="problem"', do=""
    ),
    "flag": Refused(
        "/projects/default/new-flag", {"name": "a", "description": HOSTILE}, "already exists", 409, "/new-flag"
    ),
    "scheme of a link": Refused(
        "/flags/a/edit", {"url": "javascript:1", "title": HOSTILE}, "no address of a web page", 400, "/links", ""
    ),
    "changed link": Refused(
        "/flags/a/edit", {"url": "javascript:1", "title": HOSTILE}, "no address of a web page", 400, "/links/{link}", ""
    ),
    "empty link": Refused("/flags/a/edit", {"url": "", "title": HOSTILE}, "Invalid URL", 400, "/links", ""),
    "share of a variant": Refused(
        "/flags/a/development/variants", {"v0__fixed": "on", "v0__share": "x"}, "must be a percentage"
    ),
    "name of a variant": Refused("/flags/a/development/variants", {"v0__name": "red"}, "duplicate"),
    "person without a name": Refused(
        "/people/new", {"username": "", "email": "", "name": HOSTILE}, "username or email", do=""
    ),
    "role of a person": Refused(
        "/people/new", {"username": "anna", "rootRole": "King"}, "rootRole", do="", kept=("username",)
    ),
    "no description": Refused("/my-tokens", {"description": "", "expires": "2999-01-01"}, "cannot be empty", do=""),
    "no end": Refused("/my-tokens", {"description": HOSTILE, "expires": ""}, "date-time", do=""),
    "end in the past": Refused(
        "/my-tokens", {"description": HOSTILE, "expires": "2001-01-01"}, "should be in future", do=""
    ),
    "limit of a project": Refused("/projects/shop", {"name": HOSTILE, "featureLimit": "many"}, 'role="alert"'),
    "project without a name": Refused("/projects/shop", {"name": ""}, 'role="alert"'),
    "naming pattern": Refused("/projects/shop", {"pattern": "[a-z]+", "example": "1"}, "does not match", end="/naming"),
    "large rollout": strategy("The rollout must be a whole number from 0 to 100.", rollout="101"),
    "rollout in words": strategy("The rollout must be a whole number from 0 to 100.", rollout="half"),
    "operator": strategy("operator", c0__operator="NOSUCH"),
    "segment": strategy("No segment exists with ID", 404, segment=["99"]),
    "strategy type": Refused(
        "/new-strategy-type",
        {"name": "fine", "p0__name": "", "p0__description": HOSTILE},
        "not allowed to be empty",
        first=("add-parameter",),
    ),
    "tag type": Refused(
        "/new-tag-type", {"name": "team", "description": HOSTILE, "colored": "on"}, 'class="problem"', 409, do=""
    ),
    "token without a name": Refused("/tokens/new", {"name": "", "projects": "*"}, "tokenName", kept=("name",)),
    "end of a token": Refused(
        "/tokens/new", {"name": HOSTILE, "expires": "tomorrow", "projects": "*"}, "date-time", kept=("name",)
    ),
    "end that is taken away": Refused("/tokens/{token}", {"expires": ""}, "date-time"),
    "end that is no day": Refused("/tokens/{token}", {"expires": "tomorrow"}, "date-time"),
}


def test_what_the_api_refuses(pages: PageClient) -> None:
    """The form comes back with the message and with what was typed. No text of it becomes HTML, and nothing is stored."""
    known = prepared(pages)
    before = pages.client.server.store.revision()
    for name, case in REFUSED.items():
        page, end = f"/ui{case.page}".format(**known), (case.end or case.page).format(**known)
        form = pages.form(pages.get(page), end)
        for button in case.first:
            form = pages.form(pages.press(form, button), end)
        refused = pages.press(form, case.do, **case.typed)
        assert refused.status == case.status and case.message in html.unescape(refused.text), name
        assert "<script>alert" not in refused.text, name
        fields = dict(reversed(pages.form(refused, end).fields))
        for field in case.kept or case.typed:
            assert fields.get(field.replace("__", ".")) == case.typed[field], (name, field)
        assert pages.client.server.store.revision() == before, name


class Both(NamedTuple):
    """A page and the end of its form, what the first and the second one type, and what the second one sees."""

    page: str
    theirs: dict[str, Any]
    mine: dict[str, Any]
    shown: tuple[str, ...]
    end: str = ""


def cells(theirs: str, mine: str) -> tuple[str]:
    """Return the part of a table with both values beside each other."""
    return (f'<td data-label="theirs">{theirs}</td><td data-label="yours">{mine}</td>',)


RULE = "/flags/a/development/strategies/{strategy}"
BOTH: dict[str, Both] = {
    "context field": Both(
        "/context-fields/plan",
        {"more": "theirs"},
        {"more": "mine", "stickiness": "on"},
        ("gold; silver; theirs", "gold; silver; mine"),
    ),
    "project": Both("/projects/shop", {"name": "theirs"}, {"name": "mine"}, cells("theirs", "mine")),
    "segment": Both(
        "/segments/1", {"c0__values": "us"}, {"c0__values": "asia"}, cells("region is us", "region is asia")
    ),
    "strategy": Both(
        RULE,
        {"rollout": "50", "title": HOSTILE},
        {"rollout": "25"},
        (*cells("50", "25"), "Someone else changed this strategy meanwhile", "Take theirs</a>"),
    ),
    "token": Both(
        "/tokens/{token}", {"expires": "2999-01-31"}, {"expires": "2999-02-28"}, cells("2999-01-31", "2999-02-28")
    ),
    "variants of a flag": Both(
        "/flags/a/development/variants",
        {"v0__name": "theirs"},
        {"v0__name": "mine"},
        ("theirs the rest", "mine the rest"),
    ),
    "variants of a strategy": Both(
        RULE,
        {"v1__fixed": "on", "v1__share": "10"},
        {"v1__fixed": "on", "v1__share": "20"},
        ("red 10 % string", "red 20 % string"),
    ),
}


@pytest.mark.parametrize("name", BOTH)
def test_two_people(pages: PageClient, name: str) -> None:
    """The second sees what the first did beside what was typed; nothing is saved unseen, and the second may save on purpose."""
    case, known = BOTH[name], prepared(pages)
    page, end = f"/ui{case.page}".format(**known), (case.end or case.page).format(**known)
    mine, theirs = (pages.form(pages.get(page), end) for _ in range(2))
    assert pages.press(theirs, "save", **case.theirs).status == 303
    before = pages.client.server.store.revision()
    conflict = pages.press(mine, "save", **case.mine)
    assert conflict.status == 409 and all(text in conflict.text for text in case.shown)
    assert "<script>alert" not in conflict.text
    assert pages.client.server.store.revision() == before
    assert pages.press(pages.form(conflict, end), "save").status == 303
    wanted, found = (pages.form(each, end).fields for each in (conflict, pages.get(page)))
    typed = [pair for pair in wanted if pair[0].replace(".", "__") in case.mine]
    assert [pair for pair in found if pair[0].replace(".", "__") in case.mine] == typed != []
