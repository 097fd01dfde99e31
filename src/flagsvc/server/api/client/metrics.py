"""POST /api/client/metrics, /bulk: how often features were on and off (dialects: POST /api/client/metrics).

Counts belong to the environment of the report's token, and only those of the token's projects are stored. As on the real server,
a report with the right shape and unusable values gets a 400 without a body.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.client.register import DEFAULT_INSTANCE, MAX_NAME_LENGTH
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.shapes.client_bodies import BULK_METRICS, METRICS
from flagsvc.server.store.resources.applications import ALL, Registration, register
from flagsvc.server.store.resources.usage import MAX_COUNT, UsageCount, add_counts
from flagsvc.server.store.timestamps import parse_time

ACCEPTED = ApiAnswer(None, 202)
REJECTED = ApiAnswer(None, 400)
FRONTEND = "frontend"


def receive_metrics(call: ApiCall) -> ApiAnswer:
    """Add the counts of one instance, and register the instance."""
    body, token = call.body, call.token
    toggles = body["bucket"]["toggles"]
    if not is_name(body["appName"]) or not all(map(is_countable, toggles.values())):
        return REJECTED
    registration = Registration(
        app_name=body["appName"],
        environment=token.environment,
        instance_id=(body.get("instanceId") or DEFAULT_INSTANCE)[:MAX_NAME_LENGTH],
        projects=token.projects,
        client_ip=call.request.peer or None,
        registered=False,
    )
    with call.store.recording() as tx:
        register(tx, [registration])
        moment = parse_time(body["bucket"]["stop"], tx.now)
        counts = (read_count(name, body["appName"], token.environment, moment, each) for name, each in toggles.items())
        add_counts(tx, counts, token.covers)
    return ACCEPTED


def receive_bulk_metrics(call: ApiCall) -> ApiAnswer:
    """Add the counts of many instances, and register them; a server in between sends the report."""
    applications, metrics = call.body["applications"], call.body["metrics"]
    if not all(map(is_registration, applications)) or not all(map(is_report, metrics)):
        return REJECTED
    with call.store.recording() as tx:
        register(tx, [read_registration(each, tx.now, call.request.peer) for each in applications])
        add_counts(tx, read_counts(metrics, call.token.environment, tx.now), call.token.covers)
    return ACCEPTED


def read_counts(metrics: list[dict[str, Any]], environment: str, now: datetime) -> Iterator[UsageCount]:
    """Yield the counts of an environment; those without a time count as now."""
    for each in metrics:
        if each["environment"] == environment:
            yield read_count(
                each["featureName"], each["appName"], environment, parse_time(each.get("timestamp"), now), each
            )


def read_count(feature: str, app_name: str, environment: str, moment: datetime, counted: dict[str, Any]) -> UsageCount:
    """Return the counts of a feature, without variants whose names are empty or too long."""
    variants = {name: int(number) for name, number in (counted.get("variants") or {}).items() if is_name(name)}
    yes, no = (int(counted.get(name, 0)) for name in ("yes", "no"))
    return UsageCount(feature, app_name, environment, moment, yes, no, variants)


def read_registration(reported: dict[str, Any], now: datetime, peer: str) -> Registration:
    """Return the registration of an instance that a server in between reports."""
    return Registration(
        app_name=reported["appName"],
        environment=reported["environment"],
        instance_id=reported["instanceId"] or DEFAULT_INSTANCE,
        projects=tuple(reported.get("projects") or (ALL,)),
        strategies=tuple(name for name in reported["strategies"] if name) if "strategies" in reported else None,
        sdk_version=reported.get("sdkVersion"),
        sdk_type=reported.get("sdkType") or "backend",
        started=parse_time(reported["started"], now) if "started" in reported else None,
        client_ip=peer or None,
    )


def is_name(text: str) -> bool:
    """Return whether a text has the length of a name."""
    return 0 < len(text) <= MAX_NAME_LENGTH


def is_countable(counted: dict[str, Any]) -> bool:
    """Return whether counts are finite and not too large."""
    numbers = (counted.get("yes", 0), counted.get("no", 0), *(counted.get("variants") or {}).values())
    return all(math.isfinite(number) and number <= MAX_COUNT for number in numbers)


def is_report(counted: dict[str, Any]) -> bool:
    """Return whether the counts of one application can be stored."""
    return is_name(counted["appName"]) and bool(counted["environment"]) and is_countable(counted)


def is_registration(reported: dict[str, Any]) -> bool:
    """Return whether a registration is complete: valid names, and for a backend its start and its interval."""
    whole = "started" in reported and "interval" in reported
    names = (
        reported["appName"],
        reported["environment"],
        reported["instanceId"] or DEFAULT_INSTANCE,
        *(reported.get("projects") or ()),
    )
    return all(map(is_name, names)) and (whole or (reported.get("sdkType") == FRONTEND and "sdkVersion" in reported))


ROUTES = (
    Route(
        path="/api/client/metrics",
        method="POST",
        handler=receive_metrics,
        operation="registerClientMetrics",
        summary="Report how often flags were on and off.",
        tag="Client",
        auth=Auth.CLIENT,
        body=METRICS,
        status=202,
    ),
    Route(
        path="/api/client/metrics/bulk",
        method="POST",
        handler=receive_bulk_metrics,
        operation="clientBulkMetrics",
        summary="Report how often flags were on and off, for many applications in one request.",
        tag="Client",
        auth=Auth.CLIENT,
        body=BULK_METRICS,
        status=202,
    ),
)
