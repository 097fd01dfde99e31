"""Webhooks: the list, and the form of one, with recipes for chats; switching, testing and deleting it; what it has sent.

No page has a sensitive parameter, neither a stored parameter nor a parameter that was just typed.
"""

from __future__ import annotations

from dataclasses import replace

from flagsvc.core.direction import isolate_marked
from flagsvc.http.answers import Answer
from flagsvc.pages.forms import Form
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, row_id
from flagsvc.server.pages.edits import Look, attempt, differences
from flagsvc.server.pages.page import change, see_other
from flagsvc.server.pages.problems import reasons_of
from flagsvc.server.pages.resource import Resource, Seen
from flagsvc.server.store.actors import ADMIN
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.event_kinds import KINDS, kind_of
from flagsvc.server.store.resources import environments, projects
from flagsvc.server.store.store import Tx
from flagsvc.server.webhooks import addons
from flagsvc.server.webhooks.addons import list_deliveries
from flagsvc.server.webhooks.provider import ALL, EVENT_TYPES, MASK, PARAMETERS, PROVIDER, URL, is_open
from flagsvc.server.webhooks.recipes import RECIPES
from flagsvc.server.webhooks.trials import Trial

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
OTHERS = "Others"
GROUPS = {
    "On and off": ("feature-environment-enabled", "feature-environment-disabled"),
    "Strategies and variants": ("feature-strategy-", "feature-environment-variants-", "strategy-order-"),
    "Flags": ("feature-", "features-"),
    "Tags, segments, context fields and strategy types": ("tag-", "segment-", "context-field-", "strategy-"),
    "Projects and environments": ("project-", "environment-"),
    "Tokens and users": ("api-token-", "pat-", "user-"),
    "The server": ("addon-", "setting-", "backup-"),
    OTHERS: ("",),
}
"""Title of a group of events → how their types begin. The first group that fits counts."""


