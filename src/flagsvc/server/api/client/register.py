"""POST /api/client/register: an application tells that it runs (dialects: POST /api/client/register)."""

from __future__ import annotations

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.client.bodies import REGISTRATION
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.moments import read
from flagsvc.server.store.nouns.applications import Registration, register
from flagsvc.server.store.refusals import Refusal

LONGEST = 255
"""Characters of a name of an application or instance."""
DEFAULT_INSTANCE = "default"


def register_client(call: ApiCall) -> ApiAnswer:
    """Note an application, its instance and what its token shows it. Raises `Refusal` (400)."""
    body = call.body
    wrong = [
        f'"{name}" {problem}' for name in ("appName", "sdkVersion", "instanceId") if (problem := fault(body, name))
    ]
    if wrong:
        raise Refusal("BadDataError", INVALID, [{"message": each} for each in wrong])
    with call.store.noting() as tx:
        told = Registration(
            app_name=body["appName"],
            environment=call.token.environment,
            instance_id=body.get("instanceId") or DEFAULT_INSTANCE,
            projects=call.token.projects,
            strategies=tuple(name for name in body["strategies"] if name),
            sdk_version=body.get("sdkVersion"),
            sdk_type="backend",
            started=read(body["started"], tx.now),
            client_ip=call.request.peer or None,
        )
        register(tx, [told])
    return ApiAnswer(None, 202)


def fault(body: dict[str, object], name: str) -> str:
    """Return what is wrong with a text of the body; empty where nothing is."""
    value = str(body.get(name, "unsaid"))
    if not value and name != "instanceId":
        return "is not allowed to be empty."
    return "" if len(value) <= LONGEST else f"length must be less than or equal to {LONGEST} characters long."


ROUTES = (
    Route(
        path="/api/client/register",
        method="POST",
        handler=register_client,
        operation="registerClientApplication",
        summary="Tell that an application runs, and with which SDK.",
        tag="Client",
        auth=Auth.CLIENT,
        body=REGISTRATION,
        status=202,
    ),
)
