"""Webhooks: the list, and the form of one; switching, testing and deleting it; what it has sent.

No page has a sensitive parameter: not the stored one, nor one that was just typed.
"""

from __future__ import annotations

from flagsvc.pages.forms import Form
from flagsvc.server.api.admin.addons import BODY, CREATE, DELETE, UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import (
    Look,
    attempt,
    changed_meanwhile,
    checked,
    differences,
    digest_of,
    require_unchanged,
)
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.store.actors import ADMIN
from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_kinds import KINDS, kind_of
from flagsvc.server.store.resources import environments, projects
from flagsvc.server.store.store import Tx
from flagsvc.server.webhooks import addons
from flagsvc.server.webhooks.deliveries import list_deliveries
from flagsvc.server.webhooks.provider import ALL, EVENT_TYPES, MASK, PARAMETERS, PROVIDER, is_open

LISTS = {"events": "Events", "projects": "Projects", "environments": "Environments"}
PARTS = (
    {"description": "Description", "enabled": "Sends events"}
    | {row.name: row.title for row in PARAMETERS if is_open(row.name)}
    | LISTS
)
"""The members that two versions of a form are compared by. What is sensitive is not shown."""
FIRST_EVENTS = ("feature-environment-enabled", "feature-environment-disabled", "feature-strategy-update")
"""The events that are ticked in the form of a new webhook."""
NEW: Json = {"description": "", "enabled": True, "events": list(FIRST_EVENTS), "projects": [], "environments": []}
SHOWN = 50
"""How many deliveries a page shows."""
CHANGED = "Someone else changed this webhook meanwhile. This is what it is now."


def list_all(call: ApiCall) -> ApiAnswer:
    """Return every webhook, and how it goes."""
    with call.store.reading() as tx:
        found = addons.list_addons(tx)
    return ApiAnswer({"webhooks": found, "may_create": call.actor.may(CREATE), "permission": CREATE})


def show(call: ApiCall) -> ApiAnswer:
    """Return the page of a webhook, or the form of a new one."""
    return show_page(call, None, Look())


def read_form(form: Form) -> Json:
    """Return what was typed."""
    parameters = {row.name: form.text(row.name) for row in PARAMETERS}
    lists = {name: form.texts(name) for name in LISTS}
    return {"description": form.text("description"), "enabled": form.has("enabled")} | parameters | lists


def shown_of(stored: Json | None) -> Json:
    """Return what the form shows of a webhook, with the mask in place of what is sensitive; None: of a new one."""
    found = (
        NEW if stored is None else {name: stored[name] for name in NEW} | {"description": stored["description"] or ""}
    )
    parameters = {} if stored is None else stored["parameters"]
    return found | {row.name: parameters.get(row.name, "") for row in PARAMETERS}


def body_of(shown: Json) -> Json:
    """Return what a form stands for, as the admin API takes it."""
    parameters = {row.name: shown[row.name] for row in PARAMETERS if shown[row.name]}
    return {"provider": PROVIDER, "parameters": parameters} | {name: shown[name] for name in NEW}


def settings_of(stored: Json | None) -> Json | None:
    """Return the settings of a webhook. How its deliveries go is none of them."""
    return None if stored is None else {name: value for name, value in stored.items() if name != "deliveries"}


def show_page(call: ApiCall, typed: Json | None, look: Look) -> ApiAnswer:
    """Return the page of the form: with what was typed, or with what is stored. Raises CallerError (404)."""
    number = row_id(call) if "id" in call.params else None
    with call.store.reading() as tx:
        stored = None if number is None else addons.find(tx, number)
        last = last_change(call, tx, look, "webhook", number)
        sees_all = call.actor.may(ADMIN)
        sent = list_deliveries(tx, number, SHOWN, 0) if number is not None and sees_all else []
        names = {"projects": [each["id"] for each in projects.list_names(tx)]}
        names["environments"] = [each["name"] for each in environments.list_plain(tx)]
    own = shown_of(stored)
    form = own if typed is None else {name: typed[name] if name in PARTS else own[name] for name in own}
    needed = CREATE if stored is None else UPDATE
    data = {
        "webhook": stored,
        "form": form,
        "parameters": [row.to_json() for row in PARAMETERS],
        "mask": MASK,
        "kinds": offered(EVENT_TYPES, form["events"]),
        "places": [{"name": name, "title": LISTS[name], "options": listed(names[name], form[name])} for name in names],
        "sent": [delivery_row(each) for each in sent],
        "sees_all": sees_all,
        "base": call.form.text("base") if typed is not None and not look.conflict else digest_of(settings_of(stored)),
        "changed": look.conflict,
        "last_change": last,
        "conflict_rows": differences(PARTS, in_words(own), in_words(form)) if look.conflict else [],
        "may": call.actor.may(needed),
        "permission": needed,
        "may_delete": call.actor.may(DELETE),
        "delete_permission": DELETE,
        "problems": look.problems,
        "again": typed is not None,
        "tested": call.first_value("tested") is not None,
    }
    return ApiAnswer(data, look.status)


