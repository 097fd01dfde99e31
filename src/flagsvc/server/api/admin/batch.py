"""`/api/admin/features-batch`: validate, import and export, as on the real server (import validation 4; 6; 7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flagsvc.core.errors import DatabaseError
from flagsvc.core.state_export import about_state_export
from flagsvc.http.answers import Answer
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, reading
from flagsvc.server.shapes.batch import EXPORT_QUERY, EXPORT_RESULT, IMPORT, VALIDATION
from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.batch.exporting import export, record_export
from flagsvc.server.store.batch.importing import check_importer, import_data, validate
from flagsvc.server.store.writability import trouble

route = partial(Route, tag="Import/Export")
PATH = "/api/admin/features-batch"


def import_features(call: ApiCall) -> Answer:
    """Import a data set: all of it or nothing."""
    check_importer(call.actor)
    with call.store.writing(call.actor, "import") as tx:
        import_data(tx, call.actor, call.body, call.sent)
    return Answer()


def try_import(call: ApiCall) -> Answer:
    """Answer as an import would, and change nothing. Admin tokens are accepted."""
    with call.store.dry_run(call.actor) as tx:
        import_data(tx, call.actor, call.body, call.sent)
    return Answer()


def export_features(call: ApiCall) -> Answer:
    """Answer a data set."""
    return Answer(make_export(call, call.body))


def make_export(call: ApiCall, query: Mapping[str, Any]) -> Json:
    """Return the data set of a query, which has the shape of exportQuerySchema, and record the export."""
    with call.store.reading() as tx:
        result = export(tx, query)
    record(call, result)
    return result


def record(call: ApiCall, result: Json) -> None:
    """Store the event of an export. A failure is only logged, because the caller gets the export anyway."""
    try:
        with call.store.recording(call.actor) as tx:
            record_export(tx, result)
    except DatabaseError as error:
        trouble(call.server.log, error)("the event of an export could not be stored", error=str(error))


ROUTES = (
    route(
        path=f"{PATH}/validate",
        method="POST",
        handler=reading(lambda tx, call: validate(tx, call.actor, call.body, call.sent)),
        reads=True,
        operation="validateImport",
        summary="Validate a data set.",
        description="Reports whether a data set can be imported into a project and an environment: errors, warnings, and "
        "the permissions that the caller lacks. Nothing is written.",
        body=IMPORT,
        about_body=about_state_export,
        result=VALIDATION,
    ),
    route(
        path=f"{PATH}/import",
        method="POST",
        handler=import_features,
        operation="importToggles",
        summary="Import a data set.",
        description="Imports features with their strategies, variants, tags, links and dependencies into a project and an "
        "environment, all of it or nothing. Needs the token of a user; an admin token is rejected.",
        body=IMPORT,
        about_body=about_state_export,
    ),
    route(
        path=f"{PATH}/import/dry-run",
        method="POST",
        handler=try_import,
        operation="tryImport",
        summary="Try an import.",
        description="Runs an import of the same body, rolls it back, and gives its answer: 200 means that the data can be "
        "imported. Unlike an import, it accepts an admin token. No other server of the family has this endpoint.",
        body=IMPORT,
        about_body=about_state_export,
    ),
    route(
        path=f"{PATH}/export",
        method="POST",
        handler=export_features,
        reads=True,
        operation="exportFeatures",
        summary="Export features.",
        description="Answers features by name, by tag or of a project, with everything that belongs to them in an "
        "environment, as a data set for an import.",
        body=EXPORT_QUERY,
        result=EXPORT_RESULT,
    ),
)
