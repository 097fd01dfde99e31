"""Usage that SDKs in browsers and apps report: it goes to the usage of the flag server.

A page can send any text. So flags and variants that the token does not open are left out, as by the proxy, and nothing that
could tell users apart is stored: neither addresses nor the ids of instances.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple, cast

from flagsvc.core.errors import DatabaseError
from flagsvc.frontend.caller import FrontendCaller, unavailable
from flagsvc.http.call import SDK, Answer, Call, Handler
from flagsvc.http.messages import Response, invalid
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client import DONE
from flagsvc.proxy.api.ports import ConfigurationHolder
from flagsvc.proxy.api.reports import LAX_METRICS, ReportedUsage, read_metrics
from flagsvc.server.api.asgi import run_in_pool
from flagsvc.server.api.client.metrics import FRONTEND, is_name, read_count
from flagsvc.server.api.client.register import DEFAULT_INSTANCE, MAX_NAME_LENGTH
from flagsvc.server.store.actors import ClientToken
from flagsvc.server.store.resources.applications import Registration, register
from flagsvc.server.store.resources.usage import add_counts
from flagsvc.server.store.store import Store
from flagsvc.server.store.timestamps import parse_time

MUST_BE_NAME = f"must have 1 to {MAX_NAME_LENGTH} characters"


class FrontendReport(NamedTuple):
    """What one application reports: its name, its SDK, the end of its bucket as it was sent, and the counts."""

    app_name: str
    sdk: str | None
    stop: object
    counts: list[ReportedUsage]


class ReportStore:
    """Stores reports, in the threads of `reporters`."""

    def __init__(self, store: Store, reporters: Executor) -> None:
        self._store = store
        self._reporters = reporters

    async def save(self, token: ClientToken, report: FrontendReport) -> None:
        """Store a report. Raises HttpError (503) if the database is away."""
        try:
            await run_in_pool(self._reporters, self._save, token, report)
        except DatabaseError as error:
            raise unavailable(error) from None

    def _save(self, token: ClientToken, report: FrontendReport) -> None:
        registration = Registration(
            app_name=report.app_name,
            environment=token.environment,
            instance_id=DEFAULT_INSTANCE,
            projects=token.projects,
            sdk_version=report.sdk,
            sdk_type=FRONTEND,
            registered=False,
        )
        with self._store.recording() as tx:
            register(tx, [registration])
            moment = parse_time(report.stop, tx.now)
            counts = (
                read_count(each.name, report.app_name, token.environment, moment, each._asdict())
                for each in report.counts
            )
            add_counts(tx, counts, token.covers)


class StoredMetrics(Handler):
    """POST /api/frontend/client/metrics."""

    def __init__(self, answers: Answers, holder: ConfigurationHolder, store: ReportStore) -> None:
        self.answers = answers
        self.holder = holder
        self.store = store

    def answer(self, call: Call, body: bytes) -> Answer:
        """Check a report, and return an awaitable that stores it. Raises HttpError (400, 413)."""
        value: Any = read_json(body, call.media, call.limit, call.depth)
        counts = self._known(read_metrics(value, LAX_METRICS))
        if not is_name(str(value["appName"])):
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
