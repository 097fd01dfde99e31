"""The secrets of this process, which are shown to no other flag server than their own."""

from __future__ import annotations

from flagsvc.http.keys import salted
from flagsvc.settings.environments import upstream_of_options
from flagsvc.settings.options import ProxyOptions, secrets_of
from flagsvc.settings.tokens import read_scope


class OwnSecrets:
    """The secrets that the options have, and those that they had since the start. Only digests are kept."""

    def __init__(self, options: ProxyOptions) -> None:
        self._upstreams: dict[bytes, set[str]] = {}
        self.add(options)

    def add(self, options: ProxyOptions) -> None:
        """Know the secrets of these options, too, and of their environments."""
        for secret in secrets_of(options):
            self._upstreams.setdefault(digest_of(secret), set())
        for part in (options, *(each.options for each in options.environments)):
            upstream = upstream_of_options(part)
            keys = (*part.client_keys, *part.exp_server_side_sdk_config_tokens)
            for made in (part.flagsvc_api_token, *(key for key in keys if read_scope(key) is not None)):
                self._upstreams.setdefault(digest_of(made), set()).add(upstream)

    def may_be_sent(self, token: str, upstream: str) -> bool:
        """Return whether an upstream may be asked about a token of a caller, by the identity of the upstream.

        A secret goes only to the upstream of its environment, and only if that has made it: its token, and keys in the form of a
        token. So a token may be listed first and looked up later.
        """
        upstreams = self._upstreams.get(digest_of(token))
        return upstreams is None or upstream in upstreams


def digest_of(secret: str) -> bytes:
    """Return the digest of a secret, as it comes in a header."""
    return salted(secret.encode("utf-8", "surrogateescape"))
