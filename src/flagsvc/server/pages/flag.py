"""One flag: every environment open, its strategies as sentences, and the switches."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from flagsvc.core.direction import isolate_marked
from flagsvc.engine.parse import parse_strategy
from flagsvc.engine.reading import as_object
from flagsvc.http.answers import Answer
from flagsvc.pages.templates import segment
from flagsvc.reasons.words import ROLLOUTS, rollout_of, words_of_variants
from flagsvc.server.api.admin.feature_environments import VARIANTS_PERMISSION
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Handler
from flagsvc.server.pages.flag_snippets import list_snippets
from flagsvc.server.pages.flag_use import read_use
from flagsvc.server.pages.flags import SWITCH, is_protected, may, production_first
from flagsvc.server.pages.notices import kept_notice
from flagsvc.server.pages.page import change, go_to, page, see_other
from flagsvc.server.pages.sign_in import local_page
from flagsvc.server.pages.tokens import public_root
from flagsvc.server.store.checks import Json, is_page_address
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources import events, favorites, feature_environments, feature_views, features, usage
from flagsvc.server.store.resources.events import EventSearch
from flagsvc.server.store.resources.feature_views import sentences_of
from flagsvc.server.store.store import Tx, read_tags

DEPEND = "UPDATE_FEATURE_DEPENDENCY"
EVERYONE = "everyone"
SHOWN_EVENTS = 5
"""The events on the page of a flag; the history has all."""
FOLD_LINES, FOLD_CHARACTERS = 3, 280
"""How much of a long description is seen at first."""


def show(call: ApiCall) -> Answer:
    """Return a flag; of an archived one, go to its own page."""
    name = call.params["featureName"]
    with call.store.reading() as tx:
        if require_flag(tx, name).archived_at is not None:
            return see_other(call, "flags", name, "archived", undo=kept_notice(call))
        flag = read_flag(tx, name)
        flag["environments"] = production_first(flag["environments"])
        flag["use"] = read_use(call, tx, name, flag["environments"])
        favorites.mark(tx, call.actor, [flag])
        flag["askedBy"] = usage.sum_by_application(tx, name)
        flag["history"], flag["events"] = read_history(tx, name)
    for state in flag["environments"]:
        state["may_switch"] = may(call, SWITCH, flag["project"], state["name"])
        state["may_add"] = may(call, "CREATE_FEATURE_STRATEGY", flag["project"], state["name"])
        state["may_vary"] = may(call, VARIANTS_PERMISSION, flag["project"], state["name"])
        state["may_order"] = may(call, "UPDATE_FEATURE_STRATEGY", flag["project"], state["name"])
    flag["folded"] = fold(flag["description"] or "")
    has_variants = any(each["variants"] for state in flag["environments"] for each in (state, *state["strategies"]))
    shown = {
        "flag": flag,
        "may_depend": call.actor.may(DEPEND, project=flag["project"]),
        "snippets": list_snippets(public_root(call), name, has_variants=has_variants),
        "hours": usage.SHOW_HOURS,
        "most": usage.MAX_APPLICATIONS,
    }
    return Answer(shown)


def fold(text: str) -> Json:
    """Return the first lines of a text, and the rest of one that is long."""
    lines = text.splitlines(keepends=True)
    first = "".join(lines[:FOLD_LINES])
    if len(first) > FOLD_CHARACTERS:
        end = first.rfind(" ", 1, FOLD_CHARACTERS)
        first = first[: end if end > 0 else FOLD_CHARACTERS]
    return {"first": first, "rest": text[len(first) :]}


def read_history(tx: Tx, name: str) -> tuple[list[Json], int]:
    """Return the last events of a flag with their sentences, and how many there are."""
    wanted = EventSearch(filters={"feature": [name]}, all_projects=True, limit=SHOWN_EVENTS)
    found, total = events.search(tx, wanted)
    shown = ("id", "createdAt", "createdBy", "way", "tokenName")
    return [{part: each[part] for part in shown} | {"words": isolate_marked(each["summary"])} for each in found], total


def read_flag(tx: Tx, name: str) -> Json:
    """Return a flag with the words of its strategies and variants. Raises CallerError (404)."""
    flag = feature_views.get(tx, require_flag(tx, name).project, name, with_variants=True)
    flag["tags"] = read_tags(tx.db, [name]).get(name, [])
    for link in flag["links"]:
        link["is_page"] = is_page_address(link["url"])
    for parent in flag["dependencies"]:
        parent["words"] = state_words(parent)
    words = sentences_of(tx, [name])
    for state in flag["environments"]:
        state["strategies"] = words.get((name, state["name"]), [])
        state["protected"] = is_protected(state["type"])
        state["variant_words"] = words_of_variants(state["variants"])
        for strategy in state["strategies"]:
            strategy["variant_words"] = words_of_variants(strategy["variants"])
            strategy["share"] = share_of(strategy)
    return flag


def share_of(strategy: Json) -> int | None:
    """Return the percentage of a rollout; None for another strategy."""
    spec = parse_strategy(as_object(dict(strategy), "strategy"), "strategy")
    return rollout_of(spec).share if spec.name in ROLLOUTS else None


def state_words(parent: Json) -> str:
    if not parent["enabled"]:
        return "which must be off"
    variants = " or ".join(parent["variants"])
    return f"which must be on with variant {variants}" if variants else "which must be on"


def require_flag(tx: Tx, name: str) -> Row[Any]:
    """Return the row of a flag. Raises CallerError (404)."""
    row = features.find(tx, name)
    if row is None:
        raise not_found(f"There is no flag {name}")
    return row


def ask(call: ApiCall) -> Answer:
    """Return the question before a switch: what will happen, in words."""
    return Answer(read_switch(call))


def read_switch(call: ApiCall) -> Json:
    """Return what a switch will do. Raises CallerError (404) for an unknown flag or environment."""
    name, environment = call.params["featureName"], call.params["environment"]
    with call.store.reading() as tx:
        flag = read_flag(tx, name)
    state = next((each for each in flag["environments"] if each["name"] == environment), None)
    if state is None:
        raise not_found(f"The flag {name} is not in the environment {environment}")
    active = [each["words"] for each in state["strategies"] if not each["disabled"]]
    return {
        "flag": flag["name"],
        "environment": environment,
        "enabled": state["enabled"],
        "words": active or [EVERYONE],
        "back": back_of(call.first_value("back")) or f"/flags/{segment(name)}",
    }


def back_of(text: str | None) -> str:
    """Return the page to go back to after a switch, below PAGES; empty for that of the flag."""
    return local_page(text) if text else ""


def switch(*, enabled: bool) -> Handler:
    """Return a handler that switches a flag on or off in an environment, and shows the flag."""

    def handler(call: ApiCall) -> Answer:
        name, environment = call.params["featureName"], call.params["environment"]
        with call.store.writing(call.actor, "page") as tx:
            project = require_flag(tx, name).project
            feature_environments.switch(tx, project, environment, [name], enabled=enabled)
        back = back_of(call.form.text("back"))
        return go_to(call, back, tx) if back else see_other(call, "flags", name, done=tx)

    return handler


ROUTES = (
    page("/flags/:featureName", show, "flag.html", "A flag."),
    page("/flags/:featureName/:environment/switch", ask, "switch.html", "The question before a switch."),
    *(
        change(
            f"/flags/:featureName/:environment/{'on' if enabled else 'off'}",
            switch(enabled=enabled),
            stands_for=f"toggleFeatureEnvironment{'On' if enabled else 'Off'}",
        )
        for enabled in (True, False)
    ),
)
