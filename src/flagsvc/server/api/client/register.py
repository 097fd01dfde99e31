"""POST /api/client/register: an application registers itself (dialects: POST /api/client/register)."""

from __future__ import annotations

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.shapes.client_bodies import REGISTRATION
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources.applications import Registration, register
from flagsvc.server.store.timestamps import parse_time

MAX_NAME_LENGTH = 255
"""The most characters of the name of an application or instance."""
DEFAULT_INSTANCE = "default"


def register_client(call: ApiCall) -> ApiAnswer:
    """Store an application, its instance, and the token's projects and environment. Raises `CallerError` (400)."""
    body = call.body
    wrong = [
        f'"{name}" {problem}'
        for name in ("appName", "sdkVersion", "instanceId")
        if (problem := text_problem(body, name))
    ]
    if wrong:
        raise CallerError("BadDataError", INVALID, [{"message": each} for each in wrong])
    with call.store.recording() as tx:
        registration = Registration(
            app_name=body["appName"],
            environment=call.token.environment,
            instance_id=body.get("instanceId") or DEFAULT_INSTANCE,
            projects=call.token.projects,
            strategies=tuple(name for name in body["strategies"] if name),
            sdk_version=body.get("sdkVersion"),
            sdk_type="backend",
            started=parse_time(body["started"], tx.now),
            client_ip=call.request.peer or None,
        )
        register(tx, [registration])
    return ApiAnswer(None, 202)


def text_problem(body: dict[str, object], name: str) -> str:
    """Return what is wrong with a text of the body; empty for a valid one."""
    value = str(body.get(name, "unsaid"))
    if not value and name != "instanceId":
        return "is not allowed to be empty."
    return (
        ""
        if len(value) <= MAX_NAME_LENGTH
        else f"length must be less than or equal to {MAX_NAME_LENGTH} characters long."
    )


ROUTES = (
    Route(
        path="/api/client/register",
        method="POST",
        handler=register_client,
        operation="registerClientApplication",
        summary="Register a running application and its SDK.",
        tag="Client",
        auth=Auth.CLIENT,
        body=REGISTRATION,
        status=202,
    ),
)
