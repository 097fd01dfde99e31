"""The variants of a flag in an environment, on pages: list, weights, payloads, overrides, percentages; two people; rights."""

from __future__ import annotations

from typing import Any

from support.page_forms import PageClient, PageForm

A = "/api/admin/projects/default/features/a"
HERE = "/ui/flags/a/development/variants"
HOSTILE = '</textarea><script>alert("1")</script>'
BLUE = {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "userId"}
RED = BLUE | {"name": "red", "payload": {"type": "json", "value": '{"a": 1}'}}
GREEN = BLUE | {"name": "green", "overrides": [{"contextName": "userId", "values": ["7", HOSTILE]}]}
GIVEN: dict[str, Any] = {"features": [{"name": "a"}, {"name": "plain"}], "contextFields": [{"name": "plan", "stickiness": True}]}


def prepare(pages: PageClient) -> None:
    """Give a flag variants in one environment."""
    put(pages, [BLUE, RED])


def put(pages: PageClient, variants: list[dict[str, Any]]) -> None:
    """Set the variants by the admin API."""
    body = {"environments": ["development"], "variants": variants}
    assert pages.client.ask("PUT", f"{A}/variants-batch", body).status == 200


def stored(pages: PageClient, environment: str = "development") -> list[dict[str, Any]]:
    """Return the variants in an environment as the admin API shows them."""
    return list(pages.client.get(f"{A}/environments/{environment}/variants").json()["variants"])


def form_of(pages: PageClient, page: str = HERE) -> PageForm:
    """Return the form of the variants."""
    return pages.form(pages.get(page), page)


def test_changing_them(pages: PageClient) -> None:
    """A variant is added with a fixed share; the page says which percentages come of it before it is saved. Undo takes it away."""
    before = stored(pages)
    form = pages.form(pages.press(form_of(pages), "add-variant"), HERE)
    typed = {"v2__name": "green", "v2__fixed": "on", "v2__share": "20", "v2__type": "string", "v2__payload": HOSTILE}
    shown = pages.press(form, "preview", **typed)
    assert "blue: 40 %, buckets 1 to 400 of 1000" in shown.text and "green: 20 %" in shown.text
    assert "<script>alert" not in shown.text and len(stored(pages)) == 2
    told = pages.press(pages.form(shown, HERE), "save")
    page = pages.get(told.headers["location"]).text
    assert "You changed the variants of a in development." in page
    assert '<a href="/ui/flags/a/development/variants">Edit' in page
    weights = {each["name"]: (each["weight"], each["weightType"]) for each in stored(pages)}
    assert weights == {"blue": (400, "variable"), "red": (400, "variable"), "green": (200, "fix")}
    payloads = {each["name"]: each.get("payload") for each in stored(pages)}
    assert payloads == {"blue": None, "red": RED["payload"], "green": {"type": "string", "value": HOSTILE}}
    pages.undo(told)
    assert stored(pages) == before
    assert "Nothing was different" in pages.get(pages.press(form_of(pages), "save").headers["location"]).text


def test_overrides_and_stickiness(pages: PageClient) -> None:
    """Overrides are shown and changed; what users stick to changes for all variants, and the page says what that does."""
    put(pages, [BLUE, GREEN])
    assert "<script>alert" not in pages.get(HERE).text
    form = form_of(pages)
    assert form.value("v1.override") == "userId" and form.value("v1.values") == f"7\n{HOSTILE}"
    typed: dict[str, Any] = {"v1__override": ["userId", "plan"], "v1__values": ["7", "gold, silver"]}
    shown = pages.press(form, "preview", **typed, variantStickiness="plan").text
    assert "The overrides change" in shown and "50 %" in shown
    assert pages.press(form, "save", **typed, variantStickiness="plan").status == 303
    assert [each["stickiness"] for each in stored(pages)] == ["plan", "plan"]
    assert stored(pages)[1]["overrides"] == [
        {"contextName": "userId", "values": ["7"]},
        {"contextName": "plan", "values": ["gold", "silver"]},
    ]


def test_another_environment(pages: PageClient) -> None:
    """A flag with variants in an environment gets variants in another environment, and its page offers that."""
    place = "/ui/flags/a/production/variants"
    assert place in pages.get("/ui/flags/a").text
    form = pages.form(pages.press(form_of(pages, place), "add-variant"), place)
    assert pages.press(form, "save", v0__name="only").status == 303
    assert [(each["name"], each["weight"]) for each in stored(pages, "production")] == [("only", 1000)]
    assert pages.get("/ui/flags/a/nosuch/variants").status == 404


def test_a_flag_without_variants(pages: PageClient) -> None:
    """The admin API takes no variants for such a flag: the page says so and offers no form. Taking the last ones away warns."""
    page = pages.get("/ui/flags/plain/development/variants").text
    assert "Give variants to its strategies" in page and "add-variant" not in page
    assert "/variants" not in pages.get("/ui/flags/plain").text
    base = pages.data("/ui/flags/plain/development/variants")["base"]
    fields = [("base", base), ("variants", "1"), ("v0.name", "x"), ("do", "save")]
    refused = pages.post("/ui/flags/plain/development/variants", fields)
    assert refused.status == 403 and "Use strategy variants instead" in refused.text
    form = pages.form(pages.press(form_of(pages), "remove-variant:1"), HERE)
    gone = pages.press(form, "remove-variant:0")
    assert "New ones can then only be given to its strategies." in gone.text
    assert pages.press(pages.form(gone, HERE), "save").status == 303 and stored(pages) == []
