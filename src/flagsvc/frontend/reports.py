"""Usage that SDKs in browsers and apps report: it goes to the usage of the flag server.

A page can send any text. So flags and variants that the token does not open are left out, as by the proxy, and nothing that
could tell users apart is stored: neither addresses nor the ids of instances.
"""

from __future__ import annotations

from typing import Any, cast

from flagsvc.frontend.caller import FrontendCaller
from flagsvc.frontend.report_store import FrontendReport, ReportStore
from flagsvc.http.call import SDK, Answer, Call, Handler
from flagsvc.http.messages import Response, invalid
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client import DONE
from flagsvc.proxy.api.ports import ConfigurationHolder
from flagsvc.proxy.api.reports import LAX_METRICS, ReportedUsage, read_metrics
from flagsvc.server.api.client.metrics import is_name
from flagsvc.server.api.client.register import MAX_NAME_LENGTH
from flagsvc.server.api.nul import NUL
from flagsvc.server.store.actors import ClientToken

MUST_BE_NAME = f"must have 1 to {MAX_NAME_LENGTH} characters, and no NUL"


class StoredMetrics(Handler):
    """POST /api/frontend/client/metrics."""

    def __init__(self, answers: Answers, holder: ConfigurationHolder, store: ReportStore) -> None:
        self.answers = answers
        self.holder = holder
        self.store = store

    def answer(self, call: Call, body: bytes) -> Answer:
        """Check a report, and return an awaitable that stores it. Raises HttpError (400, 413, and 503 when awaited)."""
        value: Any = read_json(body, call.media, call.limit, call.depth)
        counts = self._known(read_metrics(value, LAX_METRICS))
        if not is_name(str(value["appName"])) or NUL in str(value["appName"]):
            raise invalid("/body", "appName", MUST_BE_NAME)
        sdk = (call.other(SDK) or b"").decode("latin-1")[:MAX_NAME_LENGTH]
        stop = (value.get("bucket") or {}).get("stop")
        return self._save(call, FrontendReport(str(value["appName"]), sdk or None, stop, counts))

    async def _save(self, call: Call, report: FrontendReport) -> Response:
        token = cast(ClientToken, cast(FrontendCaller, call.found).token)
        await self.store.save(token, report)
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
