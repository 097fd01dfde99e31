"""The frontend API as the real server has it: a part of the proxy's dialect (dialects: Frontend API of the flag server).

The contract checks the token before, so no row has a check of keys.
"""

from __future__ import annotations

from dataclasses import replace

from flagsvc.frontend.report_store import ReportStore
from flagsvc.frontend.reports import StoredMetrics
from flagsvc.http.openapi import Operation
from flagsvc.proxy.api.client import Register
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.dialects.frontend import FRONTEND, PREFIX
from flagsvc.proxy.api.openapi import operation
from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.server.api.counts import MalformedCount
from flagsvc.server.api.openapi import FRONTEND_TOKEN

OPERATIONS = {
    ("GET", PREFIX): "getFrontendFeatures",
    ("POST", PREFIX): "getFrontendApiFeaturesWithPost",
    ("POST", f"{PREFIX}/client/metrics"): "registerFrontendMetrics",
    ("POST", f"{PREFIX}/client/register"): "registerFrontendClient",
}
"""Method and path of each row of the real server → its operationId."""
UNLIMITED = ("429",)
"""Statuses that the proxy's rows have and these do not: there is no limit of rates."""

ROWS: tuple[ProxyRoute, ...] = tuple(row for row in FRONTEND.routes if (row.method, row.path) in OPERATIONS)


def make_dialect(store: ReportStore, malformed: MalformedCount) -> Dialect:
    """Return the dialect. Its reports go to `store`; `malformed` counts what cannot be read of them."""
    return replace(
        FRONTEND,
        prefixes=(PREFIX,),
        routes=tuple(replace(row, auth=Auth.NONE) for row in ROWS),
        handlers={
            **FRONTEND.handlers,
            "metrics": lambda parts: StoredMetrics(parts.answers, parts.holder, store, malformed),
            "register": lambda parts: Register(parts.answers),
        },
        hints={},
    )


def describe(row: ProxyRoute) -> Operation:
    """Return the operation of a row for the OpenAPI document."""
    made = operation(replace(row, auth=Auth.CLIENT, tag="Frontend"), ServiceSettings(client_keys=()))
    answers = {status: answer for status, answer in made.answers.items() if status not in UNLIMITED}
    shapes = tuple(each for each in (row.body, row.result, row.error) if each is not None)
    return made._replace(
        name=OPERATIONS[row.method, row.path], schemes=(FRONTEND_TOKEN,), answers=answers, shapes=shapes
    )
