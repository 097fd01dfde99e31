"""Whether an import would succeed: what the server says, and what its import would refuse besides.

A server of ours tries the import itself. For others of the family the checks of an import run here, on what their admin API tells.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.facts import read_facts
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.refusals import CannotAskError

if TYPE_CHECKING:
    from flagsvc.server.store.batch.server_facts import ImportProblem

UNKNOWN_FORM = "what an import checks besides: the data has a form that this program does not know"
NO_FLAGS = "what an import checks besides: the token may not export flags"


class Findings(NamedTuple):
    """The server's three lists, what an import would refuse besides, and what could not be checked."""

    lists: dict[str, list[dict[str, Any]]]
    problems: list[ImportProblem]
    unchecked: list[str]

    @property
    def refused(self) -> bool:
        """Whether an import would fail."""
        return bool(self.lists["errors"] or self.lists["permissions"] or self.problems)

    @property
    def as_json(self) -> dict[str, Any]:
        """What programs read."""
        return self.lists | {"problems": [each._asdict() for each in self.problems], "unchecked": self.unchecked}


def findings(client: AdminClient, file: FlagFile, request: dict[str, Any]) -> Findings:
    """Return all that stands in the way of an import. Raises SchemaError, and CannotAskError where that is not known."""
    lists = session.validated(client, file, request)
    try:
        tried, refusal = client.try_import(request), ""
    except CannotAskError as error:
        if error.kind not in session.REFUSED:
            raise
        tried, refusal = True, str(error)
    if tried and not refusal:
        return Findings(lists, [], [])
    found = Findings(lists, *checked(client, request, limited_storage=not tried))
    if not tried:
        return found
    return found._replace(problems=found.problems or unexplained(lists, refusal), unchecked=[])


def show(found: Findings, request: Mapping[str, Any]) -> None:
    """Show what was found, every error with the flags it is about."""
    tables.problems(found.lists | {"errors": with_flags(found.lists["errors"], request)})
    tables.besides(found.problems, found.unchecked)


def unexplained(lists: dict[str, list[dict[str, Any]]], refusal: str) -> list[ImportProblem]:
    """Return what the server's trial said where nothing else says why."""
    from flagsvc.server.store.batch.server_facts import ImportProblem

    return [] if session.refused(lists) else [ImportProblem("refused", "", "", refusal)]


def checked(
    client: AdminClient, request: dict[str, Any], *, limited_storage: bool
) -> tuple[list[ImportProblem], list[str]]:
    """Return what the checks of an import find, and what they could not look at. Raises CannotAskError."""
    from flagsvc.server.store.batch.dataset import read_data_set
    from flagsvc.server.store.batch.problems import find_problems

    known = coerced(request)
    if known is None:
        return [], [UNKNOWN_FORM]
    data = read_data_set(known)
    facts = read_facts(client, data, limited_storage=limited_storage)
    return ([], [NO_FLAGS]) if facts is None else find_problems(data, facts)


def coerced(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return a request as servers read it: they take `"50"` for 50 and the other way round (import validation 2.1).

    None where it has not the form that is known here: a server of another version may take it.
    """
    from flagsvc.http.shapes import ShapeError, check
    from flagsvc.server.shapes.batch import IMPORT

    try:
        return cast(dict[str, Any], check(IMPORT, copy.deepcopy(request)))
    except ShapeError:
        return None


def with_flags(items: Iterable[Mapping[str, Any]], request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return errors of a validation whose items say which flags they are about."""
    known = coerced(dict(request))
    return [
        {"message": item["message"], "affectedItems": [told(each, users) for each in item["affectedItems"]]}
        for item in items
        for users in [{} if known is None else users_of(str(item["message"]), known["data"])]
    ]


def told(item: object, users: Mapping[str, list[str]]) -> str:
    """Return an item with the flags that it is about."""
    flags = users.get(str(item), [])
    return f"{item} (flag {', '.join(flags)})" if flags else str(item)


def users_of(message: str, data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the flags by the item that an error is about, for the errors whose items are no flags."""
    pairs = next((pairs(data) for word, pairs in ITEMS.items() if word in message), ())
    found: dict[str, list[str]] = {}
    for item, flag in dict.fromkeys(pairs):
        if flag:
            found.setdefault(item, []).append(flag)
    return found


def of_strategies(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return strategy types with the flags that have them."""
    return [(each["name"], each.get("featureName", "")) for each in data["featureStrategies"]]


def of_segments(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return segments with the flags that use them."""
    names = {each["id"]: each["name"] for each in data.get("segments", ())}
    return [
        (names[number], each.get("featureName", ""))
        for each in data["featureStrategies"]
        for number in each.get("segments") or ()
        if number in names
    ]


def of_fields(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return context fields with the flags that have constraints on them."""
    return [
        (constraint["contextName"], each.get("featureName", ""))
        for each in data["featureStrategies"]
        for constraint in each.get("constraints") or ()
    ]


def of_parents(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return parents with their children."""
    return [
        (parent["feature"], each["feature"]) for each in data.get("dependencies", ()) for parent in each["dependencies"]
    ]


ITEMS: dict[str, Callable[[Mapping[str, Any]], list[tuple[str, str]]]] = {
    "custom strategy that needs": of_strategies,
    "context fields that do not": of_fields,
    "segments that need": of_segments,
    "dependencies that need": of_parents,
}
"""Part of an error's message → what gives its items with the flags."""
