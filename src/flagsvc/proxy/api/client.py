"""The reports of SDKs, and the configuration document for server-side SDKs (behaviour: Other endpoints)."""

from __future__ import annotations

from typing import Any, cast

from mypy_extensions import mypyc_attr

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.etag import matches
from flagsvc.http.http_errors import not_ready
from flagsvc.http.messages import invalid
from flagsvc.http.reports import METRICS, REGISTRATION, ReportedMetrics, read_toggles
from flagsvc.http.shapes.checking import check
from flagsvc.http.shapes.shape import Shape
from flagsvc.http.shapes.violation import ShapeError
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client_documents import ClientDocuments, DocumentFilter
from flagsvc.proxy.api.impact import BrowserImpact
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.usage import UsageCounters

DONE = "OK"


class Metrics(Handler):
    """POST /proxy/client/metrics, and the same in other dialects. Counts the usage that an SDK reports, for names that the
    configuration knows. `shape` is the shape of a report, and `impact` takes impact metrics; None for none.
    """

    def __init__(self, usage: UsageCounters, answers: Answers, shape: Shape = METRICS, impact: BrowserImpact | None = None) -> None:
        self.usage = usage
        self.answers = answers
        self.shape = shape
        self.impact = impact

    def answer(self, call: Call, body: bytes) -> Answer:
        """Count a report. Raises HttpError (400, 413) before it counts anything."""
        value = read_json(body, call.media, call.limit, call.depth)
        counts, malformed = read_metrics(value, self.shape)
        for name, yes, no, variants in counts:
            self.usage.add(name, yes, no, variants)
        self.usage.leave_out(malformed)
        if self.impact is not None:
            self.impact.add_reported(self.usage, value)
        self.usage.finish_report()
        return self.answers.respond_text(call, DONE)


class Register(Handler):
    """POST /proxy/client/register: checks a registration and ignores it. Only the proxy itself registers upstream."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def answer(self, call: Call, body: bytes) -> Answer:
        """Check a registration. Raises HttpError (400, 413)."""
        read(REGISTRATION, read_json(body, call.media, call.limit, call.depth))
        return self.answers.respond_text(call, DONE)


@mypyc_attr(allow_interpreted_subclasses=True)
class Features(Handler):
    """GET /proxy/client/features: the configuration document, for server-side SDKs and other proxies."""

    def __init__(self, holder: ConfigurationHolder, answers: Answers) -> None:
        self.holder = holder
        self.answers = answers
        self.documents = ClientDocuments()

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the document. Raises HttpError (400, 503)."""
        served = self.holder.document
        if served is None:
            raise not_ready()
        found = self.documents.find(served, self.read_filter(call))
        condition = call.if_none_match
        if condition is not None and matches(condition, found.tag):
            return self.answers.not_modified(self.answers.configuration, found.tag)
        return self.answers.respond_cached(self.answers.configuration, call, found)

    def read_filter(self, call: Call) -> DocumentFilter:
        return DocumentFilter()


def read(shape: Shape, value: object) -> Any:
    """Return a body coerced to its shape. Raises HttpError (400)."""
    try:
        return check(shape, value)
    except ShapeError as error:
        pointer, rule = error.problem
        raise invalid(pointer, None, rule) from None


def read_metrics(value: object, shape: Shape = METRICS) -> ReportedMetrics:
    """Return the counts of a metrics post by toggle. Raises HttpError (400) before anything is counted."""
    return read_toggles(cast("dict[str, Any]", read(shape, value)))
