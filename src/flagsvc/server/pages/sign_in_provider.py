"""Signing in at an OpenID provider: to its page, and back with an answer that works once, in the same browser (decision 0061)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flagsvc.http.call import COOKIE
from flagsvc.server.api.authorization import is_secure, read_cookie
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.errors import unknown_path
from flagsvc.server.api.route import Auth
from flagsvc.server.pages.page import page, redirect
from flagsvc.server.pages.sign_in import local_page, refuse, refuse_try, show_form, sign_in_person
from flagsvc.server.sign_in.attempt import MAX_AGE_S, NOTED_S, Attempt, begin, read_attempt
from flagsvc.server.sign_in.exchange import BusyError, IdTokenError, ProviderError, simple_error
from flagsvc.server.store.keyring import BY_PROVIDER
from flagsvc.server.store.resources import identities
from flagsvc.server.store.resources.identities import Person

if TYPE_CHECKING:
    from flagsvc.server.sign_in.provider import Provider

SECURE_COOKIE, PLAIN_COOKIE = "__Host-flagsvc-attempt", "flagsvc-attempt"
LONGEST_GOAL = 500
"""The most characters of the address to go to after signing in; a longer one is not kept."""

NOT_OURS = (
    "This answer was used already, or belongs to no sign-in of this browser in the last ten minutes. Sign in again."
)
NO_ATTEMPT = "the browser sent no cookie of a try, or a cookie that is older than ten minutes or of another clock"
NOT_DONE = "The provider did not sign you in. Try again, or use a token or a link."
NOT_ACCEPTED = (
    "What the provider says of you is not accepted here. Sign in again. The log of this server has the reason."
)
AWAY = "The provider cannot be asked, or did not take the answer. Try again later, or use a token or a link."
BUSY_S = 3
BUSY = f"Too many people sign in at the same time. Reload this page in {BUSY_S} seconds."
KEEPS_ATTEMPT = (429, 503)
"""The statuses of answers after which the same try may come back."""


def provider_of(call: ApiCall) -> Provider:
    """Return the provider of this server. Raises ApiError (404) without one."""
    provider = call.server.ways.provider
    if provider is None:
        raise unknown_path(call.request.path.decode("latin-1"))
    return provider


def leave(call: ApiCall) -> ApiAnswer:
    """Go to the provider, with a new try in the cookie."""
    provider, goal = provider_of(call), local_page(call.first_value("next") or "")
    attempt = begin(goal if len(goal) <= LONGEST_GOAL else local_page(""), call.server.clock.now())
    try:
        address = provider.address_of(attempt)
    except ProviderError as error:
        return fail(call, goal, error)
    return redirect(address, attempt_cookie(call, attempt.cookie, MAX_AGE_S))


def come_back(call: ApiCall) -> ApiAnswer:
    """Sign in by the answer of the provider. The try ends, unless this was too early for it."""
    answer = read_answer(call, provider_of(call))
    if answer.status in KEEPS_ATTEMPT:
        return answer
    return ApiAnswer(answer.body, answer.status, (*answer.headers, attempt_cookie(call, "", 0)))


def read_answer(call: ApiCall, provider: Provider) -> ApiAnswer:
    """Return the page to go to, or the form with what is wrong with the answer."""
    cookie = read_cookie(call.head.other(COOKIE), secure=secure(call), names=(SECURE_COOKIE, PLAIN_COOKIE))
    attempt = read_attempt(cookie, call.server.clock.now())
    if attempt is None:
        return refuse(call, local_page(""), NOT_OURS, reason=NO_ATTEMPT)
    if not attempt.is_answered_by(call.first_value("state") or ""):
        return refuse(call, local_page(""), NOT_OURS, reason="the state of the answer is that of another try")
    goal, code = local_page(attempt.goal), call.first_value("code")
    if not code:
        error = simple_error(call.first_value("error"))
        call.server.log.warn("the provider did not sign somebody in", error=error or "unknown")
        return show_form(call, goal, NOT_DONE, 403)
    if seconds := call.server.provider_tries.take(call.address):
        return refuse_try(call, goal, seconds)
    try:
        with provider.place():
            if not use(call, attempt):
                return refuse(call, goal, NOT_OURS, reason="the answer was used already")
            person = provider.redeem(code, attempt, call.first_value("iss"))
    except BusyError as error:
        call.server.provider_tries.give_back(call.address)
        return fail(call, goal, error)
    except ProviderError as error:
        return fail(call, goal, error)
    call.server.provider_tries.give_back(call.address)
    proven = Person(provider.settings.issuer, person.subject, person.email, name=person.name, groups=person.groups)
    return sign_in_person(call, goal, proven, BY_PROVIDER, person.ignored)


def use(call: ApiCall, attempt: Attempt) -> bool:
    """Note that a try is used, before the provider is asked, so that of two answers only one gets there. False if it was used."""
    with call.store.recording() as tx:
        return identities.use_answer(tx, attempt.hash, NOTED_S)


def fail(call: ApiCall, goal: str, error: ProviderError) -> ApiAnswer:
    """Return the form after a failure of the provider, and log the reason. Nothing has failed where too many come at once."""
    if isinstance(error, BusyError):
        return replace(refuse(call, goal, BUSY, 503), headers=((b"retry-after", b"%d" % BUSY_S),))
    call.server.log.warn("signing in at the provider failed", error=str(error))
    if isinstance(error, IdTokenError):
        return show_form(call, goal, NOT_ACCEPTED, 403)
    return show_form(call, goal, AWAY, 502)


def secure(call: ApiCall) -> bool:
    """Return whether browsers reach the server by TLS."""
    return is_secure(call.request, call.server.url)


def attempt_cookie(call: ApiCall, value: str, seconds: int) -> tuple[bytes, bytes]:
    """Return the header that sets the cookie of a try. With TLS the cookie is for this host and for TLS only."""
    name, path = (SECURE_COOKIE, "/") if secure(call) else (PLAIN_COOKIE, call.root or "/")
    text = f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{'; Secure' if secure(call) else ''}"
    return b"set-cookie", text.encode()


ROUTES = (
    page("/sign-in/provider", leave, "sign_in.html", "Goes to the OpenID provider.", auth=Auth.NONE),
    page(
        "/sign-in/callback", come_back, "sign_in.html", "Signs in by the answer of the OpenID provider.", auth=Auth.NONE
    ),
)
