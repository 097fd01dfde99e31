"""What all forms do alike: what the API refuses comes back with the reason; the second of two people sees what the first did."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import pytest

from support.page_forms import PageClient, read_wrong

F = "/api/admin/projects/default/features/a"
EMPTY = '{"features": [], "featureStrategies": [], "tagTypes": []}'
HOSTILE = "</textarea><script>alert(1)</script>\"'&"
BLUE = {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "userId"}
RED = BLUE | {"name": "red", "payload": {"type": "string", "value": " two\nlines "}}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}, {"id": "full", "name": "Full"}],
    "features": [{"name": "a"}, {"name": "b"}, {"name": "old"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}],
    "contextFields": [{"name": "plan", "legalValues": [{"value": "gold"}, {"value": "silver"}]}],
    "tagTypes": [{"name": "team", "icon": "@"}],
    "strategyTypes": [{"name": "hours", "parameters": [{"name": "from", "type": "number"}]}],
}


def prepared(pages: PageClient) -> dict[str, str]:
    """Give the flag variants, a link and a strategy, make a token, and return the ids for the pages of these by name."""
    ask = pages.client.ask
    body = {"environments": ["development"], "variants": [BLUE, RED]}
    assert ask("PUT", f"{F}/variants-batch", body).status == 200
    assert ask("POST", f"{F}/link", {"url": "https://example.com/1"}).status == 204
    rollout = {"rollout": "50", "stickiness": "userId", "groupId": "a"}
    strategy = {"name": "flexibleRollout", "parameters": rollout, "variants": [BLUE, RED]}
    settings = "/api/admin/projects/{}/settings"
    assert ask("PUT", settings.format("shop"), {"featureNaming": {"pattern": "s-.*"}}).status == 200
    assert ask("PUT", "/api/admin/projects/full", {"name": "Full", "featureLimit": 0}).status == 200
    assert ask("DELETE", "/api/admin/projects/default/features/old").status == 202
    token = {"tokenName": "mine", "type": "client", "expiresAt": "2999-01-30T23:59:59.000Z"}
    assert ask("POST", "/api/admin/api-tokens", token).status == 201
    return {
        "link": pages.client.get(F).json()["links"][0]["id"],
        "strategy": ask("POST", f"{F}/environments/development/strategies", strategy).json()["id"],
        "token": str(max(int(each["id"]) for each in pages.data("/ui/tokens")["tokens"])),
    }


class Refused(NamedTuple):
    """A page and the end of its form, the typed fields, and what is wrong: field → the beginning of a sentence.

    A sentence of the field "" is about the whole form. `first` are buttons that are pressed before. `lost` are fields that do not
    keep what was typed, because a browser cannot send it.
    """

    page: str
    typed: dict[str, Any]
    wrong: dict[str, str]
    status: int = 400
    end: str = ""
    do: str = "save"
    first: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


LONG = "x" * 300
RULE = "/flags/a/development/strategies/{strategy}"
NEW_RULE = "/flags/a/development/strategies/new"
VARIANTS_PAGE = "/flags/a/development/variants"
TAKEN = "The name is taken."
LETTERS = "A name has only letters from A to Z, digits"
CHOOSE = "Choose one of these."
MANY = "\n".join(str(number) for number in range(1001))
WHOLE = "A limit is a whole number from 0 to"


def condition(sentence: str, field: str = "c0.values", lost: str = "c0__operator", **typed: Any) -> Refused:
    """Return a new strategy with a condition that is refused."""
    given = {"title": HOSTILE, "c0__field": "company", "c0__values": HOSTILE} | typed
    return Refused(NEW_RULE, given, {field: sentence}, first=("add-condition",), lost=(lost,))


def variant(sentence: str, field: str, **typed: Any) -> Refused:
    return Refused(VARIANTS_PAGE, typed, {field: sentence}, lost=("v0__type",))


REFUSED: tuple[Refused, ...] = (
    Refused("/new-flag", {"name": "", "description": HOSTILE}, {"name": "Give a name."}, end="/new-flag"),
    Refused("/new-flag", {"name": HOSTILE}, {"name": LETTERS}, end="/new-flag"),
    Refused("/new-flag", {"name": LONG}, {"name": "A name has at most 100 characters."}, end="/new-flag"),
    Refused("/new-flag", {"name": "a"}, {"name": "Another flag has this name."}, 409, "/new-flag"),
    Refused("/new-flag", {"name": "old"}, {"name": "The name is taken by a flag in the archive."}, 409, "/new-flag"),
    Refused("/new-flag", {"name": "n", "type": "x"}, {"type": CHOOSE}, end="/new-flag", lost=("type",)),
    Refused("/projects/shop/new-flag", {"name": "n"}, {"name": "The name does not fit the pattern of the project: `s-.*`."}),
    Refused("/projects/full/new-flag", {"name": "n"}, {"": "The project has as many flags as it may."}, 403),
    Refused("/flags/a/edit", {"value": "x"}, {"tag.value": "A value has at least 2 characters."}, 400, "/tags", "add"),
    Refused("/flags/a/edit", {"value": LONG}, {"tag.value": "A value has at most 50"}, 400, "/tags", "add"),
    Refused(
        "/flags/a/edit",
        {"type": "xx", "value": "xx"},
        {"tag.type": "There is no type `xx` of tags."},
        400,
        "/tags",
        "add",
        lost=("type",),
    ),
    Refused(
        "/flags/a/edit",
        {"url": "javascript:1", "title": HOSTILE},
        {"link.url": "This is no address of a web page."},
        400,
        "/links",
        "",
    ),
    Refused(
        "/flags/a/edit",
        {"url": "", "title": HOSTILE},
        {"link{link}.url": "This is no address of a web page."},
        400,
        "/links/{link}",
        "",
    ),
    Refused(
        "/flags/a/edit",
        {"url": "https://a", "title": "x" * 10_001},
        {"link.title": "At most 10000 characters fit here."},
        400,
        "/links",
        "",
    ),
    Refused(NEW_RULE, {"rollout": "101"}, {"rollout": "A rollout is a whole number from 0 to 100."}),
    Refused(RULE, {"rollout": "half", "title": HOSTILE}, {"rollout": "A rollout is a whole number from 0 to 100."}),
    Refused(NEW_RULE, {"segment": ["99"]}, {"segment": "There is no segment 99."}, 404, lost=("segment",)),
    Refused(
        NEW_RULE,
        {"rollout": "x", "v0__name": "ok", "v0__fixed": "on", "v0__share": "x", "c0__field": ""},
        {"rollout": "A rollout", "c0.field": "Give a field.", "v0.fixed": "One variant at least", "v0.share": "A share"},
        first=("add-condition", "add-variant"),
    ),
    condition("Give a field.", "c0.field", c0__field=""),
    condition("There is no context field `plam`. Do you mean `plan`?", "c0.field", c0__field="plam"),
    condition("Give at least one value.", c0__values=""),
    condition("A value has at most 100 characters.", c0__values=LONG),
    condition("These are 251 values, and a condition takes 250. Create a segment", c0__values=MANY[: MANY.index("\n251")]),
    condition("These are 1001 values, and a condition takes 250. A segment takes 1000.", c0__values=MANY),
    condition(
        "`x` and 1 more are no legal values of the field `plan`.", lost="c0__values", c0__field="plan", c0__values="gold\nx\ny"
    ),
    condition("`7` is no legal value of the field", c0__field="plan", c0__operator="NUM_EQ", c0__values="7"),
    condition("Give a value.", c0__operator="NUM_EQ", c0__values=""),
    condition("A number is expected", c0__operator="NUM_EQ"),
    condition("The number has too many digits.", c0__operator="NUM_EQ", c0__values="9" * 30),
    condition("A time is expected", c0__operator="DATE_AFTER"),
    condition("This is no version.", c0__operator="SEMVER_EQ"),
    condition("This is no pattern of RE2: missing closing )", c0__operator="REGEX", c0__values="("),
    condition("Not all of these are networks.", c0__operator="IN_CIDR"),
    condition("A pattern takes no `not`.", "c0.inverted", c0__operator="REGEX", c0__values="x", c0__inverted="on"),
    condition(CHOOSE, "c0.operator", c0__operator="NOSUCH"),
    Refused(
        NEW_RULE,
        {f"c{at}__{name}": "x" for at in range(31) for name in ("field", "values")},
        {"": "These are too many: there are at most 30"},
        first=("add-condition",) * 31,
    ),
    *(variant("A share is a number from 0 to", "v0.share", v0__fixed="on", v0__share=each) for each in ("x", "33.33", "1e999999")),
    variant("This is here twice.", "v1.name", v0__name="red"),
    variant("Give a name.", "v0.name", v0__name=""),
    variant(LETTERS, "v0.name", v0__name=HOSTILE),
    variant("A value needs a type.", "v0.type", v0__payload=HOSTILE),
    variant("The value is no JSON", "v0.payload", v0__type="json", v0__payload=HOSTILE),
    variant("Give a value of the payload.", "v0.payload", v0__type="string", v0__payload=""),
    Refused(
        VARIANTS_PAGE,
        {"v0__fixed": "on", "v0__share": "60", "v1__fixed": "on", "v1__share": "50"},
        {"v0.fixed": "One variant at least has no fixed share", "v1.share": "The fixed shares are more than 100 %"},
    ),
    variant("Give a field.", "v0.override.0", v0__override="", v0__values="x"),
    Refused("/segments/new", {"name": "", "description": HOSTILE}, {"name": "Give a name."}),
    Refused("/segments/new", {"name": "beta"}, {"name": TAKEN}, 409),
    Refused("/segments/new", {"name": "n", "project": "x"}, {"project": "There is no project `x`."}, lost=("project",)),
    Refused(
        "/segments/1",
        {"c0__field": "region", "c0__values": MANY},
        {"c0.values": "The conditions have 1001 values together, and a segment takes 1000."},
    ),
    Refused("/new-context-field", {"name": "plan", "description": HOSTILE}, {"name": TAKEN}, 409),
    Refused("/new-context-field", {"name": HOSTILE}, {"name": LETTERS}),
    Refused("/new-context-field", {"name": "n", "more": LONG}, {"value.0": "A value has at most 100"}, lost=("more",)),
    Refused("/context-fields/plan", {"description": LONG}, {"description": "A description has at most 250 characters."}),
    Refused("/context-fields/plan", {"value": ["gold", "gold"]}, {"value.1": "This is here twice."}),
    Refused("/new-tag-type", {"name": "team", "description": HOSTILE}, {"name": TAKEN}, 409, do=""),
    Refused("/new-tag-type", {"name": "x"}, {"name": "A name has at least 2 characters."}, do=""),
    Refused("/new-tag-type", {"name": "xx", "colored": "on", "color": HOSTILE}, {"color": "A color is like"}, do=""),
    Refused("/new-strategy-type", {"name": "default", "title": HOSTILE}, {"name": TAKEN}, 409),
    Refused("/new-strategy-type", {"name": ""}, {"name": "Give a name."}),
    Refused(
        "/new-strategy-type",
        {"name": "fine", "p0__name": "", "p0__description": HOSTILE},
        {"p0.name": "Give a name."},
        first=("add-parameter",),
    ),
    Refused("/new-environment", {"name": "development", "type": HOSTILE}, {"name": TAKEN}, 409, do=""),
    Refused("/new-environment", {"name": HOSTILE, "type": "x", "enabled": None}, {"name": LETTERS}, do=""),
    Refused("/new-environment", {"name": "n", "type": LONG}, {"type": "A type has at most 255 characters."}, do=""),
    Refused("/environments/development", {"type": ""}, {"type": "Give a type."}),
    Refused("/new-project", {"name": ""}, {"name": "Give a name."}),
    Refused("/new-project", {"name": HOSTILE, "id": "shop"}, {"id": "The id is taken."}, 409),
    Refused("/new-project", {"name": "n", "id": "*"}, {"id": "An id is not `*`"}),
    Refused("/new-project", {"name": "n", "id": HOSTILE}, {"id": "An id has only letters"}),
    Refused(
        "/new-project",
        {"name": "n", "environments": ["x"]},
        {"environments": "These environments do not exist: 'x'."},
        lost=("environments",),
    ),
    Refused("/projects/shop", {"name": ""}, {"name": "Give a name."}),
    *(Refused("/projects/shop", {"featureLimit": each}, {"featureLimit": WHOLE}) for each in ("many", "-1", "1.5", "9" * 30)),
    Refused("/projects/shop", {"mode": "x"}, {"mode": CHOOSE}, lost=("mode",)),
    Refused("/projects/shop", {"pattern": "("}, {"naming.pattern": "The pattern is no regular expression"}, end="/naming"),
    Refused("/projects/shop", {"pattern": "a b"}, {"naming.pattern": "The pattern asks for white space"}, end="/naming"),
    Refused(
        "/projects/shop",
        {"pattern": "[a-z]+", "example": "1"},
        {"naming.example": "The example does not match the pattern."},
        end="/naming",
    ),
    Refused(
        "/projects/shop",
        {"pattern": "", "example": "1", "description": HOSTILE},
        dict.fromkeys(("naming.example", "naming.description"), "Give a pattern, or leave this empty, too."),
        end="/naming",
    ),
    Refused("/tokens/new", {"name": "", "projects": "*"}, {"name": "Give a name."}),
    Refused("/tokens/new", {"name": HOSTILE, "projects": None}, {"projects": "Give at least one project."}),
    Refused("/tokens/new", {"name": "n", "projects": "*", "type": "x"}, {"type": CHOOSE}, lost=("type",)),
    Refused(
        "/tokens/new",
        {"name": "n", "projects": "*", "environment": "x"},
        {"environment": "There is no such environment."},
        lost=("environment",),
    ),
    Refused("/tokens/new", {"name": HOSTILE, "expires": "tomorrow", "projects": "*"}, {"expires": "Choose a day."}),
    Refused("/tokens/{token}", {"expires": ""}, {"expires": "Choose a day."}),
    Refused("/my-tokens", {"description": "", "expires": "2999-01-01"}, {"description": "Give a description."}, do=""),
    Refused("/my-tokens", {"description": LONG}, {"description": "A description has at most 255 characters."}, do=""),
    Refused("/my-tokens", {"description": HOSTILE, "expires": ""}, {"expires": "Choose a day."}, do=""),
    Refused("/my-tokens", {"description": HOSTILE, "expires": "2001-01-01"}, {"expires": "The day is over."}, do=""),
    Refused("/people/new", {"username": "", "name": HOSTILE}, {"username": "Give a username or an email address."}, do=""),
    Refused("/people/new", {"email": HOSTILE}, {"email": "This is no email address."}, do=""),
    Refused("/people/new", {"username": LONG}, {"username": "A username has at most 255 characters."}, do=""),
    Refused(
        "/people/new",
        {"username": "anna", "rootRole": "King"},
        {"rootRole": "Choose one of these roles."},
        do="",
        lost=("rootRole",),
    ),
    Refused("/people/1", {"email": HOSTILE}, {"email": "This is no email address."}, end="/1"),
    Refused("/people/1", {"rootRole": "Viewer"}, {"rootRole": "This is the only administrator."}, 403, "/1"),
    Refused("/new-webhook", {"url": "", "description": HOSTILE}, {"url": "Give an address"}),
    Refused("/new-webhook", {"url": "x"}, {"url": "An address must be an http or https address."}, lost=("url",)),
    Refused("/new-webhook", {"url": "https://a", "contentType": "é"}, {"contentType": "A content type must"}, lost=("url",)),
    Refused(
        "/new-webhook",
        {"url": "https://a", "customHeaders": "x"},
        {"customHeaders": "A value must be a JSON object."},
        lost=("url", "customHeaders"),
    ),
    Refused(
        "/new-webhook", {"url": "https://a", "bodyTemplate": "{{"}, {"bodyTemplate": "The template is not complete"}, lost=("url",)
    ),
    Refused(
        "/new-webhook",
        {"url": "https://a", "signingSecret": "x"},
        {"signingSecret": "A secret must have at least 16 bytes."},
        lost=("url", "signingSecret"),
    ),
    Refused("/import", {"text": ""}, {"text": "Choose a file, or paste a text."}, do="preview"),
    Refused("/import", {"text": HOSTILE}, {"text": "The text is not JSON"}, do="preview"),
    Refused("/import", {"text": '{"features": 1}'}, {"text": "In the text, `/data"}, do="preview"),
    Refused(
        "/import", {"text": EMPTY, "project": "x"}, {"project": "There is no project `x`."}, 404, do="preview", lost=("project",)
    ),
    Refused(
        "/import",
        {"text": EMPTY, "environment": "x"},
        {"environment": "There is no such environment."},
        404,
        do="preview",
        lost=("environment",),
    ),
    Refused("/flags/a/copy", {"to": None}, {"to": "Tick at least one environment to copy to."}, do="preview"),
    Refused("/compare", {"flag": None}, {"flag": "Tick at least one flag."}, end="page=1", do="preview"),
    Refused("/export", {"flag": None}, {"flag": "Tick at least one flag."}, end="page=1", do="ticked"),
    Refused("/flags/a/parent?parent=a", {}, {"parent": "A flag cannot depend on itself."}, 403, "/parent"),
    Refused("/flags/a/parent?parent=x", {}, {"parent": "There is no active flag `x`."}, 403, "/parent"),
    Refused("/try", {"lines": HOSTILE}, {"lines": "Line 1 is no JSON."}, do=""),
)


def test_what_the_api_refuses(pages: PageClient) -> None:
    """Each wrong field has its sentence, the first one the focus. What was typed stays, none of it is HTML, nothing is stored."""
    known = prepared(pages)
    before = pages.client.server.store.revision()
    for case in REFUSED:
        page, end = f"/ui{case.page}".format(**known), (case.end or case.page).format(**known)
        form = pages.form(pages.get(page), end)
        for button in case.first:
            form = pages.form(pages.press(form, button), end)
        refused = pages.press(form, case.do, **case.typed)
        assert refused.status == case.status, (case, refused.text)
        wrong = {field.format(**known): sentence for field, sentence in case.wrong.items() if field}
        found = read_wrong(refused)
        assert found.keys() == wrong.keys(), (case, found)
        assert all(found[field].startswith(sentence) for field, sentence in wrong.items()), (case, found)
        assert case.wrong.get("", "") in html.unescape(refused.text), case
        assert "<script>alert" not in refused.text, case
        typed = pages.form(refused, end).fields
        for field in case.typed.keys() - set(case.lost):
            given = case.typed[field]
            wanted = [] if given is None else [given] if isinstance(given, str) else given
            shown = [text for name, text in typed if name == field.replace("__", ".")]
            assert shown[: len(wanted) or None] == wanted, (case, field)
        assert pages.client.server.store.revision() == before, case


def test_a_wrong_secret(pages: PageClient) -> None:
    """The form to sign in says at its field what is wrong, and repeats no secret."""
    refused = pages.post("/ui/sign-in", [("token", HOSTILE)])
    assert refused.status == 403 and "alert(1)" not in refused.text
    assert read_wrong(refused, summary=False)["token"].startswith("This is no token of a user here")


def test_a_segment_of_a_condition(pages: PageClient) -> None:
    """A button of a condition with more than 250 values opens the form of a new segment with it, and keeps the values."""
    form = pages.form(pages.get(f"/ui{NEW_RULE}"), "/new")
    for _ in range(2):
        form = pages.form(pages.press(form, "add-condition"), "/new")
    many = "\n".join(str(number) for number in range(251))
    shown = pages.press(form, "preview", c0__field="region", c0__values="eu", c1__field="userId", c1__values=many)
    form = pages.form(shown, "/new")
    assert ("do", "segment-of:0") not in form.buttons
    segment = pages.post("/ui/segments/new", [*form.fields, ("do", "segment-of:1")])
    new = pages.form(segment, "/new")
    assert (new.value("name"), new.value("project"), new.value("c0.field")) == ("", "default", "userId")
    assert (new.value("conditions"), new.value("c0.values")) == ("1", many)
    assert pages.press(new, "save", name="many").status == 303


def test_a_field_that_nobody_made(pages: PageClient) -> None:
    """A condition warns of it, and leads to the form that makes it. What is like a known field is saved at the second try."""
    form = pages.form(pages.press(pages.form(pages.get(f"/ui{NEW_RULE}"), "/new"), "add-condition"), "/new")
    refused = pages.press(form, "save", c0__field="plam", c0__values="gold")
    assert "/ui/new-context-field?name=plam" in refused.text
    assert pages.form(pages.get("/ui/new-context-field?name=plam"), "/new-context-field").value("name") == "plam"
    taken = pages.press(pages.form(refused, "/new"), "name-condition:0:plan")
    assert pages.form(taken, "/new").value("c0.field") == "plan"
    assert pages.press(pages.form(refused, "/new"), "save").status == 303
    assert pages.press(form, "save", c0__field="company", c0__values="x").status == 303


class Both(NamedTuple):
    """A page and the end of its form, what the first and the second one type, and what the second one sees."""

    page: str
    theirs: dict[str, Any]
    mine: dict[str, Any]
    shown: tuple[str, ...]
    end: str = ""
    do: str = "save"


def cells(theirs: str, mine: str) -> tuple[str]:
    """Return the part of a table with both values beside each other."""
    return (f'<td data-label="theirs">{theirs}</td><td data-label="yours">{mine}</td>',)


LINE = {"description": "theirs"}, {"description": "mine"}, cells("theirs", "mine")
COLORED = {"icon": "x", "colored": "on", "color": "#000000"}
REQUIRED, SINCE = "from (number, required)", "since (number)"
BOTH: dict[str, Both] = {
    "context field": Both("/context-fields/plan", {"more": "t"}, {"more": "m", "stickiness": "on"}, ("silver; t", "silver; m")),
    "environment": Both("/environments/development", {"type": "theirs"}, {"type": "mine"}, ("changed this", "mine"), do=""),
    "flag": Both("/flags/a/edit", *LINE, "/edit"),
    "project": Both("/projects/shop", *LINE),
    "naming pattern": Both("/projects/shop", {"pattern": "a.*"}, {"pattern": "b.*"}, cells("a.*", "b.*"), "/naming"),
    "segment": Both("/segments/1", {"c0__values": "us"}, {"c0__values": "asia"}, cells("region is us", "region is asia")),
    "strategy": Both(RULE, {"rollout": "50", "title": HOSTILE}, {"rollout": "25"}, (*cells("50", "25"), "Take theirs</a>")),
    "strategy type": Both("/strategy-types/hours", {"p0__required": "on"}, {"p0__name": "since"}, (REQUIRED, SINCE)),
    "tag type": Both("/tag-types/team", {"icon": ""}, COLORED, ('<th scope="row">Icon</th>', "#000000"), do=""),
    "token": Both("/tokens/{token}", {"expires": "2999-01-31"}, {"expires": "2999-02-28"}, cells("2999-01-31", "2999-02-28")),
    "user": Both("/people/2", {"name": HOSTILE}, {"name": "mine"}, ("changed this user", "mine"), "/2"),
    "variants of a flag": Both(VARIANTS_PAGE, {"v0__name": "theirs"}, {"v0__name": "mine"}, ("theirs the rest", "mine the rest")),
    "variants of a strategy": Both(
        RULE, {"v1__fixed": "on", "v1__share": "10"}, {"v1__fixed": "on", "v1__share": "20"}, ("red 10 % string", "red 20 % string")
    ),
}


@pytest.mark.parametrize("name", BOTH)
def test_two_people(pages: PageClient, name: str) -> None:
    """The second sees what the first did beside what was typed; nothing is saved unseen, and the second may save on purpose."""
    case, known = BOTH[name], prepared(pages)
    page, end = f"/ui{case.page}".format(**known), (case.end or case.page).format(**known)
    mine, theirs = (pages.form(pages.get(page), end) for _ in range(2))
    assert pages.press(theirs, case.do, **case.theirs).status == 303
    before = pages.client.server.store.revision()
    conflict = pages.press(mine, case.do, **case.mine)
    assert conflict.status == 409 and [text for text in case.shown if text not in conflict.text] == []
    assert "<script>alert" not in conflict.text
    assert pages.client.server.store.revision() == before
    assert pages.press(pages.form(conflict, end), case.do).status == 303
    wanted, found = (pages.form(each, end).fields for each in (conflict, pages.get(page)))
    typed = [pair for pair in wanted if pair[0].replace(".", "__") in case.mine]
    assert [pair for pair in found if pair[0].replace(".", "__") in case.mine] == typed != []
