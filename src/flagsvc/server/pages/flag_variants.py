"""The variants of a flag in an environment: the form, who gets which variant before and after, and saving.

As in the admin API, only a flag that has variants in some environment gets new ones. Variants of strategies come before them.
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import check
from flagsvc.pages.forms import Form
from flagsvc.reasons.words import DEFAULT, words_of_variants
from flagsvc.server.api.admin.feature_environments import VARIANTS_PERMISSION
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages import variants_form
from flagsvc.server.pages.conditions import condition_choices
from flagsvc.server.pages.edits import Look, attempt, base_of, differences, press, require_unchanged
from flagsvc.server.pages.flag import require_flag
from flagsvc.server.pages.flags import is_protected, may
from flagsvc.server.pages.history import last_change
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.variants_form import STICKS_TO, Variants
from flagsvc.server.shapes.feature_bodies import VARIANTS
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import context_fields, feature_environments, feature_views
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx

PARTS = {"words": "Variants"}


def shown_of(stored: list[Json]) -> Json:
    """Return what the form shows of stored variants."""
    return {"variants": variants_form.rows_of(stored), STICKS_TO: variants_form.sticks_to(stored)}


def read_form(form: Form) -> Json:
    return {"variants": variants_form.read_rows(form), STICKS_TO: form.text(STICKS_TO) or DEFAULT}


def wanted_of(shown: Json, stored: list[Json]) -> list[Json]:
    """Return the variants of a form as the admin API takes them."""
    return variants_form.variants_of(shown["variants"], shown[STICKS_TO], stored)


def told(shown: Json) -> Json:
    """Return the variants of a form in one line, as one part of it."""
    return {"words": variants_form.told(shown["variants"], shown[STICKS_TO])}


def submit(call: ApiCall) -> Answer:
    """Do what the button of the form says: save, show what saving changes, or add or remove a variant."""
    shown = read_form(call.form)
    rows = shown["variants"]
    problems = partial(variants_form.problems_of_rows, rows)
    again = partial(show_page, call, shown)
    return press(call, [(variants_form.ROWS, rows)], lambda: save(call, shown), again, problems)


def save(call: ApiCall, shown: Json) -> Answer:
    """Save the variants in one transaction, unless someone else changed them since they were shown."""

    def work(tx: Tx) -> None:
        place = read_place(tx, call)
        stored = feature_environments.list_variants(tx, place)
        require_unchanged(stored, call.form.text("base"))
        feature_environments.replace_variants(tx, place, check(VARIANTS, wanted_of(shown, stored)))

    return attempt(call, work, partial(show_page, call, shown), "flags", call.params["featureName"])


def read_place(tx: Tx, call: ApiCall) -> StrategyPlace:
    """Return the place in the path. Raises CallerError (404) for an unknown flag."""
    name = call.params["featureName"]
    return StrategyPlace(require_flag(tx, name).project, name, call.params["environment"])


def show_page(call: ApiCall, typed: Json | None = None, look: Look | None = None) -> Answer:
    """Return the page of the form: with the typed values, or with the stored values. Raises CallerError (404)."""
    look = look or Look()
    with call.store.reading() as tx:
        place = read_place(tx, call)
        stored = feature_environments.list_variants(tx, place)
        states = feature_views.states_of(tx, [place.feature])[place.feature]
        own = shown_of(stored)
        shown = typed or own
        last = last_change(call, tx, look, "variants", feature=place.feature, environment=place.environment)
        choices = condition_choices(tx) | variants_form.offered(context_fields.list_choices(tx), shown[STICKS_TO])
    before, after = (Variants(stored, place.feature, own[STICKS_TO]), drawn(place, shown, stored))
    rest = [state for state in states if state.variants and state.environment != place.environment]
    data = {
        "flag": place.feature,
        "environment": place.environment,
        "protected": any(is_protected(state.type) for state in states if state.environment == place.environment),
        "form": shown,
        "words": words_of_variants(stored),
        "has_variants": bool(stored or rest),
        "is_last": not rest and not shown["variants"],
        "choices": choices,
        "preview": variants_form.preview(before, after) if look.preview and not look.problems else None,
        "base": base_of(call, typed, look, stored),
        "changed": look.conflict,
        "last_change": last,
        "conflict_rows": differences(PARTS, told(own), told(shown)) if look.conflict else [],
        "may": may(call, VARIANTS_PERMISSION, place.project, place.environment),
        "permission": VARIANTS_PERMISSION,
        "problems": look.problems,
    }
    return Answer(data, look.status)


def drawn(place: StrategyPlace, shown: Json, stored: list[Json]) -> Variants:
    """Return the variants of a form as clients draw them: in the group of the flag's name."""
    return Variants(wanted_of(shown, stored), place.feature, shown[STICKS_TO])


OWN = "/flags/:featureName/:environment/variants"
TEMPLATE = "flag_variants.html"

ROUTES = (
    page(OWN, show_page, TEMPLATE, "The variants of a flag in an environment."),
    change(OWN, submit, template=TEMPLATE, stands_for="overwriteEnvironmentFeatureVariants"),
)
