"""The links of a flag: adding, changing and removing them, on the page that edits the flag."""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.server.api.authorization import feature_project
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.edits import Look, attempt, changed_meanwhile, checked, require_unchanged
from flagsvc.server.pages.flag import require_flag
from flagsvc.server.pages.flag_edit import ONE, TEMPLATE, UPDATE, edit_page
from flagsvc.server.pages.page import change
from flagsvc.server.shapes.batch import FEATURE_LINK
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import links
from flagsvc.server.store.store import Tx

CHANGED = (
    "Nothing was done: someone changed this link meanwhile. The page shows what it is now. You typed `{url}` `{title}`."
)


def read_link(call: ApiCall) -> Json:
    """Return what was typed of a link."""
    return {"url": call.form.text("url"), "title": call.form.text("title")}


def do(call: ApiCall, work: Callable[[Tx, str, str], object]) -> ApiAnswer:
    """Do work on a link of the flag in one transaction, given project and flag; or show the page with what is wrong."""
    name, typed = call.params["featureName"], read_link(call)
    changed = changed_meanwhile(CHANGED.format_map(typed))

    def again(look: Look) -> ApiAnswer:
        return edit_page(call, None, look, {} if look is changed else {call.params.get("linkId", ""): typed})

    return attempt(
        call, lambda tx: work(tx, require_flag(tx, name).project, name), again, "flags", name, changed=changed
    )


def add(call: ApiCall) -> ApiAnswer:
    """Add a link. Without a title it has none."""
    sent = {name: text for name, text in read_link(call).items() if text or name == "url"}
    return do(call, lambda tx, project, name: links.add(tx, project, name, checked(FEATURE_LINK, sent)))


def update(call: ApiCall) -> ApiAnswer:
    """Change a link, unless someone else changed it since it was shown."""
    typed = read_link(call)

    def work(tx: Tx, project: str, name: str) -> None:
        body = checked(FEATURE_LINK, typed | {"title": typed["title"] or None})
        links.change(tx, project, name, unchanged_link(call, tx), body)

    return do(call, work)


def remove(call: ApiCall) -> ApiAnswer:
    """Remove a link, unless someone else changed it since it was shown."""
    return do(call, lambda tx, project, name: links.remove(tx, project, name, unchanged_link(call, tx)))


def unchanged_link(call: ApiCall, tx: Tx) -> str:
    """Return the id in the path. Raises ChangedMeanwhileError if the link is not as it was shown, or gone."""
    name, identity = call.params["featureName"], call.params["linkId"]
    held = links.links_of(tx, [name]).get(name, [])
    require_unchanged(next((each for each in held if each["id"] == identity), None), call.form.text("base"))
    return identity


OWN = f"{ONE}/edit/links"
FORMS = (
    (OWN, add, "Add a link to a flag.", "createFeatureLink"),
    (f"{OWN}/:linkId", update, "Change a link of a flag.", "updateFeatureLink"),
    (f"{OWN}/:linkId/remove", remove, "Remove a link of a flag.", "deleteFeatureLink"),
)
"""Path, handler, summary, and the operation of the admin API."""

ROUTES = tuple(
    change(
        path,
        handler,
        summary,
        template=TEMPLATE,
        permission=UPDATE,
        project_of=feature_project,
        stands_for=operation,
    )
    for path, handler, summary, operation in FORMS
)