def read(form: Form) -> Json:
    parameters = {row.name: form.text(row.name) for row in PARAMETERS}
    lists = {name: form.texts(name) for name in LISTS}
    return {"description": form.text("description"), "enabled": form.has("enabled")} | parameters | lists


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a webhook, with the mask in place of what is sensitive."""
    found = {name: stored[name] for name in NEW} | {"description": stored["description"] or ""}
    return found | {row.name: stored["parameters"].get(row.name, "") for row in PARAMETERS}


def body_of(shown: Json, _stored: Json | None) -> Json:
    """Return what a form stands for, as the admin API takes it."""
    parameters = {row.name: shown[row.name] for row in PARAMETERS if shown[row.name]}
    return {"provider": PROVIDER, "parameters": parameters} | {name: shown[name] for name in NEW}


def settings_of(stored: Json) -> Json:
    """Return the settings of a webhook. How its deliveries go is none of them."""
    return {name: value for name, value in stored.items() if name != "deliveries"}


def more(seen: Seen) -> Json:
    """Return the form without what is sensitive, what it offers, and what the webhook has sent."""
    call, tx = seen.call, seen.tx
    sees_all = call.actor.may(ADMIN)
    sent = list_deliveries(tx, seen.key, SHOWN, 0) if seen.stored is not None and sees_all else []
    names = {"projects": [each["id"] for each in projects.list_names(tx)]}
    names["environments"] = [each["name"] for each in environments.list_plain(tx)]
    form = seen.own | {name: value for name, value in seen.form.items() if name in PARTS}
    name = call.first_value("for") or ""
    recipe = RECIPES.get(name) if seen.stored is None and seen.typed is None else None
    form |= {} if recipe is None else recipe.parameters
    return {
        "webhook": seen.stored,
        "form": form,
        "parameters": [
            row.to_json() | ({"placeholder": recipe.url} if recipe is not None and row.name == URL else {}) for row in PARAMETERS
        ],
        "mask": MASK,
        "groups": grouped(offered(EVENT_TYPES, form["events"])),
        "places": [{"name": name, "title": LISTS[name], "options": listed(names[name], form[name])} for name in names],
        "sent": [delivery_row(each) for each in sent],
        "sees_all": sees_all,
        "again": seen.typed is not None,
        "tested": call.first_value("tested") is not None,
        "tried": None,
        "recipes": [{"name": each, "title": row.title, "chosen": row is recipe} for each, row in RECIPES.items()],
        "url_hint": "" if recipe is None else recipe.words,
    }


def listed(known: list[str], chosen: list[str]) -> list[Json]:
    """Return boxes for the known names and the chosen names."""
    names = list(dict.fromkeys((*known, *chosen)))
    return [{"value": name, "text": "all" if name == ALL else name, "ticked": name in chosen} for name in names]


def offered(known: tuple[str, ...], chosen: list[str]) -> list[Json]:
    """Return boxes for types of events, in words. A type that this server never writes needs to be chosen already."""
    rows = listed(list(known), chosen)
    return [each | {"text": kind_of(each["value"]).label, "known": each["value"] in KINDS} for each in rows]


def grouped(kinds: list[Json]) -> list[Json]:
    """Return types of events in their groups, without empty groups."""
    found: dict[str, list[Json]] = {title: [] for title in GROUPS}
    for each in kinds:
        found[group_of(each["value"])].append(each)
    return [{"title": title, "kinds": some} for title, some in found.items() if some]


def group_of(kind: str) -> str:
    """Return the title of the group that a type of events belongs to."""
    return next(title for title, beginnings in GROUPS.items() if kind.startswith(beginnings))


def in_words(form: Json) -> Json:
    """Return a form with its lists as texts."""
    lists = {name: ", ".join(sorted(form[name])) for name in LISTS}
    return form | lists | {"enabled": "yes" if form["enabled"] else "no"}


def delivery_row(sent: Json) -> Json:
    """Return what the page shows of a delivery: no more of its event than what happened."""
    event = sent["event"] or {}
    words = {
        "what": event.get("label", "an event that is deleted"),
        "summary": isolate_marked(event.get("summary", "")),
    }
    return {name: sent[name] for name in ("id", "createdAt", "state", "stateDetails", "details")} | words


def switch(call: ApiCall) -> Answer:
    """Let a webhook send events, or not."""
    number = row_id(call)

    def work(tx: Tx) -> None:
        stored = addons.find(tx, number)
        addons.change(tx, number, stored | {"enabled": call.form.text("to") == "on"})

    return attempt(call, work, lambda look: WEBHOOK.show_page(call, None, look), "webhooks", call.params["id"])


def try_typed(call: ApiCall) -> Answer:
    """Send a test with what was typed, which is not stored, and show how it came out: the answer to administrators only."""
    typed = read(call.form)
    shown = WEBHOOK.show_page(call, typed, Look())
    return replace(shown, body=shown.body | {"tried": send_typed(call, typed)._asdict()})


def send_typed(call: ApiCall, typed: Json) -> Trial:
    """Send a test with what was typed. The mask stands for what is stored. Raises CallerError (404)."""
    number = row_id(call) if "id" in call.params else None
    with call.store.reading() as tx:
        try:
            parameters = addons.checked_parameters(tx, number, body_of(typed, None)["parameters"])
        except CallerError as error:
            return Trial(False, " ".join(reasons_of(error, call.form)[1]).removesuffix("."))
        event = addons.make_sample(call.actor, tx.now)
    return call.server.trials.send(parameters, event, int(call.server.clock.now()), shows=call.actor.may(ADMIN))


def test(call: ApiCall) -> Answer:
    with call.store.recording(call.actor) as tx:
        addons.queue_test(tx, row_id(call))
    return see_other(call, "webhooks", call.params["id"], tested="yes")


WEBHOOK = Resource(
    name="webhook",
    plural="webhooks",
    key="id",
    read_key=row_id,
    members=("webhook", "webhooks"),
    operations=("createAddon", "updateAddon", "deleteAddon"),
    rows=addons.list_addons,
    find=addons.find,
    create=addons.create,
    change=addons.change,
    remove=addons.remove,
    new_form=NEW | dict.fromkeys([row.name for row in PARAMETERS], ""),
    shown_of=shown_of,
    read=read,
    body_of=body_of,
    compare=lambda theirs, mine: differences(PARTS, in_words(theirs), in_words(mine)),
    more=more,
    kept=settings_of,
    whole=lambda _tx, stored: settings_of(stored),
    sentence="Someone else changed this {} meanwhile. This is what it is now.",
    stays=True,
)


def trial(own: str, operation: str) -> Route:
    """Return the route that tests a form before it is saved. It changes nothing here."""
    return replace(WEBHOOK.form(f"{own}/try", try_typed, operation), reads=True)


ROUTES = (
    *WEBHOOK.routes(),
    WEBHOOK.form(f"{WEBHOOK.own}/switch", switch, "updateAddon"),
    change(f"{WEBHOOK.own}/test", test, stands_for="testAddon"),
    trial(WEBHOOK.own, "updateAddon"),
    trial("/new-webhook", "createAddon"),
)
