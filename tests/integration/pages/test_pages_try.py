"""Trying contexts: what clients get, what differs, why, and that a context stays in the request and its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.hashing import STRATEGY_SEED, Identifier, Prefix
from flagsvc.server.pages import tryout
from flagsvc.server.store.documents import MOST_UNFOLDED, UnfoldedDocuments
from support.flagservers import BACKEND_SECRET, VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient

FEATURES = "/api/admin/projects/default/features"
BOTH = [("environment", "development"), ("environment", "production")]
GROUP = Prefix("a", STRATEGY_SEED, False)
USER = next(user for user in map(str, range(100)) if GROUP.bucket(Identifier(user, False), 100) <= 30)
"""A user that the rollout admits."""
BUCKET = GROUP.bucket(Identifier(USER, False), 100)
ROLLOUT = {"rollout": "30", "stickiness": "userId", "groupId": "a"}
GIVEN: dict[str, Any] = {
    "features": [{"name": "a"}, {"name": "b"}, {"name": "c-always"}],
    "segments": [{"name": "beta", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}],
    "contextFields": [{"name": "region", "legalValues": [{"value": "eu"}, {"value": HOSTILE}]}],
}


def prepare(pages: PageClient) -> None:
    """Let the flag `a` differ between the environments, and switch `c-always` on in both."""
    in_beta = {"name": "flexibleRollout", "title": HOSTILE, "parameters": ROLLOUT, "segments": [1]}
    rows = (
        ("a", "development", {"name": "flexibleRollout", "parameters": ROLLOUT}),
        ("a", "production", {"name": "flexibleRollout", "disabled": True}),
        ("a", "production", in_beta),
        ("c-always", "development", {"name": "flexibleRollout"}),
        ("c-always", "production", {"name": "flexibleRollout"}),
    )
    for flag, environment, strategy in rows:
        place = f"{FEATURES}/{flag}/environments/{environment}"
        assert pages.client.post(f"{place}/strategies", strategy).status == 200
    for flag, environment, _ in rows:
        assert pages.client.post(f"{FEATURES}/{flag}/environments/{environment}/on").status == 200


def tried(pages: PageClient, *fields: tuple[str, str], **more: Any) -> Any:
    """Return the data of an evaluation in both environments."""
    answer = pages.post("/ui/try.json", [*BOTH, *fields], **more)
    assert answer.status == 200, answer.text
    return answer.json()


def typed(**fields: str) -> list[tuple[str, str]]:
    """Return the fields of a context as the form sends them."""
    return [pair for name, value in fields.items() for pair in (("name", name), ("value", value))]


def test_the_form(pages: PageClient) -> None:
    """It offers the environments, production first, the fields that flags read, and their legal values."""
    found = pages.data("/ui/try")
    assert [(each["name"], each["ticked"]) for each in found["environments"]] == [("production", True), ("development", True)]
    assert [each["name"] for each in found["fields"]] == ["userId", "region"]
    assert found["fields"][1]["legal"] == ["eu", HOSTILE]
    page = pages.get("/ui/try?q=child")
    assert pages.form(page, "/try").value("q") == "child"
    assert "<script>alert" not in page.text


def test_what_differs_comes_first(pages: PageClient) -> None:
    """Flags with different answers come first, then flags that are on, and then flags that are off."""
    results = tried(pages, *typed(userId=USER))["results"]
    rows = {each["name"]: [cell["on"] for cell in each["cells"]] for each in results["flags"]}
    assert list(rows) == ["a", "c-always", "b"]
    assert rows == {"a": [0, 1], "c-always": [1, 1], "b": [0, 0]}
    assert (results["total"], results["on"], results["differ"]) == (3, 2, 1)
    assert [each["name"] for each in tried(pages, ("q", "ALW c"))["results"]["flags"]] == ["c-always"]


def test_the_only_flag_is_explained_at_once(pages: PageClient) -> None:
    """A flag is explained without being asked for if no other fits, or if its whole name was typed; the first that differs."""
    lines = ("lines", f'{{"userId": "none"}}\n{{"userId": "{USER}"}}')
    explained = {"c-always": "c-always", "ALW c": "c-always", "a": "a", "": None, "nosuch": None}
    found = {search: tried(pages, ("q", search), lines)["why"] for search in explained}
    assert {search: why and why["flag"] for search, why in found.items()} == explained
    assert found["a"]["line"] == 1


def test_the_first_field_has_the_focus_until_something_is_tried(pages: PageClient) -> None:
    """A person types at once where the page begins, and is not led away from an answer."""
    assert 'name="value" value="" spellcheck="false" autofocus' in pages.get("/ui/try").text
    assert "autofocus" not in pages.post("/ui/try", [*BOTH, *typed(userId=USER)]).text


def test_answers_are_those_of_clients(pages: PageClient) -> None:
    """For each of a hundred contexts, the answer is what an evaluation of the clients' document gives."""
    contexts: list[Any] = [{"userId": str(at), "properties": {"region": "eu" if at % 2 else "us"}} for at in range(100)]
    lines = "\r\n".join(json.dumps(each) for each in contexts)
    found = tried(pages, ("lines", lines), ("why", "3:a"))
    document = pages.client.get("/api/client/features", token=BACKEND_SECRET).json()
    snapshot = compile_document(document, CompileOptions()).snapshot
    wanted = [snapshot.decide(Context(user_id=each["userId"], properties=each["properties"]), "a")[0] for each in contexts]
    assert found["results"]["contexts"] == 100
    assert found["why"]["places"][1]["each"] == wanted
    rows = {each["name"]: [cell["on"] for cell in each["cells"]] for each in found["results"]["flags"]}
    assert rows["a"][1] == sum(wanted)
    assert 0 < rows["a"][0] < rows["a"][1]
    differing = next(each["line"] for each in found["results"]["flags"] if each["name"] == "a")
    assert wanted[differing] and not wanted[:differing].count(True) - sum(wanted[at] for at in range(differing) if at % 2)


