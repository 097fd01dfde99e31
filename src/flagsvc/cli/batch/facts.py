"""Reads the facts for the checks of an import from a flag server's admin API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.batch.server_errors import AdminApiError

if TYPE_CHECKING:
    from flagsvc.server.store.batch.dataset import DataSet
    from flagsvc.server.store.batch.server_facts import ServerFacts, ServerFlag

UNANSWERED = ("forbidden", "not-found", "refused", "no-flag-server", "unexpected", "server")
"""Kinds of errors that mean that the server or the token does not allow a request; other errors end the command."""


def read_facts(client: AdminClient, data: DataSet, *, limited_storage: bool) -> ServerFacts | None:
    """Return the server's facts for a data set; None if it does not export its flags. Raises AdminApiError."""
    from flagsvc.server.store.batch.server_facts import ServerFacts

    flags = read_flags(client, data)
    if flags is None:
        return None
    types = client.names("/api/admin/tag-types", "tagTypes", "name")
    return ServerFacts(
        flags=flags,
        environments=read_environments(client, data.project),
        tag_types=None if types is None else frozenset(types),
        context_fields=read_legal_values(client),
        limited_storage=limited_storage,
    )


def read_flags(client: AdminClient, data: DataSet) -> dict[str, ServerFlag] | None:
    """Return the server's flags that a data set names, by an export; None if the server does not allow that."""
    from flagsvc.server.store.batch.dataset import list_requested_dependencies
    from flagsvc.server.store.batch.server_facts import ServerFlag

    names = sorted(name for name in list_named_flags(data) if name and "\0" not in name)
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
        each["name"]: ServerFlag(
            project=each.get("project", ""),
            archived=bool(each.get("archived")),
            in_environment=each["name"] in in_environment,
            has_parents=each["name"] in parented,
            has_children=each["name"] in children and has_children(client, each),
        )
        for each in found.get("features", ())
    }


def list_named_flags(data: DataSet) -> set[str]:
    """Return the names of all flags in a data set."""
    return {
        *data.names,
        *data.parents,
        *(each.get("featureName", "") for each in (*data.strategies, *data.environments, *data.tags)),
        *(each["name"] for each in data.environments),
        *(each["feature"] for each in (*data.links, *data.dependencies)),
    }


def has_children(client: AdminClient, feature: Mapping[str, Any]) -> bool:
    """Return whether other flags depend on a flag."""
    project, name = (quote(str(feature.get(key)), safe="") for key in ("project", "name"))
    value = client.value(f"/api/admin/projects/{project}/features/{name}")
    return bool(isinstance(value, dict) and value.get("children"))


def read_environments(client: AdminClient, project: str) -> frozenset[str] | None:
    """Return the environments of a project; None if they are unknown."""
    value = client.value(f"/api/admin/environments/project/{quote(project, safe='', errors='replace')}")
    rows = value.get("environments") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None
    return frozenset(str(row.get("name")) for row in rows if isinstance(row, dict) and row.get("visible", True))


def read_legal_values(client: AdminClient) -> dict[str, list[str]] | None:
    """Return the legal values of every context field, by name; None if they are unknown."""
    rows = client.value("/api/admin/context")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
        return None
    return {str(row["name"]): [str(each.get("value")) for each in row.get("legalValues") or ()] for row in rows}
