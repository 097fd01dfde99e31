"""The page that exports flags: the file of the API, for what is ticked or fits; nothing ticked is never an export of all."""

from __future__ import annotations

from typing import Any

from support.flagservers import VIEWER_SECRET
from support.page_forms import HOSTILE, PageClient

GIVEN: dict[str, Any] = {
    "environments": [{"name": "empty", "type": "test", "sortOrder": 9000}],
    "projects": [{"id": "other", "name": HOSTILE}],
    "features": [
        {"name": "a", "type": "experiment", "description": HOSTILE},
        {"name": "b"},
        {"name": "gone", "archived": True},
        {"name": "theirs", "project": "other"},
    ],
}
EXPORT = "/api/admin/features-batch/export"


def prepare(pages: PageClient) -> None:
    """Switch a flag on, and tag another one."""
    assert pages.client.post("/api/admin/projects/default/features/a/environments/production/on").status == 200
    assert pages.client.post("/api/admin/features/b/tags", {"type": "simple", "value": "team-x"}).status == 201


def export(pages: PageClient, query: str, do: str, **fields: Any) -> Any:
    """Press a button of the page, and return the answer."""
    return pages.press(pages.form(pages.get(f"/ui/export?{query}"), "page=1"), do, **fields)


def of_the_api(pages: PageClient, environment: str, *names: str) -> Any:
    """Return what the API exports."""
    return pages.client.post(EXPORT, {"environment": environment, "features": list(names)}).json()


def test_ticked_flags(pages: PageClient) -> None:
    """The file is what the API exports of the ticked flags, and the browser saves it."""
    found = export(pages, "environment=production", "ticked", flag=["a", "theirs"])
    assert (found.status, found.json()) == (200, of_the_api(pages, "production", "a", "theirs"))
    assert found.headers["content-disposition"] == 'attachment; filename="flags-production.json"'
    assert found.headers["content-type"].startswith("application/json") and found.headers["cache-control"] == "no-store"
    events = pages.client.get("/api/admin/events/?type=features-exported").json()["events"]
    assert [each["data"]["features"] for each in events if each["type"] == "features-exported"][-1] == ["a", "theirs"]


FITTING = (
    ("development", "", ["a", "b", "theirs"]),
    ("development", "&q=th", ["theirs"]),
    ("empty", "&type=experiment", ["a"]),
    ("production", "&project=other", ["theirs"]),
    ("production", "&tag=simple:team-x", ["b"]),
)
"""Environment, the other filters, and the flags of the export."""


def test_all_that_fit(pages: PageClient) -> None:
    """The other button exports every flag that the filters find, and no archived one."""
    for environment, query, names in FITTING:
        found = export(pages, f"environment={environment}{query}", "all")
        assert (found.status, found.json()) == (200, of_the_api(pages, environment, *names))
        assert [each["name"] for each in found.json()["features"]] == names


REFUSED: tuple[tuple[str, list[tuple[str, str]], int, str], ...] = (
    ("", [("do", "ticked")], 400, "Tick at least one flag."),
    ("", [], 400, "Tick at least one flag."),
    ("q=nothing", [("do", "all")], 400, "No flag fits the filters"),
    ("", [("flag", "a"), ("flag", "gone")], 404, "There is no active flag gone"),
    ("", [("flag", HOSTILE)], 404, "There is no active flag"),
    ("environment=nowhere", [("flag", "a")], 404, "There is no environment nowhere"),
)
"""Query, fields, status, and the beginning of the message."""


def test_nothing_is_exported_unseen(pages: PageClient) -> None:
    """Where no flag is chosen the page says so: the API would export all."""
    for query, fields, status, message in REFUSED:
        found = pages.post(f"/ui/export?{query}", fields)
        assert found.status == status and message in found.text and "<script>alert" not in found.text
        assert "content-disposition" not in found.headers
        assert pages.post(f"/ui/export.json?{query}", fields).json()["problems"][0].startswith(message)


def test_who_may(pages: PageClient) -> None:
    """A viewer exports too, as in the API; the words say what a flag is in the environment."""
    page = pages.get("/ui/export?environment=production", token=VIEWER_SECRET)
    assert page.status == 200 and "on for everyone" in page.text and "<script>alert" not in page.text
    found = pages.press(pages.form(page, "page=1"), "ticked", token=VIEWER_SECRET, flag=["b"])
    assert [each["name"] for each in found.json()["features"]] == ["b"]
    data = pages.data("/ui/export")
    assert (data["total"], data["filters"]["environment"]) == (3, "development")


def test_an_export_can_be_imported(pages: PageClient) -> None:
    """The page of imports takes the file as it is."""
    file = export(pages, "environment=production&project=default", "all")
    form = pages.form(pages.get("/ui/import?project=default&environment=development"), "/import")
    shown = pages.press(form, "preview", text="", file=file.text)
    assert "1 changed, 1 same" in " ".join(shown.text.split())
    assert pages.press(pages.form(shown, "/import"), "save").status == 303
    assert pages.client.get("/api/admin/projects/default/features/a/environments/development").json()["enabled"]
