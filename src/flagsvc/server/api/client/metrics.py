"""POST /api/client/metrics, /bulk: how often features were on and off (dialects: POST /api/client/metrics).

What a report counts is counted in the environment of its token, and for the projects of its token alone. As on the real server,
a report that has the right shape and still cannot be taken is answered with a 400 without a body.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.client.bodies import BULK_METRICS, METRICS
from flagsvc.server.api.client.register import DEFAULT_INSTANCE, LONGEST
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.moments import read
from flagsvc.server.store.nouns.applications import EVERYWHERE, Registration, register
from flagsvc.server.store.nouns.usage import MOST, Count, note

TAKEN = ApiAnswer(None, 202)
REFUSED = ApiAnswer(None, 400)
FRONTEND = "frontend"


def take_metrics(call: ApiCall) -> ApiAnswer:
    """Add what one instance counted, and note that it runs."""
    body, token = call.body, call.token
    toggles = body["bucket"]["toggles"]
    if not is_name(body["appName"]) or not all(map(is_countable, toggles.values())):
        return REFUSED
    told = Registration(
        app_name=body["appName"],
        environment=token.environment,
        instance_id=(body.get("instanceId") or DEFAULT_INSTANCE)[:LONGEST],
        projects=token.projects,
        client_ip=call.request.peer or None,
        registered=False,
    )
    with call.store.noting() as tx:
        register(tx, [told])
        moment = read(body["bucket"]["stop"], tx.now)
        counts = (count(name, body["appName"], token.environment, moment, each) for name, each in toggles.items())
        note(tx, counts, token.covers)
    return TAKEN


def take_bulk(call: ApiCall) -> ApiAnswer:
    """Add what many instances counted, and note that they run; a server in between sends it for them."""
    applications, metrics = call.body["applications"], call.body["metrics"]
    if not all(map(is_registration, applications)) or not all(map(is_report, metrics)):
        return REFUSED
    with call.store.noting() as tx:
        register(tx, [registration(each, tx.now, call.request.peer) for each in applications])
        note(tx, reports(metrics, call.token.environment, tx.now), call.token.covers)
    return TAKEN


def reports(metrics: list[dict[str, Any]], environment: str, now: datetime) -> Iterator[Count]:
    """Give the counts of an environment; one without a time is of now."""
    for each in metrics:
        if each["environment"] == environment:
            yield count(each["featureName"], each["appName"], environment, read(each.get("timestamp"), now), each)


def count(feature: str, app_name: str, environment: str, moment: datetime, counted: dict[str, Any]) -> Count:
    """Return what was counted of a feature; variants without a name, or with an endless one, are left out."""
    variants = {name: int(number) for name, number in (counted.get("variants") or {}).items() if is_name(name)}
    yes, no = (int(counted.get(name, 0)) for name in ("yes", "no"))
    return Count(feature, app_name, environment, moment, yes, no, variants)


def registration(told: dict[str, Any], now: datetime, peer: str) -> Registration:
    """Return what a server in between tells of an instance."""
    return Registration(
        app_name=told["appName"],
        environment=told["environment"],
        instance_id=told["instanceId"] or DEFAULT_INSTANCE,
        projects=tuple(told.get("projects") or (EVERYWHERE,)),
        strategies=tuple(name for name in told["strategies"] if name) if "strategies" in told else None,
        sdk_version=told.get("sdkVersion"),
        sdk_type=told.get("sdkType") or "backend",
        started=read(told["started"], now) if "started" in told else None,
        client_ip=peer or None,
    )


def is_name(text: str) -> bool:
    """Return whether a text can be a name of something that reports."""
    return 0 < len(text) <= LONGEST


def is_countable(counted: dict[str, Any]) -> bool:
    """Return whether numbers are finite and such that they can be added up."""
    numbers = (counted.get("yes", 0), counted.get("no", 0), *(counted.get("variants") or {}).values())
    return all(math.isfinite(number) and number <= MOST for number in numbers)


def is_report(counted: dict[str, Any]) -> bool:
    """Return whether counts can be taken."""
    return is_name(counted["appName"]) and bool(counted["environment"]) and is_countable(counted)


def is_registration(told: dict[str, Any]) -> bool:
    """Return whether an instance tells what it must: a backend when it started, everybody a name."""
    whole = "started" in told and "interval" in told
    names = (
        told["appName"],
        told["environment"],
        told["instanceId"] or DEFAULT_INSTANCE,
        *(told.get("projects") or ()),
    )
    return all(map(is_name, names)) and (whole or (told.get("sdkType") == FRONTEND and "sdkVersion" in told))


ROUTES = (
    Route(
        path="/api/client/metrics",
        method="POST",
        handler=take_metrics,
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
        handler=take_bulk,
        operation="clientBulkMetrics",
        summary="Report for many applications at once how often flags were on and off.",
        tag="Client",
        auth=Auth.CLIENT,
        body=BULK_METRICS,
        status=202,
    ),
)