def test_why(pages: PageClient) -> None:
    """One flag is explained whole: each step, bucket and share, what would turn it, and a link to each strategy."""
    fields = [*BOTH, *typed(userId=USER, region="us"), ("why", "0:a")]
    found = pages.post("/ui/try.json", fields).json()["why"]
    production, development = found["places"]
    assert (development["enabled"], production["enabled"]) == (True, False)
    assert production["turning"] == ["with region eu it would be on"]
    [strategy] = [each for each in production["steps"] if each["kind"] == "strategy"]
    assert strategy["words"].startswith(f'1. "{HOSTILE}": 30 % by userId')
    rollout = strategy["steps"][-1]
    assert rollout["bar"] == {"share": 30, "bucket": BUCKET}
    assert production["explanation"]["steps"][1]["kind"] == "strategy"
    page = pages.post("/ui/try", fields).text
    active = pages.client.get(f"{FEATURES}/a/environments/production/strategies").json()[1]
    assert f'href="/ui/flags/a/production/strategies/{active["id"]}"' in page
    assert "<script>alert" not in page
    form = pages.form(pages.post("/ui/try", fields), "/try")
    assert ("why", "0:a") in form.buttons


NO_CONTEXTS = (
    ([("lines", "{}\nnonsense")], "Line 2 is no JSON."),
    ([("lines", "[1]")], "Line 1 must be an object"),
    ([("lines", '{"userId": ["7"]}')], "Line 1: each value must be a text, a number, or true or false."),
    ([("lines", '{"properties": "x"}')], "Line 1: `properties` must be an object."),
    ([("lines", '{"currentTime": "soon"}')], "Line 1: `currentTime` must be a time"),
    (typed(currentTime="soon"), "The field `currentTime` must be a time"),
    ([("lines", "{}\n" * 101)], "There are 101 contexts. At most 100 can be tried at once."),
    ([("lines", "[" * 100_000)], "Line 1 is no JSON."),
)


def test_what_is_no_context(pages: PageClient) -> None:
    """An error names the line and what was expected, and the form keeps what was typed."""
    for fields, message in NO_CONTEXTS:
        answer = pages.post("/ui/try", [*BOTH, *fields, ("q", HOSTILE)])
        assert answer.status == 400 and message in answer.text.replace("&#34;", '"')
        assert pages.form(answer, "/try").value("q") == HOSTILE


def test_too_many_answers(pages: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that would take long is refused, and says how to ask for less."""
    monkeypatch.setattr(tryout, "MOST_ANSWERS", 5)
    answer = pages.post("/ui/try", BOTH)
    assert answer.status == 400
    assert "These are 6 answers, and at most 5 are made at once." in answer.text
    assert pages.post("/ui/try", [*BOTH, ("q", "c-always")]).status == 200


def test_no_environment_or_flag(pages: PageClient) -> None:
    """Without an environment, or with a name that no flag has, the page says so."""
    assert "Tick an environment." in pages.post("/ui/try").text
    assert "No flag fits." in pages.post("/ui/try", [*BOTH, ("q", "nosuch")]).text
    assert "No flag of this name" in pages.post("/ui/try", [*BOTH, ("why", "0:nosuch")]).text
    assert tried(pages, ("why", "99:a"))["why"] is None


def test_viewers_may_try_also_in_maintenance(pages: PageClient) -> None:
    """Trying changes nothing, so every user may."""
    revision = pages.client.server.store.revision()
    assert tried(pages, *typed(userId=USER), token=VIEWER_SECRET)["results"]["total"] == 3
    assert pages.client.server.store.revision() == revision


def test_unfolded_documents_are_few(pages: PageClient) -> None:
    """A document is unfolded once for its content; of many environments and contents, only the last few are kept."""
    kept, documents = UnfoldedDocuments(), pages.client.server.documents
    with kept.using(documents, "development") as first:
        unfolded = first.unfolded
    with kept.using(documents, "development") as again:
        assert again.unfolded is unfolded
    for at in range(MOST_UNFOLDED + 3):
        with kept.using(documents, f"other-{at}") as other:
            assert "a" in other.unfolded.names
    assert len(kept) == MOST_UNFOLDED
    pages.client.post(f"{FEATURES}/a/environments/development/off")
    with kept.using(documents, "development") as changed:
        assert changed.unfolded is not unfolded
