"""`/api/admin/features-batch`: validate, import and export, as on the real server (import validation 4; 6; 7)."""

from __future__ import annotations

from flagsvc.core.errors import DatabaseError
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.shapes.batch import EXPORT_QUERY, EXPORT_RESULT, IMPORT, VALIDATION
from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.batch.exporting import export, note_export
from flagsvc.server.store.batch.importing import import_data
from flagsvc.server.store.batch.validate import validate
from flagsvc.server.store.batch.verify import check_importer

TAG = "Import/Export"
PLACE = "/api/admin/features-batch"


def validate_import(call: ApiCall) -> ApiAnswer:
    """Answer what an import would meet; nothing is written."""
    with call.store.reading() as tx:
        return ApiAnswer(validate(tx, call.actor, call.body, call.sent))


def import_features(call: ApiCall) -> ApiAnswer:
    """Import a data set, whole or not at all."""
    check_importer(call.actor)
    with call.store.writing(call.actor) as tx:
        import_data(tx, call.actor, call.body, call.sent)
    return ApiAnswer()


def try_import(call: ApiCall) -> ApiAnswer:
    """Answer as an import does, and change nothing. An admin token may ask."""
    with call.store.trying(call.actor) as tx:
        import_data(tx, call.actor, call.body, call.sent)
    return ApiAnswer()


def export_features(call: ApiCall) -> ApiAnswer:
    """Answer a data set."""
    with call.store.reading() as tx:
        result = export(tx, call.body)
    note(call, result)
    return ApiAnswer(result)


def note(call: ApiCall, result: Json) -> None:
    """Store that features were exported; the caller has them, so that a failure is only logged."""
    try:
        with call.store.noting() as tx:
            note_export(tx, call.actor, result)
    except DatabaseError as error:
        call.server.log.warn("an export is not noted", error=str(error))


ROUTES = (
    Route(
        path=f"{PLACE}/validate",
        method="POST",
        handler=validate_import,
        reads=True,
        operation="validateImport",
        summary="Validate a data set.",
        description="Tells whether a data set can be imported into a project and an environment: what is wrong, what is worth "
        "knowing, and which permissions the caller is missing. Nothing is written.",
        tag=TAG,
        body=IMPORT,
        result=VALIDATION,
    ),
    Route(
        path=f"{PLACE}/import",
        method="POST",
        handler=import_features,
        operation="importToggles",
        summary="Import a data set.",
        description="Imports features with their strategies, variants, tags, links and dependencies into a project and an "
        "environment, all of it or nothing. Takes the token of a user; an admin token is refused.",
        tag=TAG,
        body=IMPORT,
    ),
    Route(
        path=f"{PLACE}/import/dry-run",
        method="POST",
        handler=try_import,
        operation="tryImport",
        summary="Try an import.",
        description="Does all that an import of the same body does, gives its answer, and takes everything back: 200 means that "
        "the data can be imported. An admin token may ask as well, which an import refuses. No other server of the family has it.",
        tag=TAG,
        body=IMPORT,
    ),
    Route(
        path=f"{PLACE}/export",
        method="POST",
        handler=export_features,
        reads=True,
        operation="exportFeatures",
        summary="Export features.",
        description="Answers features by name, by tag or of a project, with what belongs to them in an environment: a data set "
        "that can be imported.",
        tag=TAG,
        body=EXPORT_QUERY,
        result=EXPORT_RESULT,
    ),
)
