"""How requests of the frontend API are read and how its answers look (dialects: Frontend API). Compiled."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.context import Context
from flagsvc.engine.fragments import CLOSE, OPEN, AnswerShape
from flagsvc.proxy.api.body import LookupBody, read_lenient_lookup
from flagsvc.proxy.api.context_limits import ContextLimits
from flagsvc.proxy.api.dialects.real_server_format import RealServerFormat
from flagsvc.proxy.api.query import read_lenient_query

IMPRESSION: Final = b'},"impressionData":'
STATES: Final = (b',"feature_enabled":false,"featureEnabled":false', b',"feature_enabled":true,"featureEnabled":true')


class FrontendShape(AnswerShape):
    """Toggles whose variant repeats the toggle's state, and that have the impression flag under both of its names."""

    def __init__(self, name: bytes = b"f", opening: bytes = OPEN, closing: bytes = CLOSE) -> None:
        super().__init__(name, opening, closing)

    def fragment(self, plain: bytes, enabled: bool) -> bytes:
        """Return the fragment of a toggle. The end of a plain one is fixed: the end of the variant and the impression flag."""
        at = plain.rindex(IMPRESSION)
        variant, flag = plain[:at], plain[at + len(IMPRESSION) : -1]
        state = STATES[1 if enabled else 0]
        if not variant.endswith(state):
            variant += state
        return b"".join([variant, IMPRESSION, flag, b',"impression_data":', flag, b"}"])


class FrontendFormat(RealServerFormat):
    """The wire format of the frontend API."""

    def __init__(self) -> None:
        super().__init__(FrontendShape())
        self.compares_posts = True

    def read_query(self, query: bytes, limits: ContextLimits) -> Context:
        """Return the context in a query string; what cannot be read is ignored. Raises HttpError (400) beyond the limits."""
        context = read_lenient_query(query, limits.time)
        if len(query) > limits.value or len(context.properties) > limits.properties:
            limits.check(context, "/query", "/query")
        return context

    def read_body(self, value: object, limits: ContextLimits) -> LookupBody:
        """Return the context and the toggles in a JSON body. Raises HttpError (400)."""
        asked = read_lenient_lookup(value, limits.toggles, limits.time)
        limits.check(asked.context, "/body/context", "/body/context/properties")
        return asked
