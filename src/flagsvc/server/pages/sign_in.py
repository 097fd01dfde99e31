"""Signing in and out (decision 0053): with a personal token, or with a link that works once. There are no passwords."""

from __future__ import annotations

from flagsvc.pages.sign_in_tries import describe_wait
from flagsvc.server.api.authorization import PAGES, PLAIN_COOKIE, SECURE_COOKIE, is_secure
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Auth
from flagsvc.server.pages.page import change, page, redirect
from flagsvc.server.store.resources import sessions

START = "/flags"
"""The page after signing in, unless another one was asked for."""


def show(call: ApiCall) -> ApiAnswer:
    """Return the form. The secret of a link is in the fragment of its address, so that no server and no log sees it."""
    return ApiAnswer({"next": local_page(call.first_value("next") or ""), "problem": ""})


def sign_in(call: ApiCall) -> ApiAnswer:
    """Sign in with a personal token, or with the secret of a link, and go to the page that was asked for."""
    goal = local_page(call.form.text("next"))
    if seconds := call.server.tries.take(call.address):
        return refuse_try(goal, seconds)
    opened = open_session(call, call.form.text("token"))
    if opened is None:
        problem = "This is no token of a user here, or it has expired. A link works once, within 15 minutes."
        return ApiAnswer({"next": goal, "problem": problem}, status=403)
    call.server.tries.give_back(call.address)
    return redirect(f"{call.root}{PAGES}{goal}", cookie(call, opened, int(sessions.SESSION_TIME.total_seconds())))


def refuse_try(goal: str, seconds: int) -> ApiAnswer:
    """Return the form again after too many wrong tries."""
    body = {"next": goal, "problem": describe_wait(seconds)}
    return ApiAnswer(body, status=429, headers=((b"retry-after", b"%d" % seconds),))


def open_session(call: ApiCall, secret: str) -> str | None:
    """Return the secret of a new session; None for a secret that opens none. Only one that does changes the database."""
    with call.store.reading() as tx:
        if not sessions.can_sign_in(tx, secret):
            return None
    with call.store.writing(None) as tx:
        return sessions.sign_in(tx, secret)


def sign_out(call: ApiCall) -> ApiAnswer:
    """End the session."""
    if call.session:
        with call.store.writing(None) as tx:
            sessions.close_session(tx, call.session)
    return redirect(f"{call.root}{PAGES}/sign-in", cookie(call, "", 0))


def cookie(call: ApiCall, secret: str, seconds: int) -> tuple[bytes, bytes]:
    """Return the header that sets the cookie of a session. With TLS the cookie is for this host and for TLS only."""
    secure = is_secure(call.request, call.server.url)
    name, path = (SECURE_COOKIE, "/") if secure else (PLAIN_COOKIE, call.root or "/")
    text = f"{name}={secret}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
    return b"set-cookie", text.encode()


def local_page(text: str) -> str:
    """Return the page to go to, below PAGES; START for anything that could lead elsewhere."""
    fine = text.startswith("/") and not text.startswith(("//", "/sign-")) and text.isprintable() and "\\" not in text
    return text if fine and text.isascii() else START


def home(call: ApiCall) -> ApiAnswer:
    """Go to the first page."""
    return redirect(f"{call.root}{PAGES}{START}")


ROUTES = (
    page("", home, "flags.html", "The first page."),
    page("/sign-in", show, "sign_in.html", "The form to sign in.", auth=Auth.NONE),
    change("/sign-in", sign_in, "Sign in.", template="sign_in.html", auth=Auth.NONE),
    change("/sign-out", sign_out, "Sign out.", auth=Auth.NONE),
)
