"""The session with the upstream flag server, over the client of `http/client`.

session     the client API: features, registration, usage metrics
identity    the names that this proxy sends: application, instance, connection
tokens      which kind of token was refused
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
