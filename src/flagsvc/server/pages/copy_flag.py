"""Copying a flag from an environment to several others: what changes in each, and then all of it in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from flagsvc.http.answers import Answer
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.compare import needs_of
from flagsvc.server.pages.edits import Look
from flagsvc.server.pages.flag import read_flag, require_flag
from flagsvc.server.pages.flags import production_first
from flagsvc.server.pages.notices import kept_notice
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.plans import preview_plans, submit_plans
from flagsvc.server.pages.problems import Problem
from flagsvc.server.store.batch.planning import ImportRequest, make_copies
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import bad_data
from flagsvc.server.store.store import Tx

SOURCE, TARGET = "from", "to"
NONE_TICKED: Final = Problem("Tick at least one environment to copy to.", TARGET)
ITSELF: Final = Problem("The flag cannot be copied to the environment that it is copied from.", TARGET)


def make_requests(call: ApiCall, tx: Tx) -> list[ImportRequest]:
    """Return the imports that copy the flag. Raises CallerError (400, 404)."""
    source, targets = call.form.text(SOURCE), call.form.texts(TARGET)
    if not targets:
        raise bad_data(NONE_TICKED)
    if source in targets:
        raise bad_data(ITSELF)
    return make_copies(tx, [call.params["featureName"]], source, dict.fromkeys(targets))


def submit(call: ApiCall) -> Answer:
    """Show what a copy changes, or copy."""
    name = call.params["featureName"]
    return submit_plans(call, partial(make_requests, call), partial(show_page, call), "flags", name)


def show_page(call: ApiCall, look: Look | None = None) -> Answer:
    """Return the form, with what a copy changes if the look has a preview; of an archived flag, go to its own page.

    The address may name the environment to copy from; else it is one where the flag is on.
    """
    look = look or Look()
    name = call.params["featureName"]
    with call.store.reading() as tx:
        if require_flag(tx, name).archived_at is not None:
            return see_other(call, "flags", name, "archived", undo=kept_notice(call))
        flag = read_flag(tx, name)
    found = preview_plans(call, partial(make_requests, call), look)
    names = [each["name"] for each in flag["environments"]]
    wanted = call.form.text(SOURCE) or call.first_value(SOURCE) or ""
    source = wanted if wanted in names else first_source(flag["environments"])
    targets = call.form.texts(TARGET) if call.form else only_target(names, source)
    for state in flag["environments"]:
        state["needs"] = needs_of(call, flag["project"], state["name"])
        state["ticked"] = state["name"] in targets
        state["words"] = [each["words"] for each in state["strategies"] if not each["disabled"]]
    changed = [] if found is None else [each["environment"] for each in found["plans"]]
    data = {
        "flag": flag,
        "source": source,
        "same": [] if found is None else [each for each in dict.fromkeys(targets) if each not in changed],
        "problems": look.problems,
        "changed": look.conflict,
        "found": found,
    }
    return Answer(data, look.status)


def first_source(states: Sequence[Json]) -> str:
    """Return the environment to copy from that the form offers: where the flag is on, production first; else the first one."""
    offered = [each for each in production_first(states) if each["enabled"]] or states
    return next((str(each["name"]) for each in offered), "")


def only_target(names: Sequence[str], source: str) -> Sequence[str]:
    """Return the environment to copy to, if the source has one beside it and no more."""
    others = [name for name in names if name != source]
    return others if len(others) == 1 else ()


TEMPLATE, OWN = "copy.html", "/flags/:featureName/copy"
ROUTES = (
    page(OWN, show_page, TEMPLATE, "The form to copy a flag to other environments."),
    change(OWN, submit, template=TEMPLATE, stands_for="importToggles"),
)
