"""Checks whether an import would succeed: by the server's validation, and by the checks of the import itself.

A flagsvc server tries the import. For other servers of the family the checks run here, with data from their admin API.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient, feature_path, quote_path_part
from flagsvc.cli.batch.files import FlagFile
from flagsvc.cli.batch.server_errors import AdminApiError
from flagsvc.server.store.batch.dataset import DataSet, list_requested_dependencies, read_data_set
from flagsvc.server.store.batch.facts import Facts, ImportProblem, KnownContextField, KnownFeature

UNKNOWN_FORM = "what an import checks besides: the data has a form that this program does not know"
NO_FLAGS = "what an import checks besides: the token may not export flags"


class Findings(NamedTuple):
    """The server's three lists, further problems of an import, and what could not be checked."""

    lists: dict[str, list[dict[str, Any]]]
    problems: list[ImportProblem]
    unchecked: list[str]

    @property
    def refused(self) -> bool:
        """Whether an import would fail."""
        return bool(self.lists["errors"] or self.lists["permissions"] or self.problems)

    @property
    def as_json(self) -> dict[str, Any]:
        return self.lists | {"problems": [each._asdict() for each in self.problems], "unchecked": self.unchecked}


def check_import(client: AdminClient, file: FlagFile, request: dict[str, Any]) -> Findings:
    """Return everything that prevents an import. Raises SchemaError, and AdminApiError if that is unknown."""
    lists = session.validate_request(client, file, request)
    try:
        tried, refusal = client.try_import(request), ""
    except AdminApiError as error:
        if error.kind not in session.REJECTIONS:
            raise
        tried, refusal = True, str(error)
    if tried and not refusal:
        return Findings(lists, [], [])
    found = Findings(lists, *run_import_checks(client, request, limited_storage=not tried))
    if not tried:
        return found
    unexplained = [] if found.refused else [ImportProblem("refused", "", "", refusal)]
    return found._replace(problems=found.problems or unexplained, unchecked=[])


def show(found: Findings, request: Mapping[str, Any]) -> None:
    """Show the findings, each error with its flags."""
    tables.show_problems(found.lists | {"errors": with_flags(found.lists["errors"], request)})
    tables.show_import_problems(found.problems, found.unchecked)


def run_import_checks(
    client: AdminClient, request: dict[str, Any], *, limited_storage: bool
) -> tuple[list[ImportProblem], list[str]]:
    """Return the problems that the checks of an import find, and what they could not check. Raises AdminApiError."""
    from flagsvc.server.store.batch.rules import find_problems

    known = coerce_request(request)
    if known is None:
        return [], [UNKNOWN_FORM]
    data = read_data_set(known)
    facts = read_facts(client, data, limited_storage=limited_storage)
    return ([], [NO_FLAGS]) if facts is None else find_problems(data, facts)


