"""Changing what describes a flag, its tags and links, archiving and reviving it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from flagsvc.core.direction import isolate_quoted
from flagsvc.http.answers import Answer
from flagsvc.http.shapes import check
from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.tags import CHANGES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.edits import (
    Look,
    attempt,
    base_of,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.flag import require_flag
from flagsvc.server.pages.flag_new import kinds
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.notices import kept_notice
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.problems import under
from flagsvc.server.shapes.batch import FEATURE_LINK
from flagsvc.server.shapes.feature_bodies import PATCHES
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import feature_archive, features, links, tag_types, tags
from flagsvc.server.store.store import Tx, read_tags
from flagsvc.server.store.timestamps import format_time

UPDATE, ARCHIVE = "UPDATE_FEATURE", "DELETE_FEATURE"
PARTS = {"description": "Description", "type": "Type", "stale": "Stale", "impressionData": "Impression data"}
"""Member of a flag that the form changes → what people call it."""
NO_TAG = {"type": "", "value": ""}
CHANGED_LINK = "Nothing was done: someone changed this link meanwhile. The page shows what it is now. You typed `{url}` `{title}`."


def read_form(form: Form) -> Json:
    """Return what was typed of a flag, but for its name."""
    texts = {"description": form.text("description"), "type": form.text("type")}
    return {**texts, "stale": form.has("stale"), "impressionData": form.has("impressionData")}


def edit_page(
    call: ApiCall,
    typed: Json | None = None,
    look: Look | None = None,
    typed_links: dict[str, Json] | None = None,
    tag: Json | None = None,
) -> Answer:
    """Return the page with the form of a flag, its tags and links, and what archives it. Raises CallerError (404).

    `typed`, `typed_links` and `tag` are what was typed, in the form of the flag, of links by their ids, and of a new tag.
    """
    look = look or Look()
    name = call.params["featureName"]
    with call.store.reading() as tx:
        row = require_flag(tx, name)
        own = read_tags(tx.db, [name]).get(name, [])
        known = [each["name"] for each in tag_types.list_types(tx)]
        thing = ("link", call.params["linkId"]) if "linkId" in call.params else ("flag",)
        last = last_change(call, tx, look, *thing, feature=name)
        forms = link_forms(tx, name, typed_links or {})
    stored = content_of(row)
    shown = typed or stored
    data = {"flag": name, "form": shown, "project": row.project, "types": kinds()}
    rights = {"may": call.actor.may(UPDATE, project=row.project), "permission": UPDATE}
    rights |= {"may_archive": call.actor.may(ARCHIVE, project=row.project)}
    rest: Json = {
        "base": base_of(call, typed, look, stored),
        "problems": look.problems,
        "changed": look.conflict,
        "tags": own,
        "tag_types": known,
        "tag": tag or NO_TAG,
        "links": forms,
        "conflict_rows": differences(PARTS, told(stored), told(shown)) if look.conflict else [],
        "last_change": last,
    }
    return Answer(data | rights | rest, look.status)


def link_forms(tx: Tx, name: str, typed: dict[str, Json]) -> list[Json]:
    """Return the forms of the links of a flag, and of a new link, with what was typed by the ids of links."""
    held = [each | {"base": digest_of(each)} for each in links.links_of(tx, [name]).get(name, [])]
    return [{**each, **typed.get(each["id"], {})} for each in (*held, {"id": "", "url": "", "title": ""})]


def content_of(row: Row[Any]) -> Json:
    """Return what the form changes of a stored flag."""
    texts = {"description": row.description or "", "type": row.type}
    return {**texts, "stale": bool(row.stale), "impressionData": bool(row.impression_data)}


def told(shown: Json) -> Json:
    """Return a form with its boxes as texts."""
    return {name: {True: "yes", False: "no"}.get(value, value) for name, value in shown.items()}


def update(call: ApiCall) -> Answer:
    """Change what describes a flag, unless someone else changed it since it was shown."""
    name, typed = call.params["featureName"], read_form(call.form)

    def work(tx: Tx) -> None:
        row = require_flag(tx, name)
        stored = content_of(row)
        require_unchanged(stored, call.form.text("base"))
        changed = [part for part in PARTS if typed[part] != stored[part]]
        operations = [{"op": "replace", "path": f"/{part}", "value": typed[part]} for part in changed]
        check(PATCHES, operations)
        features.patch(tx, row.project, name, operations)

    return attempt(call, work, lambda look: edit_page(call, typed, look), "flags", name)


def change_tags(call: ApiCall) -> Answer:
    """Add a tag to a flag, or remove one: `do` is `add`, or `remove:TYPE:VALUE`."""
    name, form = call.params["featureName"], call.form
    action, _, removed = "".join(form.texts("do")[:1]).partition(":")  # a value of a tag keeps its blanks
    kind, _, value = removed.partition(":")
    typed = {"type": form.text("type"), "value": form.text("value")}
    added = [typed] if action == "add" else []
    gone = [{"type": kind, "value": value}] if action == "remove" else []

    def work(tx: Tx) -> None:
        body = checked(CHANGES, {"addedTags": added, "removedTags": gone})
        tags.change_tags_of_feature(tx, name, body["addedTags"], body["removedTags"])

    return attempt(call, work, lambda look: edit_page(call, None, look, tag=typed), "flags", name)


def archive(call: ApiCall) -> Answer:
    name = call.params["featureName"]

    def work(tx: Tx) -> None:
        feature_archive.archive(tx, require_flag(tx, name).project, name)

    return attempt(call, work, lambda look: edit_page(call, None, look), "flags", name, "archived")


def show_archived(call: ApiCall) -> Answer:
    """Return the page of an archived flag; of another one, go to its page."""
    name = call.params["featureName"]
    with call.store.reading() as tx:
        row = require_flag(tx, name)
    if row.archived_at is None:
        return see_other(call, "flags", name, undo=kept_notice(call))
    told_of = {"name": name, "type": row.type, "project": row.project, "description": row.description or ""}
    told_of |= {"archivedAt": format_time(row.archived_at)}
    return Answer({"flag": told_of, "may": call.actor.may(UPDATE, project=row.project), "permission": UPDATE})


def revive(call: ApiCall) -> Answer:
    """Revive an archived flag; it is off everywhere."""
    name = call.params["featureName"]
    with call.store.writing(call.actor, "page") as tx:
        feature_archive.revive_all(tx, require_flag(tx, name).project, [name])
    return see_other(call, "flags", name, done=tx)


def read_link(call: ApiCall) -> Json:
    return {"url": call.form.text("url"), "title": call.form.text("title")}


def change_link(call: ApiCall, work: Callable[[Tx, str, str], object]) -> Answer:
    """Do work on a link of the flag in one transaction, given project and flag; or show the page with what is wrong."""
    name, typed = call.params["featureName"], read_link(call)
    changed = changed_meanwhile(isolate_quoted(CHANGED_LINK.format_map(typed)))

    def again(look: Look) -> Answer:
        if look is changed:
            return edit_page(call, None, look)
        link = call.params.get("linkId", "")
        return edit_page(call, None, replace(look, problems=under(f"link{link}.", look.problems)), {link: typed})

    return attempt(call, lambda tx: work(tx, require_flag(tx, name).project, name), again, "flags", name, changed=changed)


def add_link(call: ApiCall) -> Answer:
    """Add a link. Without a title it has none."""
    sent = {name: text for name, text in read_link(call).items() if text or name == "url"}
    return change_link(call, lambda tx, project, name: links.add(tx, project, name, checked(FEATURE_LINK, sent)))


def update_link(call: ApiCall) -> Answer:
    """Change a link, unless someone else changed it since it was shown."""
    typed = read_link(call)

    def work(tx: Tx, project: str, name: str) -> None:
        body = checked(FEATURE_LINK, typed | {"title": typed["title"] or None})
        links.change(tx, project, name, unchanged_link(call, tx), body)

    return change_link(call, work)


def remove_link(call: ApiCall) -> Answer:
    """Remove a link, unless someone else changed it since it was shown."""
    return change_link(call, lambda tx, project, name: links.remove(tx, project, name, unchanged_link(call, tx)))


def unchanged_link(call: ApiCall, tx: Tx) -> str:
    """Return the id in the path. Raises ChangedMeanwhileError if the link is not as it was shown, or gone."""
    name, identity = call.params["featureName"], call.params["linkId"]
    held = links.links_of(tx, [name]).get(name, [])
    require_unchanged(next((each for each in held if each["id"] == identity), None), call.form.text("base"))
    return identity


ONE = "/flags/:featureName"
LINKS = f"{ONE}/edit/links"
TEMPLATE = "flag_edit.html"

ROUTES = (
    page(f"{ONE}/edit", edit_page, TEMPLATE, "The form of a flag."),
    change(f"{ONE}/edit", update, template=TEMPLATE, stands_for="patchFeature"),
    change(f"{ONE}/tags", change_tags, template=TEMPLATE, stands_for="updateTags"),
    change(f"{ONE}/archive", archive, template=TEMPLATE, stands_for="archiveFeature"),
    page(f"{ONE}/archived", show_archived, "flag_archived.html", "An archived flag."),
    change(f"{ONE}/revive", revive, stands_for="reviveFeatures"),
    change(LINKS, add_link, template=TEMPLATE, stands_for="createFeatureLink"),
    change(f"{LINKS}/:linkId", update_link, template=TEMPLATE, stands_for="updateFeatureLink"),
    change(f"{LINKS}/:linkId/remove", remove_link, template=TEMPLATE, stands_for="deleteFeatureLink"),
)
