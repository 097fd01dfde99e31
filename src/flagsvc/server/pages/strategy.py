"""Editing a strategy of a flag in an environment: the form, what saving changes, saving, the order, and deleting.

The form works without script: each button sends all that was typed, and the page comes back with it. It carries a digest of the
stored strategy. So of two people who edit the same strategy, the second sees the change of the first, and nothing is lost.
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages import variants_form
from flagsvc.server.pages.conditions import (
    CONDITIONS,
    condition_choices,
    problems_of_rows,
    shown_conditions,
    too_many_of_strategy,
)
from flagsvc.server.pages.edits import (
    ChangedMeanwhileError,
    Look,
    attempt,
    changed_meanwhile,
    checked,
    press,
    require_unchanged,
)
from flagsvc.server.pages.flag import require_flag
from flagsvc.server.pages.flags import is_protected, may
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.resource import MAKE, may_any
from flagsvc.server.pages.segment import SEGMENT
from flagsvc.server.pages.strategy_form import (
    body_of,
    content_of,
    empty_form,
    problems_of_rollout,
    read_form,
    shown_of,
)
from flagsvc.server.pages.strategy_preview import differences, preview_of
from flagsvc.server.shapes import feature_bodies
from flagsvc.server.store.checks import FLEXIBLE_ROLLOUT, MAX_SEGMENTS, Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources import context_fields, feature_views, segments, strategies, strategy_types
from flagsvc.server.store.resources.feature_views import read_segment_specs
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx

CREATE, UPDATE, DELETE = "CREATE_FEATURE_STRATEGY", "UPDATE_FEATURE_STRATEGY", "DELETE_FEATURE_STRATEGY"
CHANGED = "It was not deleted: someone changed this strategy meanwhile. This is what it is now."


def submit(call: ApiCall) -> Answer:
    """Do what the button of the form says: save, show what saving changes, or change the form."""
    shown = read_form(call.form)
    rows = (CONDITIONS, shown["conditions"]), (variants_form.ROWS, shown["variants"])
    problems = partial(find_problems, call, shown)
    return press(call, rows, lambda: save(call, shown), partial(show_page, call, shown), problems)


def find_problems(call: ApiCall, shown: Json) -> list[str]:
    """Return what is wrong with a form, before it is saved. Raises CallerError (404)."""
    with call.store.reading() as tx:
        stored = find_strategy(tx, read_place(tx, call), call.params.get("strategyId"))
        before = [] if stored is None else stored["constraints"]
        of_conditions = problems_of_rows(tx, call.form, shown["conditions"], before, too_many_of_strategy)
    return [*problems_of_rollout(shown), *of_conditions, *variants_form.problems_of_rows(shown["variants"])]


def save(call: ApiCall, shown: Json) -> Answer:
    """Save a form in one transaction, unless someone else changed the strategy since it was shown."""
    identity = call.params.get("strategyId")

    def work(tx: Tx) -> None:
        place = read_place(tx, call)
        stored = find_strategy(tx, place, identity)
        if identity is not None:
            if stored is None:  # its form never makes a new one: that needs another permission
                raise ChangedMeanwhileError
            require_unchanged(content_of(stored), shown["base"])
        shape = feature_bodies.CREATE_STRATEGY if stored is None else feature_bodies.UPDATE_STRATEGY
        body = checked(shape, body_of(shown, stored))
        if stored is None:
            strategies.create(tx, place, body)
        else:
            strategies.change(tx, place, stored["id"], body)

    return attempt(call, work, partial(show_page, call, shown), "flags", call.params["featureName"])


def read_place(tx: Tx, call: ApiCall) -> StrategyPlace:
    """Return the place in the path. Raises CallerError (404) for an unknown flag."""
    name = call.params["featureName"]
    return StrategyPlace(require_flag(tx, name).project, name, call.params["environment"])


def find_strategy(tx: Tx, place: StrategyPlace, identity: str | None) -> Json | None:
    """Return a strategy of a place; None if it does not have it. Raises CallerError (404) for an unknown environment."""
    listed = strategies.list_all(tx, place.feature, place.environment)
    return next((each for each in listed if each["id"] == identity), None)


def show_page(call: ApiCall, typed: Json | None = None, look: Look | None = None) -> Answer:
    """Return the page of the form: with the typed values, or with the stored values. Raises CallerError (404)."""
    look = look or Look()
    identity = call.params.get("strategyId")
    with call.store.reading() as tx:
        place = read_place(tx, call)
        listed = strategies.list_all(tx, place.feature, place.environment)
        stored = next((each for each in listed if each["id"] == identity), None)
        if typed is None and identity is not None and stored is None:
            raise not_found(f"The flag {place.feature} has no such strategy in {place.environment}")
        shown = typed or (new_form(tx, call, place) if stored is None else shown_of(stored))
        specs = read_segment_specs(tx)
        state = next(
            row for row in feature_views.states_of(tx, [place.feature])[place.feature] if row.environment == place.environment
        )
        others = [each for each in listed if each is not stored]
        gone = identity is not None and stored is None
        data = {
            "flag": place.feature,
            "environment": place.environment,
            "protected": is_protected(state.type),
            "strategy": None if stored is None else stored["id"],
            "base": shown["base"] if stored is None or not look.conflict else shown_of(stored)["base"],
            "gone": gone,
            "form": shown | {"conditions": shown_conditions(tx, shown["conditions"])},
            "choices": choices(tx, place, shown) | {"may_segment": may_any(call, SEGMENT.needs(MAKE), place.project)},
            "project": place.project,
            "problems": look.problems,
            "conflict_rows": differences(shown_of(stored), shown, specs) if look.conflict and stored is not None else [],
            "changed": look.conflict,
            "last_change": last_change(call, tx, look, "strategy", identity, feature=place.feature, environment=place.environment),
            "preview": preview_of(place.feature, stored, body_of(shown, stored), others, specs, enabled=state.enabled)
            if look.preview and not look.problems
            else None,
            "last": stored is not None and all(each["disabled"] for each in others) and state.enabled,
        }
    needed = CREATE if stored is None else UPDATE
    rights = {"may": may(call, needed, place.project, place.environment), "permission": needed}
    rights |= {"may_delete": may(call, DELETE, place.project, place.environment)}
    return Answer(data | rights, look.status)


def new_form(tx: Tx, call: ApiCall, place: StrategyPlace) -> Json:
    """Return the form of a new strategy of the type in the address, with the parameters of that type."""
    name = call.first_value("type") or FLEXIBLE_ROLLOUT
    shown = empty_form(name, place.feature)
    return shown | {"parameters": dict.fromkeys(parameters_of(tx, name), "")}


def parameters_of(tx: Tx, name: str) -> list[str]:
    """Return the names of the parameters of a strategy type that have no fields of their own."""
    if name == FLEXIBLE_ROLLOUT:
        return []
    return [each["name"] for each in strategy_types.find(tx, name)["parameters"]]


def choices(tx: Tx, place: StrategyPlace, shown: Json) -> Json:
    """Return what the form offers: operators, fields, what to stick to, segments of the project, and strategy types."""
    fields = context_fields.list_choices(tx)
    usable = [each for each in segments.list_segments(tx) if each.get("project") in (None, place.project)]
    return (
        condition_choices(tx)
        | variants_form.offered(fields, shown[variants_form.STICKS_TO])
        | {
            "stickiness": variants_form.sticky_names(fields, shown["stickiness"]),
            "segments": [{"value": str(each["id"]), "text": each["name"]} for each in usable],
            "segment_places": list(range(min(len(shown["segments"]) + 1, MAX_SEGMENTS))),
            "types": [each["name"] for each in strategy_types.list_types(tx) if not each["deprecated"]],
        }
    )


def move(call: ApiCall) -> Answer:
    """Move a strategy one place up or down. Raises CallerError (404)."""
    step = {"up": -1, "down": 1}.get(call.form.text("do"), 0)
    with call.store.writing(call.actor, "page") as tx:
        place = read_place(tx, call)
        order = [each["id"] for each in strategies.list_all(tx, place.feature, place.environment)]
        identity = call.params["strategyId"]
        if identity not in order:
            raise not_found(f"The flag {place.feature} has no such strategy in {place.environment}")
        at = order.index(identity)
        order.insert(max(0, at + step), order.pop(at))
        strategies.sort(tx, place, [{"id": each, "sortOrder": number} for number, each in enumerate(order)])
    return see_other(call, "flags", place.feature, done=tx)


def remove(call: ApiCall) -> Answer:
    """Delete a strategy, unless someone else changed it since it was shown."""

    def work(tx: Tx) -> None:
        place = read_place(tx, call)
        stored = find_strategy(tx, place, call.params["strategyId"])
        if stored is not None:
            require_unchanged(content_of(stored), call.form.text("base"))
            strategies.remove(tx, place, stored["id"])

    changed = changed_meanwhile(CHANGED)
    again = partial(show_page, call, None)
    return attempt(call, work, again, "flags", call.params["featureName"], changed=changed)


PATH = "/flags/:featureName/:environment/strategies"
ONE = f"{PATH}/:strategyId"
TEMPLATE = "strategy.html"

ROUTES = (
    page(f"{PATH}/new", show_page, TEMPLATE, "The form of a new strategy."),
    page(ONE, show_page, TEMPLATE, "The form of a strategy."),
    change(f"{PATH}/new", submit, template=TEMPLATE, stands_for="addFeatureStrategy"),
    change(ONE, submit, template=TEMPLATE, stands_for="updateFeatureStrategy"),
    change(f"{ONE}/move", move, stands_for="setStrategySortOrder"),
    change(f"{ONE}/delete", remove, template=TEMPLATE, stands_for="deleteFeatureStrategy"),
)