def coerce_request(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return a request as servers read it: they take `"50"` for 50 and the other way round (import validation 2.1).

    None for an unknown form, which a server of another version may accept.
    """
    from flagsvc.http.shapes import ShapeError, check
    from flagsvc.server.shapes.batch import IMPORT

    try:
        return cast(dict[str, Any], check(IMPORT, copy.deepcopy(request)))
    except ShapeError:
        return None


def with_flags(items: Iterable[Mapping[str, Any]], request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return errors of a validation with the flags of each item."""
    known = coerce_request(dict(request))
    found = []
    for item in items:
        users = {} if known is None else flags_by_item(str(item["message"]), known["data"])
        shown = ((str(each), ", ".join(users.get(str(each), ()))) for each in item["affectedItems"])
        affected = [f"{each} (flag {flags})" if flags else each for each, flags in shown]
        found.append({"message": item["message"], "affectedItems": affected})
    return found


def flags_by_item(message: str, data: Mapping[str, Any]) -> dict[str, list[str]]:
    pairs = next((pairs(data) for word, pairs in ITEMS.items() if word in message), ())
    found: dict[str, list[str]] = {}
    for item, flag in dict.fromkeys(pairs):
        if flag:
            found.setdefault(item, []).append(flag)
    return found


def flags_of_segments(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = {each["id"]: each["name"] for each in data.get("segments", ())}
    return [
        (names[number], each.get("featureName", ""))
        for each in data["featureStrategies"]
        for number in each.get("segments") or ()
        if number in names
    ]


ITEMS: dict[str, Callable[[Mapping[str, Any]], list[tuple[str, str]]]] = {
    "custom strategy that needs": lambda data: [(each["name"], each.get("featureName", "")) for each in data["featureStrategies"]],
    "context fields that do not": lambda data: [
        (constraint["contextName"], each.get("featureName", ""))
        for each in data["featureStrategies"]
        for constraint in each.get("constraints") or ()
    ],
    "segments that need": flags_of_segments,
    "dependencies that need": lambda data: [
        (parent["feature"], each["feature"]) for each in data.get("dependencies", ()) for parent in each["dependencies"]
    ],
}
"""Part of an error's message → the function that returns its items with the flags."""


UNANSWERED = ("forbidden", "not-found", "refused", "no-flag-server", "unexpected", "server")
"""Kinds of errors that mean that the server or the token does not allow a request; other errors end the command."""


def read_facts(client: AdminClient, data: DataSet, *, limited_storage: bool) -> Facts | None:
    """Return the server's facts for a data set; None if it does not export its flags. Raises AdminApiError."""
    features = read_features(client, data)
    if features is None:
        return None
    found: dict[str, Any] = {
        "environments": read_environments(client, data.project),
        "tag_types": client.names("/api/admin/tag-types", "tagTypes", "name"),
        "context_fields": read_context_fields(client),
    }
    known = {name: value for name, value in found.items() if value is not None}
    return Facts(features, limited_storage=limited_storage, unknown=found.keys() - known.keys(), **known)


def read_features(client: AdminClient, data: DataSet) -> dict[str, KnownFeature] | None:
    """Return the server's flags that a data set names, by an export; None if the server does not allow that."""
    names = sorted(name for name in data.all_names if name and "\0" not in name)
    try:
        found = client.export({"environment": data.environment, "features": names}) if names else {}
    except AdminApiError as error:
        if error.kind not in UNANSWERED:
            raise
        return None
    in_environment = {each["featureName"] for each in found.get("featureEnvironments", ())}
    parented = {each["feature"] for each in found.get("dependencies", ())}
    children = {wish.child for wish in list_requested_dependencies(data)}
    return {
        each["name"]: KnownFeature(
            project=each.get("project", ""),
            archived=bool(each.get("archived")),
            in_environment=each["name"] in in_environment,
            has_parents=each["name"] in parented,
            has_children=each["name"] in children and has_children(client, each),
        )
        for each in found.get("features", ())
    }


def has_children(client: AdminClient, feature: Mapping[str, Any]) -> bool:
    """Return whether other flags depend on a flag."""
    value = client.value(feature_path(feature.get("project"), feature.get("name")))
    return bool(isinstance(value, dict) and value.get("children"))


def read_environments(client: AdminClient, project: str) -> frozenset[str] | None:
    """Return the environments of a project; None if they are unknown."""
    value = client.value(f"/api/admin/environments/project/{quote_path_part(project)}")
    rows = value.get("environments") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None
    return frozenset(str(row.get("name")) for row in rows if isinstance(row, dict) and row.get("visible", True))


def read_context_fields(client: AdminClient) -> dict[str, KnownContextField] | None:
    """Return every context field, by name; None if they are unknown."""
    rows = client.value("/api/admin/context")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
        return None
    return {
        str(row["name"]): KnownContextField(row.get("project"), {str(each.get("value")) for each in row.get("legalValues") or ()})
        for row in rows
    }
