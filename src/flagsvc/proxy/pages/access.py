"""Who may see the proxy's pages, and the pages that sign in and out (behaviour: Pages of the proxy).

Where the address is loopback or a Unix socket, every program that reaches it may. The `Host` must then be such an address, so that
no page of another site reaches the proxy under that site's name. Anywhere else a key is needed, but for the status.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE, Call
from flagsvc.http.keys import SCHEME, KeySet, salted
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import SIGN_IN
from flagsvc.http.trust import TrustedProxies
from flagsvc.pages.headers import make_cookie, read_cookie
from flagsvc.pages.sign_in_tries import SignInTries, describe_wait
from flagsvc.pages.site import redirect
from flagsvc.pages.theme import choose_theme
from flagsvc.proxy.pages.page import FIRST, PageCall, PageRow
from flagsvc.settings.network import is_loopback, socket_path, split_address

COOKIE_NAME: Final = "flagsvc-pages"
SESSION_S: Final = 12 * 3600
MAX_SESSIONS: Final = 1000


def is_local(host: str | None) -> bool:
    """Return whether only programs of this machine reach a host: loopback, or a Unix socket."""
    if host is None:
        return False
    return socket_path(host) is not None or is_loopback(host)


def host_name_of(host: bytes) -> str:
    """Return the name or address in a Host header, without the port."""
    text = host.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


class Access:
    """The access to the pages at one address. `keys` are the option adminPageKeys, `trust` the option trustProxy."""

    def __init__(self, address: str, keys: Sequence[str], clock: Clock, tries: SignInTries, trust: TrustedProxies) -> None:
        host, _ = split_address(address)
        self.is_local = is_local(host)
        self.has_keys = bool(keys)
        self._host = host
        self._keys = KeySet(keys)
        self._clock = clock
        self._tries = tries
        self._trust = trust
        self._sessions: dict[bytes, float] = {}

    def check_host(self, host: bytes | None) -> None:
        """Raise HttpError (421) for a request to a local address under another name."""
        if not self.is_local:
            return
        name = host_name_of(host or b"")
        if name != self._host and not is_loopback(name):
            message = (
                "these pages are open to this machine alone, so the Host must be localhost or a loopback address"
                ", such as http://localhost:9090/ui/"
            )
            raise HttpError(421, message, [])

    def may_see_all(self, call: Call) -> bool:
        """Return whether the caller may see every page. Raises HttpError (429) after too many wrong keys."""
        return self.is_local or self.session_of(call) is not None or self.opens(call, call.key)

    def viewer_of(self, call: Call) -> bytes | None:
        """Return the digest of the session or the key of a caller who may see every page; None at a local address."""
        return None if self.is_local else self.session_of(call) or salted(bare_key(call.key))

    def opens(self, call: Call, key: bytes | None) -> bool:
        """Return whether a key, alone or behind `Bearer`, is one of the option. Raises HttpError (429) after too many wrong."""
        sent = bare_key(key)
        if not sent:
            return False
        address = self._trust.address(call.request.peer, call.forwarded)
        if seconds := self._tries.take(address):
            raise HttpError(429, describe_wait(seconds), [], SIGN_IN, seconds)
        if not self._keys.contains(sent):
            return False
        self._tries.give_back(address)
        return True

    def session_of(self, call: Call) -> bytes | None:
        """Return the digest of the session in the cookie; None without a present one."""
        digest = salted(read_cookie(call.other(COOKIE), COOKIE_NAME).encode("latin-1"))
        until = self._sessions.get(digest)
        return digest if until is not None and self._clock.monotonic() < until else None

    def open_session(self) -> tuple[bytes, bytes]:
        """Return the header that sets the cookie of a new session. If there are too many, the oldest one ends."""
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(32)
        self._sessions[salted(secret.encode())] = self._clock.monotonic() + SESSION_S
        return make_cookie(COOKIE_NAME, secret, "/", SESSION_S, "Strict")

    def close_session(self, call: Call) -> tuple[bytes, bytes]:
        """End the session of a call. Returns the header that removes its cookie."""
        found = self.session_of(call)
        if found is not None:
            del self._sessions[found]
        return make_cookie(COOKIE_NAME, "", "/", 0, "Strict")


def bare_key(key: bytes | None) -> bytes:
    """Return a key without blanks around it and without `Bearer`; empty without one."""
    sent = (key or b"").strip(b" \t")
    return sent[len(SCHEME) :] if sent[: len(SCHEME)].lower() == SCHEME else sent


TEMPLATE = "sign_in.html"
MAX_BODY = 4096


def sign_in_rows(access: Access) -> tuple[PageRow, ...]:
    async def show(call: PageCall) -> Answer:
        return redirect(call.address(FIRST)) if access.is_local else Answer({"problem": ""})

    async def sign_in(call: PageCall) -> Answer:
        if access.opens(call.head, call.form.text("key").encode("utf-8", "surrogateescape")):
            return redirect(call.address(FIRST), access.open_session())
        return Answer({"problem": "This is none of adminPageKeys."}, status=403)

    async def sign_out(call: PageCall) -> Answer:
        return redirect(call.address(FIRST), access.close_session(call.head))

    async def change_theme(call: PageCall) -> Answer:
        return choose_theme(call.form, call.address(""))

    return (
        PageRow("/sign-in", TEMPLATE, show, open=True),
        PageRow("/sign-in", TEMPLATE, sign_in, method=b"POST", open=True, limit=MAX_BODY),
        PageRow("/sign-out", TEMPLATE, sign_out, method=b"POST", open=True, limit=MAX_BODY),
        PageRow("/theme", TEMPLATE, change_theme, method=b"POST", open=True, limit=MAX_BODY),
    )
