"""The frontend API as the real server has it: a part of the proxy's dialect (dialects: Frontend API of the flag server).

The contract checks the token before, so no row has a check of keys. Usage that SDKs in browsers and apps report goes to the usage
of the flag server. A page can send any text. So flags and variants that the token does not open are left out, as by the proxy, and
nothing that could tell users apart is stored: neither addresses nor the ids of instances.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from flagsvc.frontend.caller import FrontendCaller
from flagsvc.frontend.report_store import FrontendReport, ReportStore
from flagsvc.http.call import SDK, Answer, Call, Handler
from flagsvc.http.messages import Response
from flagsvc.http.openapi import Operation
from flagsvc.http.reports import CLIENT_METRICS, MAX_NAME_LENGTH, ReportedUsage, cut
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client import DONE, Register, read_metrics
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.dialects.frontend import FRONTEND, PREFIX
from flagsvc.proxy.api.openapi import operation
from flagsvc.proxy.api.ports import ConfigurationHolder
from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.server.api.call import MalformedCount
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


class StoredMetrics(Handler):
    """POST /api/frontend/client/metrics."""

    def __init__(
        self, answers: Answers, holder: ConfigurationHolder, store: ReportStore, malformed: MalformedCount
    ) -> None:
        self.answers = answers
        self.holder = holder
        self.store = store
        self.malformed = malformed

    def answer(self, call: Call, body: bytes) -> Answer:
        """Check a report, and return an awaitable that stores it. Raises HttpError (400, 413, and 503 when awaited)."""
        value: Any = read_json(body, call.media, call.limit, call.depth)
        counts, malformed = read_metrics(value, CLIENT_METRICS)
        self.malformed.add(malformed)
        sdk = (call.other(SDK) or b"").decode("latin-1")[:MAX_NAME_LENGTH]
        stop = (value.get("bucket") or {}).get("stop")
        return self._save(call, FrontendReport(cut(str(value["appName"])), sdk or None, stop, self._known(counts)))

    async def _save(self, call: Call, report: FrontendReport) -> Response:
        await self.store.save(cast(FrontendCaller, call.handler).token, report)
        return self.answers.respond_text(call, DONE)

    def _known(self, counts: list[ReportedUsage]) -> list[ReportedUsage]:
        """Return the counts of flags that the token opens, with the variants that these have."""
        snapshot = self.holder.current
        names = {} if snapshot is None else snapshot.names
        return [
            each._replace(variants={name: times for name, times in each.variants.items() if name in names[each.name]})
            for each in counts
            if each.name in names
        ]
