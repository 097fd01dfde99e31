"""Signing in and out: with a personal token, or with a link that works once (decision 0032). There are no passwords.

Whom an authenticating proxy in front names signs in without a form. An OpenID provider answers once, to the same browser (decision
0034).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlencode

from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE, FETCH_SITE
from flagsvc.pages.headers import make_cookie, read_cookie
from flagsvc.pages.sign_in_tries import describe_wait
from flagsvc.pages.site import redirect
from flagsvc.server.api.authorization import PAGES, SESSION, CookieNames, is_secure
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import unknown_path
from flagsvc.server.api.route import Auth
from flagsvc.server.pages.page import SIGN_IN_BY_HEADER, change, page
from flagsvc.server.pages.problems import Problem
from flagsvc.server.sign_in.attempt import MAX_AGE_S, NOTED_S, Attempt, begin, read_attempt
from flagsvc.server.sign_in.exchange import BusyError, IdTokenError, ProviderError, simple_error
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.keyring import BY_HEADER, BY_PROVIDER
from flagsvc.server.store.resources import identities, sessions
from flagsvc.server.store.resources.identities import HEADER, Person
from flagsvc.server.store.resources.users import EMAIL

if TYPE_CHECKING:
    from flagsvc.server.sign_in.provider import Provider

START = "/flags"
"""The page after signing in, unless another one was asked for."""
KEPT = "/sign-in/kept"
"""The page that looks whether the browser has kept the session, where this is in doubt."""
UNKNOWN_SECRET = "This is no token of a user here, or it has expired. A link works once, within 15 minutes."  # noqa: S105  (a sentence)
OVER_HTTP = "The browser did not keep the session, because this page came over http."
NO_COOKIES = "The browser did not keep the session. Allow the cookies of this server."


def show(call: ApiCall) -> Answer:
    """Return the form. The secret of a link is in the fragment of its address, so that no server and no log sees it."""
    return show_form(call, local_page(call.first_value("next") or ""))


def show_form(call: ApiCall, goal: str, problem: str = "", status: int = 200, *, instead: str = "") -> Answer:
    """Return the form, with the ways that lead past it. `instead` is the address to open after the problem, or empty."""
    person = None if call.caller.person is None else call.caller.person.name
    provider = None if call.server.ways.provider is None else call.server.ways.provider.name
    ways = {"person": person, "provider": provider}
    return Answer({"next": goal, "problem": problem, "instead": instead, **ways}, status)


def refuse(
    call: ApiCall, goal: str, problem: str, status: int = 403, *, reason: str = "", account: str = "", instead: str = ""
) -> Answer:
    """Return the form with a problem, and log why the sign-in failed: `reason`, or the problem itself.

    With the id of an account, the person is proven and the line is a warning. Any visitor causes the other ones.
    """
    if account:
        call.server.log.warn("signing in was refused", reason=reason or problem, account=account)
    else:
        call.server.log.info("signing in was refused", reason=reason or problem)
    return show_form(call, goal, problem, status, instead=instead)


def sign_in(call: ApiCall) -> Answer:
    """Sign in with a personal token, or with the secret of a link, and go to the page that was asked for."""
    goal = local_page(call.form.text("next"))
    if seconds := call.server.tries.take(call.address):
        return refuse_try(call, goal, seconds)
    opened = open_session(call, call.form.text("token"))
    if opened is None:
        problem = Problem(UNKNOWN_SECRET, "token")
        return refuse(call, goal, problem, reason="the token or link is unknown or has expired")
    call.server.tries.give_back(call.address)
    return enter(call, goal, opened)


def enter(call: ApiCall, goal: str, secret: str) -> Answer:
    """Return the redirect to a page with the cookie of a new session; by way of KEPT where the browser may not keep it."""
    in_doubt = is_secure(call.request, call.server.url) and call.request.scheme != "https"
    place = f"{KEPT}?{urlencode({'next': goal})}" if in_doubt else goal
    return redirect(f"{call.root}{PAGES}{place}", cookie(call, SESSION, secret, int(sessions.SESSION_TIME.total_seconds())))


def check_kept(call: ApiCall) -> Answer:
    """Go to the page that was asked for; without a session, return the form with the reason.

    Browsers send Sec-Fetch-Site only where they also keep a cookie that is for TLS. So a request with it came over https to a
    proxy in front.
    """
    goal = local_page(call.first_value("next") or "")
    if call.caller.actor is not None:
        return redirect(f"{call.root}{PAGES}{goal}")
    if call.head.other(FETCH_SITE) is not None:
        return refuse(call, goal, NO_COOKIES)
    return refuse(call, goal, OVER_HTTP, instead=f"{call.server.url}{PAGES}{goal}")


def refuse_try(call: ApiCall, goal: str, seconds: int) -> Answer:
    """Return the form again after too many wrong tries."""
    reason = "there were too many wrong tries"
    answer = refuse(call, goal, describe_wait(seconds), 429, reason=reason)
    return replace(answer, headers=((b"retry-after", b"%d" % seconds),))


def sign_in_by_header(call: ApiCall) -> Answer:
    """Sign in the user that a proxy in front names, and go to the page that was asked for; without one to the form."""
    goal = local_page(call.first_value("next") or "")
    if call.caller.person is None:
        return redirect(f"{call.root}{PAGES}/sign-in?{urlencode({'next': goal})}")
    named = call.caller.person.name
    person = Person(HEADER, named, named if EMAIL.fullmatch(named) else "", named, groups=call.caller.person.groups)
    return sign_in_person(call, goal, person, f"{BY_HEADER} {call.caller.person.digest}")


def sign_in_person(call: ApiCall, goal: str, person: Person, opened_by: str, ignored: Sequence[str] = ()) -> Answer:
    """Sign in somebody who is authenticated, and go to a page; show the form with the reason if that is refused.

    `ignored` says what of the person does not count, and why. The log names the person by the id of the account.
    """
    account = identities.account_id(person.issuer, person.subject)
    try:
        with call.store.writing(None, "sign-in") as tx:
            secret = identities.sign_in(tx, person, call.server.ways.group_roles, opened_by)
        if secret is not None:
            return enter(call, goal, secret)
        problem, reason = identities.NO_ROLE, f"{identities.NO_GROUP}, so the roles that groups gave are taken"
    except identities.RefusedPersonError as refused:
        problem, reason = str(refused), refused.reason
    except CallerError as refused:
        problem = reason = str(refused)
    return refuse(call, goal, problem, reason="; ".join((reason, *ignored)), account=account)


def open_session(call: ApiCall, secret: str) -> str | None:
    """Return the secret of a new session; None for a secret that opens none. Only one that does changes the database."""
    with call.store.reading() as tx:
        if not sessions.can_sign_in(tx, secret):
            return None
    with call.store.writing(None) as tx:
        return sessions.sign_in(tx, secret)


def sign_out(call: ApiCall) -> Answer:
    """End the session."""
    if call.caller.session:
        with call.store.writing(None) as tx:
            sessions.close_session(tx, call.caller.session)
    return redirect(f"{call.root}{PAGES}/sign-in", cookie(call, SESSION, "", 0))


def cookie(call: ApiCall, names: CookieNames, value: str, seconds: int) -> tuple[bytes, bytes]:
    """Return the header that sets a cookie. With TLS the cookie is for this host and for TLS only."""
    name, secure = names.pick(call.request, call.server.url), is_secure(call.request, call.server.url)
    return make_cookie(name, value, "/" if secure else call.root or "/", seconds, "Lax", secure=secure)


def local_page(text: str) -> str:
    """Return the page to go to, below PAGES; START for anything that could lead elsewhere."""
    path = unquote(text.partition("?")[0].partition("#")[0]).lower()
    fine = path.startswith("/") and not path.startswith(("//", "/sign-")) and not {".", ".."} & set(path.split("/"))
    return text if fine and f"{text}{path}".isprintable() and "\\" not in f"{text}{path}" and text.isascii() else START


def home(call: ApiCall) -> Answer:
    """Go to the first page."""
    return redirect(f"{call.root}{PAGES}{START}")


ATTEMPT = CookieNames("__Host-flagsvc-attempt", "flagsvc-attempt")
LONGEST_GOAL = 500
"""The most characters of the address to go to after signing in; a longer one is not kept."""

NOT_OURS = "This answer was used already, or belongs to no sign-in of this browser in the last ten minutes. Sign in again."
NO_ATTEMPT = "the browser sent no cookie of a try, or a cookie that is older than ten minutes or of another clock"
NOT_DONE = "The provider did not sign you in. Try again, or use a token or a link."
NOT_ACCEPTED = "What the provider says of you is not accepted here. Sign in again. The log of this server has the reason."
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


def leave(call: ApiCall) -> Answer:
    """Go to the provider, with a new try in the cookie."""
    provider, goal = provider_of(call), local_page(call.first_value("next") or "")
    attempt = begin(goal if len(goal) <= LONGEST_GOAL else local_page(""), call.server.clock.now())
    try:
        address = provider.address_of(attempt)
    except ProviderError as error:
        return fail(call, goal, error)
    return redirect(address, cookie(call, ATTEMPT, attempt.cookie, MAX_AGE_S))


def come_back(call: ApiCall) -> Answer:
    """Sign in by the answer of the provider. The try ends, unless this was too early for it."""
    answer = read_answer(call, provider_of(call))
    if answer.status in KEEPS_ATTEMPT:
        return answer
    return Answer(answer.body, answer.status, (*answer.headers, cookie(call, ATTEMPT, "", 0)))


def read_answer(call: ApiCall, provider: Provider) -> Answer:
    """Return the page to go to, or the form with what is wrong with the answer."""
    sent = read_cookie(call.head.other(COOKIE), ATTEMPT.pick(call.request, call.server.url))
    attempt = read_attempt(sent, call.server.clock.now())
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
    """Note that a try is used, before the provider is asked: only the first of two answers gets there. False if it was used."""
    with call.store.recording() as tx:
        return identities.use_answer(tx, attempt.hash, NOTED_S)


def fail(call: ApiCall, goal: str, error: ProviderError) -> Answer:
    """Return the form after a failure of the provider, and log the reason. Nothing has failed where too many come at once."""
    if isinstance(error, BusyError):
        return replace(refuse(call, goal, BUSY, 503), headers=((b"retry-after", b"%d" % BUSY_S),))
    call.server.log.warn("signing in at the provider failed", error=str(error))
    if isinstance(error, IdTokenError):
        return show_form(call, goal, NOT_ACCEPTED, 403)
    return show_form(call, goal, AWAY, 502)


ROUTES = (
    page("", home, "flags.html", "The first page."),
    page("/sign-in", show, "sign_in.html", "The form to sign in.", auth=Auth.NONE),
    page(SIGN_IN_BY_HEADER, sign_in_by_header, "sign_in.html", "Signs in the user that a proxy names.", auth=Auth.NONE),
    page(KEPT, check_kept, "sign_in.html", "Tells whether the browser kept the session.", auth=Auth.NONE),
    change("/sign-in", sign_in, summary="Sign in.", template="sign_in.html", auth=Auth.NONE, in_maintenance=True),
    change("/sign-out", sign_out, summary="Sign out.", auth=Auth.NONE, in_maintenance=True),
    page("/sign-in/provider", leave, "sign_in.html", "Goes to the OpenID provider.", auth=Auth.NONE),
    page("/sign-in/callback", come_back, "sign_in.html", "Signs in by the answer of the OpenID provider.", auth=Auth.NONE),
)
