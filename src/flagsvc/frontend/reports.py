"""Usage that SDKs in browsers and apps report: it goes to the usage of the flag server.

A page can send any text. So flags and variants that the token does not open are left out, as by the proxy, and nothing that
could tell users apart is stored: neither addresses nor the ids of instances.
"""

from __future__ import annotations

from typing import Any, cast

from flagsvc.frontend.caller import FrontendCaller
from flagsvc.frontend.report_store import FrontendReport, ReportStore
from flagsvc.http.call import SDK, Answer, Call, Handler
from flagsvc.http.messages import Response
from flagsvc.http.reports import CLIENT_METRICS, MAX_NAME_LENGTH, ReportedUsage, cut
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client import DONE
from flagsvc.proxy.api.ports import ConfigurationHolder
from flagsvc.proxy.api.reports import read_metrics
from flagsvc.server.api.counts import MalformedCount


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
