"""POST /api/client/register: an application registers itself (dialects: POST /api/client/register)."""

from __future__ import annotations

from flagsvc.http.reports import CLIENT_REGISTRATION, DEFAULT_INSTANCE, cut
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.resources.applications import Registration, register
from flagsvc.server.store.timestamps import parse_time


def register_client(call: ApiCall) -> ApiAnswer:
    """Store an application, its instance, and the token's projects and environment."""
    body = call.body
    with call.store.recording() as tx:
        registration = Registration(
            app_name=cut(body["appName"]),
            environment=call.token.environment,
            instance_id=cut(body.get("instanceId") or DEFAULT_INSTANCE),
            projects=call.token.projects,
            strategies=tuple(name for name in body["strategies"] if name),
            sdk_version=cut(body.get("sdkVersion") or "") or None,
            sdk_type="backend",
            started=parse_time(body["started"], tx.now),
            client_ip=call.request.peer or None,
        )
        register(tx, [registration])
    return ApiAnswer(None, 202)


ROUTES = (
    Route(
        path="/api/client/register",
        method="POST",
        handler=register_client,
        operation="registerClientApplication",
        summary="Register a running application and its SDK.",
        tag="Client",
        auth=Auth.CLIENT,
        body=CLIENT_REGISTRATION,
        status=202,
    ),
)