def listed(known: list[str], chosen: list[str]) -> list[Json]:
    """Return boxes for names: those that are known, and those that are chosen."""
    names = list(dict.fromkeys((*known, *chosen)))
    return [{"value": name, "text": "all" if name == ALL else name, "ticked": name in chosen} for name in names]


def offered(known: tuple[str, ...], chosen: list[str]) -> list[Json]:
    """Return boxes for types of events, in words. A type that this server never writes is only there if it is chosen."""
    rows = listed(list(known), chosen)
    return [each | {"text": kind_of(each["value"]).label, "known": each["value"] in KINDS} for each in rows]


def in_words(form: Json) -> Json:
    """Return a form with its lists as texts."""
    lists = {name: ", ".join(sorted(form[name])) for name in LISTS}
    return form | lists | {"enabled": "yes" if form["enabled"] else "no"}


def delivery_row(sent: Json) -> Json:
    """Return what the page shows of a delivery: no more of its event than what happened."""
    event = sent["event"] or {}
    words = {
        "what": event.get("label", "an event that is deleted"),
        "summary": event.get("summary", "").replace("**", ""),
    }
    return {name: sent[name] for name in ("id", "createdAt", "state", "stateDetails", "details")} | words


def create(call: ApiCall) -> ApiAnswer:
    """Create a webhook."""
    typed = read_form(call.form)

    def work(tx: Tx) -> None:
        addons.create(tx, checked(BODY, body_of(typed)))

    return attempt(call, work, lambda look: show_page(call, typed, look), "webhooks")


def update(call: ApiCall) -> ApiAnswer:
    """Change a webhook, unless someone else changed it since it was shown."""
    number, typed = row_id(call), read_form(call.form)

    def work(tx: Tx) -> None:
        require_unchanged_webhook(call, tx, number)
        addons.change(tx, number, checked(BODY, body_of(typed)))

    return attempt(call, work, lambda look: show_page(call, typed, look), "webhooks", call.params["id"])


def require_unchanged_webhook(call: ApiCall, tx: Tx, number: int) -> Json:
    """Return a webhook that is as it was shown. Raises ChangedMeanwhileError, CallerError (404)."""
    stored = addons.find(tx, number)
    require_unchanged(settings_of(stored), call.form.text("base"))
    return stored


def switch(call: ApiCall) -> ApiAnswer:
    """Let a webhook send events, or not."""
    number = row_id(call)

    def work(tx: Tx) -> None:
        stored = addons.find(tx, number)
        addons.change(tx, number, stored | {"enabled": call.form.text("to") == "on"})

    return attempt(call, work, lambda look: show_page(call, None, look), "webhooks", call.params["id"])


def test(call: ApiCall) -> ApiAnswer:
    """Queue a test of a webhook."""
    with call.store.recording(call.actor) as tx:
        addons.queue_test(tx, row_id(call))
    return see_other(call, "webhooks", call.params["id"], tested="yes")


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a webhook, unless someone else changed it since it was shown."""
    number = row_id(call)

    def work(tx: Tx) -> None:
        require_unchanged_webhook(call, tx, number)
        addons.remove(tx, number)

    changed = changed_meanwhile(CHANGED, by_whom=True)
    return attempt(call, work, lambda look: show_page(call, None, look), "webhooks", changed=changed)


ONE = "webhook.html"
OWN = "/webhooks/:id"

ROUTES = (
    page("/webhooks", list_all, "webhooks.html", "The list of webhooks."),
    page("/new-webhook", show, ONE, "The form of a new webhook."),
    page(OWN, show, ONE, "The page of a webhook."),
    change("/new-webhook", create, "Create a webhook.", template=ONE, permission=CREATE, stands_for="createAddon"),
    change(OWN, update, "Change a webhook.", template=ONE, permission=UPDATE, stands_for="updateAddon"),
    change(f"{OWN}/switch", switch, "Switch a webhook.", template=ONE, permission=UPDATE, stands_for="updateAddon"),
    change(f"{OWN}/test", test, "Send a test with a webhook.", permission=UPDATE, stands_for="testAddon"),
    change(f"{OWN}/delete", remove, "Delete a webhook.", template=ONE, permission=DELETE, stands_for="deleteAddon"),
)
