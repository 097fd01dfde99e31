"""What clients report: usage (dialects: POST /api/client/metrics), and their registration (dialects: POST /api/client/register).

Counts belong to the environment of the report's token, and only those of the token's projects are stored. What cannot be read of
a report is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from flagsvc.http.answers import Answer
from flagsvc.http.reports import (
    BULK,
    CLIENT_METRICS,
    CLIENT_REGISTRATION,
    DEFAULT_INSTANCE,
    Entry,
    ReportedUsage,
    count_malformed,
    cut,
    is_name,
    read_toggles,
    read_usage,
)
from flagsvc.server.api.call import ENTRIES, ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.actors import ClientToken
from flagsvc.server.store.resources.applications import ALL, Registration, register
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from flagsvc.server.store.timestamps import parse_time

ACCEPTED = Answer(None, 202)


def receive_metrics(call: ApiCall) -> Answer:
    """Add the counts of one instance, and register the instance."""
    body, token = call.body, call.token
    app_name, stop = cut(body["appName"]), (body.get("bucket") or {}).get("stop")
    reported, malformed = read_toggles(body)
    call.server.malformed.add(ENTRIES, malformed)
    registration = Registration(
        app_name=app_name,
        environment=token.environment,
        instance_id=cut(body.get("instanceId") or DEFAULT_INSTANCE),
        projects=token.projects,
        client_ip=call.request.peer or None,
        registered=False,
    )
    with call.store.recording() as tx:
        register(tx, [registration])
        moment = parse_time(stop, tx.now)
        add_counts(tx, (count_usage(each, app_name, token.environment, moment) for each in reported), token.covers)
    return ACCEPTED


def receive_bulk_metrics(call: ApiCall) -> Answer:
    """Add the counts of many instances, and register them; a server in between sends the report."""
    applications: list[Entry] = call.body["applications"]
    metrics: list[Entry] = call.body["metrics"]
    call.server.malformed.add(ENTRIES, count_malformed(metrics, applications))
    with call.store.recording() as tx:
        register(tx, [read_registration(each, call.token, tx.now, call.request.peer) for each in applications if each])
        add_counts(tx, read_counts(metrics, call.token.environment, tx.now), call.token.covers)
    return ACCEPTED


def read_counts(metrics: list[Entry], environment: str, now: datetime) -> Iterator[UsageCount]:
    """Yield the counts of an environment; those without a time count as now."""
    for each in metrics:
        if each and (each.get("environment") or environment) == environment:
            moment = parse_time(each.get("timestamp"), now)
            yield count_usage(read_usage(each["featureName"], each), cut(each["appName"]), environment, moment)


def count_usage(reported: ReportedUsage, app_name: str, environment: str, moment: datetime) -> UsageCount:
    """Return the counts of a feature, without variants whose names are empty or too long."""
    variants = {name: number for name, number in reported.variants.items() if is_name(name)}
    return UsageCount(reported.name, app_name, environment, moment, reported.yes, reported.no, variants)


def read_registration(reported: dict[str, Any], token: ClientToken, now: datetime, peer: str) -> Registration:
    """Return the registration of an instance that a server in between reports. Without an environment it has the token's."""
    started, strategies = reported.get("started"), reported.get("strategies")
    return Registration(
        app_name=cut(reported["appName"]),
        environment=cut(reported.get("environment") or token.environment),
        instance_id=cut(reported.get("instanceId") or DEFAULT_INSTANCE),
        projects=tuple(cut(name) for name in reported.get("projects") or () if name) or (ALL,),
        strategies=None if strategies is None else tuple(name for name in strategies if name),
        sdk_version=cut(reported.get("sdkVersion") or "") or None,
        sdk_type=reported.get("sdkType") or "backend",
        started=None if started is None else parse_time(started, now),
        client_ip=peer or None,
    )


def register_client(call: ApiCall) -> Answer:
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
    return Answer(None, 202)


route = partial(Route, tag="Client", auth=Auth.CLIENT)

ROUTES = (
    route(
        path="/api/client/metrics",
        method="POST",
        handler=receive_metrics,
        operation="registerClientMetrics",
        summary="Report how often flags were on and off.",
        body=CLIENT_METRICS,
        status=202,
    ),
    route(
        path="/api/client/metrics/bulk",
        method="POST",
        handler=receive_bulk_metrics,
        operation="clientBulkMetrics",
        summary="Report how often flags were on and off, for many applications in one request.",
        body=BULK,
        status=202,
    ),
    route(
        path="/api/client/register",
        method="POST",
        handler=register_client,
        operation="registerClientApplication",
        summary="Register a running application and its SDK.",
        body=CLIENT_REGISTRATION,
        status=202,
    ),
)
