"""Pages as a browser without script sees them: a session in a cookie, links, and forms that redirect."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlencode

from flagsvc.server.store.resources import users
from flagsvc.testing import FakeClock
from support import processes
from support.flagservers import USER_SECRET, AppClient

PAGES = "/ui"
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}
COOKIE = re.compile(r"^([^=]+)=([^;]*)")


def pass_time(clock: FakeClock, seconds: float) -> None:
    asyncio.run(clock.advance(seconds))


class Visitor:
    """Someone at the pages of a server. `cookie` is the Cookie header of the session."""

    def __init__(self, client: AppClient, secret: str | None = USER_SECRET) -> None:
        self.client = client
        self.cookie: str | None = None
        if secret is not None:
            assert self.sign_in(secret).status == 303

    def sign_in(self, secret: str, **fields: str) -> processes.Answer:
        """Send the form to sign in, and keep the cookie."""
        answer = self.send("/sign-in", fields={"token": secret, **fields})
        found = COOKIE.match(answer.headers.get("set-cookie", ""))
        if found is not None:
            self.cookie = f"{found[1]}={found[2]}" if found[2] else None
        return answer

    def see(self, path: str, **headers: str) -> processes.Answer:
        return self.client.get(f"{PAGES}{path}", token=None, headers={"cookie": self.cookie, **headers})

    def was_seen(self, name: str) -> bool:
        """Return whether the database knows that a user was here."""
        with self.client.server.store.reading() as tx:
            return next(each["seenAt"] for each in users.list_with_roles(tx) if each["user"] == name) is not None

    def data(self, path: str) -> Any:
        place, mark, query = path.partition("?")
        answer = self.see(f"{place}.json{mark}{query}")
        assert answer.status == 200, answer.text
        return answer.json()

    def send(
        self, path: str, *, headers: dict[str, str] | None = None, fields: dict[str, Any] | None = None, **more: str
    ) -> processes.Answer:
        """Send a form. A field with a list comes once for each value."""
        body = urlencode({**(fields or {}), **more}, doseq=True).encode()
        sent = {"content-type": "application/x-www-form-urlencoded", "cookie": self.cookie}
        origin = SAME_ORIGIN if headers is None else headers
        return self.client.post(f"{PAGES}{path}", body, token=None, headers={**sent, **origin})
