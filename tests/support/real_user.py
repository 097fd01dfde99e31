"""A user of the real flag server with a personal token, which importing needs."""

from __future__ import annotations

from support import processes

FIRST_USER = {"username": "admin", "password": "unleash4all"}
"""Who a new server has."""


def personal_token(server: processes.FlagServer) -> str:
    """Return the secret of a new personal token of the server's first user, an administrator."""
    root = server.url.removesuffix("/api")
    cookie = processes.ask(f"{root}/auth/simple/login", method="POST", body=FIRST_USER).headers["set-cookie"]
    made = processes.ask(
        f"{server.url}/admin/user/tokens",
        method="POST",
        headers={"Cookie": cookie.partition(";")[0]},
        body={"description": "tests", "expiresAt": "2099-01-01T00:00:00Z"},
    )
    return str(made.json()["secret"])
