"""Creating a flag: alone, or switched on in environments with its first strategy, in one transaction with one undo.

An environment that needs confirmation asks first: the page comes back and says for whom the flag becomes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from flagsvc.http.answers import Answer
from flagsvc.pages.forms import Form
from flagsvc.reasons.words import words_of
from flagsvc.server.api.admin.features import TYPES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.conditions import (
    CONDITIONS,
    condition_choices,
    problems_of_rows,
    read_rows,
    shown_conditions,
    too_many_of_strategy,
)
from flagsvc.server.pages.edits import SAVE, Look, attempt, checked, digest_of, press, require_unchanged
from flagsvc.server.pages.flags import SWITCH, is_protected, may, production_first, project_choices
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.problems import Problem
from flagsvc.server.pages.strategy import CREATE as ADD_STRATEGY
from flagsvc.server.pages.strategy_form import FULL, body_of, empty_form, problems_of_rollout
from flagsvc.server.shapes.feature_bodies import CREATE_FEATURE, CREATE_STRATEGY
from flagsvc.server.store.checks import FLEXIBLE_ROLLOUT, Json
from flagsvc.server.store.resources import environments, feature_environments, features, projects, strategies
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx

CREATE = "CREATE_FEATURE"
OWN = ("name", "description", "type", "impressionData")
"""What of the form is the flag itself."""
ON = "on"
"""The field with the environments in which the flag is switched on."""
NOWHERE: Final = Problem("Tick where the flag is on for these users, or leave rollout and conditions as they were.", ON)
NOT_OFFERED: Final = Problem("Tick some of these environments.", ON)
EMPTY: Final[Json] = {
    "name": "",
    "description": "",
    "type": "release",
    "impressionData": False,
    ON: [],
    "rollout": str(FULL),
    "conditions": [CONDITIONS.empty],
}


def read_form(form: Form) -> Json:
    """Return what was typed. Empty conditions are left out where the flag is to be created."""
    rows, saves = read_rows(form), form.text("do") in ("", SAVE)
    return {
        **{name: form.text(name) for name in ("name", "description", "type")},
        "impressionData": form.has("impressionData"),
        ON: form.texts(ON),
        "rollout": form.text("rollout") if form.has("rollout") else EMPTY["rollout"],
        "conditions": [each for each in rows if not saves or each["field"] or each["text"].strip()],
    }


def strategy_of(typed: Json) -> Json:
    """Return the form of the first strategy."""
    return empty_form(FLEXIBLE_ROLLOUT, typed["name"]) | {name: typed[name] for name in ("rollout", "conditions")}


def asked_of(typed: Json) -> Json:
    """Return what the page asks about: where the flag is switched on, and for whom. The order of values does not matter."""
    strategy = body_of(strategy_of(typed), None)
    constraints = [each | {"values": sorted(each["values"])} for each in strategy["constraints"]]
    return strategy | {"constraints": constraints, ON: typed[ON]}


def offered(call: ApiCall, tx: Tx, project: str) -> list[Json]:
    """Return the environments of a project in which the caller may give a new flag a strategy, and switch it on."""
    own = projects.environments_of(tx, project)
    known = [each for each in environments.list_plain(tx) if each["name"] in own]
    return [
        {"name": each["name"], "protected": is_protected(each["type"])}
        for each in production_first(known)
        if all(may(call, needed, project, each["name"]) for needed in (ADD_STRATEGY, SWITCH))
    ]


def submit(call: ApiCall) -> Answer:
    """Create the flag, ask first, or change the form."""
    typed = read_form(call.form)
    rows, problems = [(CONDITIONS, typed["conditions"])], partial(find_problems, call, typed)
    return press(call, rows, partial(create, call, typed), partial(show_page, call, typed), problems)


def find_problems(call: ApiCall, typed: Json) -> Sequence[str]:
    """Return what is wrong with where the flag is switched on, and for whom."""
    if not typed[ON]:
        return [NOWHERE] if typed["conditions"] or typed["rollout"] != EMPTY["rollout"] else []
    with call.store.reading() as tx:
        known = [each["name"] for each in offered(call, tx, call.params["projectId"])]
        of_conditions = problems_of_rows(tx, call.form, typed["conditions"], (), too_many_of_strategy)
    of_places = [] if set(typed[ON]) <= set(known) else [NOT_OFFERED]
    return [*of_places, *problems_of_rollout(strategy_of(typed)), *of_conditions]


def create(call: ApiCall, typed: Json) -> Answer:
    """Create the flag in one transaction. Where an environment needs confirmation, ask first, once nothing else is wrong."""
    project, name = call.params["projectId"], typed["name"]

    def work(tx: Tx) -> None:
        features.create(tx, project, checked(CREATE_FEATURE, {each: typed[each] for each in OWN}))
        for environment in dict.fromkeys(typed[ON]):
            strategy = checked(CREATE_STRATEGY, body_of(strategy_of(typed), None))
            strategies.create(tx, StrategyPlace(project, name, environment), strategy)
            feature_environments.switch(tx, project, environment, [name], enabled=True)
        if environments.list_protected(tx).intersection(typed[ON]):
            require_unchanged(asked_of(typed), call.form.text("asked"))

    return attempt(call, work, partial(show_page, call, typed), "flags", name, changed=Look(preview=True))


def show_page(call: ApiCall, typed: Json | None = None, look: Look | None = None) -> Answer:
    """Return the form, for the project in the address. `preview` of the look says that it asks."""
    look, shown = look or Look(), typed or EMPTY
    with call.store.reading() as tx:
        listed = project_choices(tx)
        chosen = call.params.get("projectId") or call.first_value("project") or ""
        known = [each["value"] for each in listed]
        project = chosen if chosen in known or not known else known[0]
        data = {
            "form": shown | {"conditions": shown_conditions(tx, shown["conditions"])},
            "project": project,
            "projects": listed,
            "types": kinds(),
            "environments": offered(call, tx, project),
            "choices": condition_choices(tx),
        }
    asks = look.preview and not look.problems and shown[ON]
    rest = {"problems": look.problems, "question": question_of(shown) if asks else None}
    return Answer(data | rest | {"may": call.actor.may(CREATE, project=project), "permission": CREATE}, look.status)


def question_of(typed: Json) -> Json:
    """Return what the page asks before it creates the flag: for whom it becomes on, and the digest that says yes."""
    strategy = body_of(strategy_of(typed), None)
    return {"words": words_of(strategy, {}, typed["name"]), "asked": digest_of(asked_of(typed))}


def kinds() -> list[Json]:
    """Return the types of flags as choices."""
    return [{"value": identity, "text": name} for identity, name, *_ in TYPES]


TEMPLATE = "flag_new.html"
ROUTES = (
    page("/new-flag", show_page, TEMPLATE, "The form of a new flag."),
    page("/projects/:projectId/new-flag", show_page, TEMPLATE, "The form of a new flag of a project."),
    change("/projects/:projectId/new-flag", submit, template=TEMPLATE, stands_for="createFeature"),
)
