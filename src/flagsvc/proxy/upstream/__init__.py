"""One authenticated HTTP session with the upstream flag server, and how to come back to it after a failure.

`outbound` decides about proxies, `answers` what an answer means, `session` speaks the client API, `transport` is HTTP;
`sealing` keeps what was sent out of the tracebacks of errors;
`pace`, `trouble` and `supervised` are what the loops of repository/ and usage/ share: how long to wait, when to speak up,
and how not to die.
"""

from flagsvc.http.client.answers import Answer, Fetched, Limits
from flagsvc.http.client.outbound import Outbound
from flagsvc.http.client.trust import Trust
from flagsvc.proxy.upstream.identity import SDK, SPEC_VERSION, Identity, new_connection_id
from flagsvc.proxy.upstream.session import Upstream, UpstreamSettings, download

__all__ = [
    "SDK",
    "SPEC_VERSION",
    "Answer",
    "Fetched",
    "Identity",
    "Limits",
    "Outbound",
    "Trust",
    "Upstream",
    "UpstreamSettings",
    "download",
    "new_connection_id",
]
