"""What all pages share: their routes, the frame, files, the event stream, redirects, the page of an error, and the settings.

The event stream names no flag: a page asks for what its viewer may see.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, urlencode

from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE, FETCH_SITE, Call
from flagsvc.http.first_page import prefers_json
from flagsvc.http.messages import GET, HEAD, HTML
from flagsvc.pages.forms import Form, find_boundary
from flagsvc.pages.headers import PAGE_HEADERS, is_own_request
from flagsvc.pages.live import HEADERS
from flagsvc.pages.site import Site, redirect
from flagsvc.pages.templates import Frame, Section, segment
from flagsvc.pages.theme import choose_theme, theme_of
from flagsvc.server.api.authorization import PAGES, feature_project, read_secret
from flagsvc.server.api.body import Parsed, content_type, has_body
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import ApiError, bare, foreign_request, unknown_path, wrong_form
from flagsvc.server.api.pipeline import RoutedRequest
from flagsvc.server.api.route import Auth, Handler, ProjectOf, Route
from flagsvc.server.api.routes import OPERATIONS
from flagsvc.server.pages.notices import QUERY, find_notice, note_done
from flagsvc.server.pages.problems import Errors
from flagsvc.server.store.actors import ADMIN, Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.store import Tx

SIGN_IN_BY_HEADER = "/sign-in/header"
PLAIN = {
    401: "Your session has ended, so nothing was changed. Sign in and do it again.",
    405: "There is nothing to see at this address: it belongs to a button of a page.",
}
"""Status → what its page says to a person, in place of a message for programs."""
HAVE_SECRETS = ("createAddon", "updateAddon")
"""Operations whose forms may have a secret, which no page repeats."""
MOST_TYPED = 1_000
"""The most fields of a form that is sent again after signing in."""


class Setting(NamedTuple):
    """A page below the settings: its title, its path below the pages, its purpose, and the permission that seeing it needs."""

    title: str
    path: str
    words: str
    permission: str = ""


SETTINGS: dict[str, tuple[Setting, ...]] = {
    "Flags and data": (
        Setting("Import", "/import", "Import flags from a file or a text, after a look at what changes."),
        Setting("Export", "/export", "Save flags of an environment as a file that can be imported."),
        Setting(
            "Context fields",
            "/context-fields",
            "What conditions compare: create fields, and change their legal values.",
        ),
        Setting("Tag types", "/tag-types", "Create, change and delete the types of tags."),
        Setting("Strategy types", "/strategy-types", "Custom strategies and their parameters; deprecate a strategy type."),
    ),
    "Access": (
        Setting("People", "/people", "The users, their root roles and sessions.", ADMIN),
        Setting("Projects", "/projects", "Create projects, and change their environments and members."),
        Setting("Environments", "/environments", "Create, order, switch and delete environments."),
    ),
    "Connections": (
        Setting("API tokens", "/tokens", "What services, apps and proxies read flags with."),
        Setting("Proxies", "/proxies", "Who polls this server, and what each has."),
        Setting("Webhooks", "/webhooks", "Send events to a program or a chat: which, where to, and what was sent."),
    ),
    "You": (
        Setting("My tokens", "/my-tokens", "Your personal tokens: create one, delete one."),
        Setting("My sessions", "/sessions", "Where you are signed in, and ending it."),
    ),
}
"""Title of a group → its pages."""


SITE = Site(
    __package__,
    Section("All flags", ""),
    Section("Flags", "/flags", "flag", covers=("/new-flag",)),
    Section("Try", "/try", "try"),
    Section("History", "/history", "history"),
    Section("Compare", "/compare", "compare"),
    Section("Proxies", "/proxies", "proxy"),
    Section("Segments", "/segments", "segment"),
    Section("Tokens", "/tokens", "key"),
    Section("Settings", "/settings", "settings", covers=("/new-", *(each.path for pages in SETTINGS.values() for each in pages))),
)


def page(
    path: str,
    handler: Handler,
    template: str,
    summary: str,
    *,
    auth: Auth = Auth.PAGE,
    permission: str | tuple[str, ...] = "",
) -> Route:
    """Return the route of a page below PAGES. `template` is the name of its template, `summary` says what it shows."""
    operation = f"page{template.removesuffix('.html').title().replace('_', '')}"
    route, shown = raw(path, handler, summary, HTML.decode()), partial(render, template)
    return replace(route, operation=operation, auth=auth, permission=permission, render=shown)


def raw(path: str, handler: Handler, summary: str, media: str) -> Route:
    """Return the route of an answer below PAGES that is no page: a stream of events, or a file. `media` is its type."""
    return Route(
        path=f"{PAGES}{path}",
        handler=handler,
        operation=f"page{path.strip('/').title().replace('.', '')}",
        summary=summary,
        tag="Pages",
        auth=Auth.PAGE,
        media=media,
        listed=False,
    )


def change(
    path: str,
    handler: Handler,
    *,
    template: str = "",
    auth: Auth = Auth.PAGE,
    reads: bool = False,
    in_maintenance: bool = False,
    stands_for: str = "",
    summary: str = "",
) -> Route:
    """Return the route of a form below PAGES. It redirects, or shows `template`. `reads` tells that it changes nothing.

    `stands_for` names the operation of the admin API that it does, which says who may; without one the `summary` says what it does.
    """
    operation = OPERATIONS[stands_for] if stands_for else None
    return Route(
        path=f"{PAGES}{path}",
        method="POST",
        handler=handler,
        operation=f"form{path.title()}",
        summary=summary if operation is None else operation.summary,
        tag="Pages",
        auth=auth,
        permission="" if operation is None else operation.permission,
        project_of=None if operation is None else project_of_form(path, operation),
        media=HTML.decode(),
        render=partial(render, template) if template else None,
        read_form=read_form,
        reads=reads,
        in_maintenance=in_maintenance,
        stands_for=stands_for,
        listed=False,
    )


def project_of_form(path: str, operation: Route) -> ProjectOf | None:
    """Return what finds the project of a form: of the flag in its path, or as the operation does, with the form as its body."""
    find = operation.project_of
    if ":featureName" in path:
        return feature_project
    return None if find is None else lambda call: find(replace(call, body={"project": call.form.text("project")}))


def read_form(head: Call, parsed: Parsed) -> Form:
    """Return the form that a request sends. Raises ApiError: 403 if no page of ours sent it, 415 if it is no form.

    A caller with a token needs no page: no page of another origin can make a browser send one.
    """
    if head.key is None and not is_own_request(head.other(FETCH_SITE), head.origin, head.host):
        raise foreign_request()
    if parsed.form is None and has_body(head) and head.announced() != 0:
        raise wrong_form(content_type(head))
    return Form() if parsed.form is None else parsed.form


def render(template: str, call: ApiCall, answer: Answer) -> Answer:
    """Return an answer with the page of its data, or with the data. Bytes are a file to save, and stay as they are.

    Data with problems also tell the field of each: `errors`. A page has what a button did to the rows of its form: `told`.
    """
    if call.as_data:
        body = data_of(answer.body) if isinstance(answer.body, dict) else answer.body
        return replace(answer, body=body, headers=(*answer.headers, *PAGE_HEADERS))
    if answer.body is None or isinstance(answer.body, bytes):
        return answer
    frame = frame_of(call.root, call.head, call.caller.actor, call.server.clock.now())
    frame = frame._replace(notice=find_notice(call, frame.pages, place_of(call, frame)))
    body = SITE.templates.render(template, **{"frame": frame, "errors": errors_of(answer.body), "told": None} | answer.body)
    return replace(answer, body=body, headers=(*answer.headers, *PAGE_HEADERS))


def errors_of(body: Json) -> Errors:
    """Return the errors at the fields of a page."""
    return Errors((*body.get("problems", ()), body.get("problem", "")))


def data_of(body: Json) -> Json:
    """Return the data of a page: its problems as plain texts, and the errors at its fields, if there are any."""
    plain: Json = {"problems": [str(each) for each in body["problems"]]} if "problems" in body else {}
    plain |= {"problem": str(body["problem"])} if "problem" in body else {}
    errors = dict(errors_of(body))
    return body | plain | ({"errors": errors} if errors else {})


def place_of(call: ApiCall, frame: Frame) -> str:
    """Return the place of a page below PAGES, with its query, without what a notice adds to it."""
    kept = {name: values for name, values in call.query.items() if name != QUERY}
    return frame.path.removeprefix(frame.pages) + ("?" if kept else "") + urlencode(kept, doseq=True)


def frame_of(root: str, head: Call, actor: Actor | None, now: float = 0.0) -> Frame:
    who, role = ("", "") if actor is None else (actor.name, actor.root_role)
    pages, path, theme = f"{root}{PAGES}", head.request.path.decode("latin-1"), theme_of(head.other(COOKIE))
    frame = SITE.frame(pages, path, who, theme, role=role, live=actor is not None, now=now)
    return frame if actor is None else frame._replace(may_ever=actor.may_ever, palette=f"{pages}/palette")


def see_other(call: ApiCall, *segments: str, done: Tx | None = None, **query: str) -> Answer:
    """Return the redirect to another page, whose path below PAGES has these segments. Empty values of the query are left out.

    `done` is the transaction of a change: the page says what it did, and offers to undo it.
    """
    place = "".join(f"/{segment(each)}" for each in segments)
    found = query | ({} if done is None else {QUERY: note_done(call, done)})
    text = urlencode({name: value for name, value in found.items() if value})
    return redirect(f"{call.root}{PAGES}{place}{'?' if text else ''}{text}")


def go_to(call: ApiCall, place: str, done: Tx) -> Answer:
    """Return the redirect to a page below PAGES, which says what a transaction did. `place` may have a query."""
    mark = "&" if "?" in place else "?"
    return redirect(f"{call.root}{PAGES}{place}{mark}{QUERY}={note_done(call, done)}")


def error_page(base: str, head: Call, request: RoutedRequest, failure: ApiError) -> Answer | None:
    """Return the page of an error; None if the request is for no page, for the data of one, or asks for JSON.

    `base` is the base path of the server. Who is not signed in is sent to the sign-in, and comes back after it. Whom a
    proxy in front names needs no form there.
    """
    if request.area != PAGES or request.as_data or prefers_json(head.accept):
        return None
    root = quote(head.request.root) + base
    if failure.status == 401 and head.key is None and head.request.method in (GET, HEAD):
        query = head.request.query.decode("latin-1")
        wanted = request.path.removeprefix(PAGES) + (f"?{query}" if query else "")
        place = "/sign-in" if request.caller.person is None else SIGN_IN_BY_HEADER
        return redirect(f"{root}{PAGES}{place}?{urlencode({'next': wanted}, quote_via=quote)}")
    if failure.status in PLAIN and head.key is None:
        failure = bare(failure.status, PLAIN[failure.status], failure.headers)
    details = [str(each.get("message", "")) for each in failure.body.get("details", []) if isinstance(each, dict)]
    frame = frame_of(root, head, request.caller.actor)
    permissions = failure.body.get("permissions", [])
    typed = fields_again(head, request) if failure.status == 401 else None
    return SITE.error(
        frame, failure.status, failure.message, failure.headers, details=details, permissions=permissions, typed=typed
    )


def fields_again(head: Call, request: RoutedRequest) -> list[tuple[str, str]] | None:
    """Return the names and values of a form that its sender may send again after signing in; None for a form that goes lost.

    That is a form that another origin may have sent, a form with a file or a secret, and a form of too many fields.
    """
    if request.form is None or find_boundary(content_type(head)) or request.route.stands_for in HAVE_SECRETS:
        return None
    if not is_own_request(head.other(FETCH_SITE), head.origin, head.host):
        return None
    found = [(name, value) for name, values in request.form.items() for value in values]
    return found if len(found) <= MOST_TYPED else None


def show_file(call: ApiCall) -> Answer:
    """Return a file. Raises ApiError (404) for an unknown one, or another version of it."""
    found = SITE.file(call.params["digest"], call.params["name"])
    if found is None:
        raise unknown_path(call.request.path.decode("latin-1"))
    return found


def show_stream(call: ApiCall) -> Answer:
    """Return a stream that ends with the session or the token. Raises HttpError (503) if there are too many.

    All sessions and personal tokens of a user are one viewer, and so is an admin token.
    """
    secret = call.caller.session or read_secret(call.head.key)
    keyring, actor = call.server.keyring, call.actor
    viewer = actor.id if actor.is_user else actor.token
    return Answer(headers=HEADERS, parts=call.server.streams.make(lambda: keyring.is_valid(secret), viewer))


def settings_of(actor: Actor) -> dict[str, list[Setting]]:
    """Return the pages below the settings that an actor may ever see, in their groups."""
    return {
        title: [each for each in pages if not each.permission or actor.may_ever(each.permission)]
        for title, pages in SETTINGS.items()
    }


def show_settings(call: ApiCall) -> Answer:
    found = settings_of(call.actor)
    groups = [
        {"title": title, "pages": [{"title": each.title, "path": each.path, "words": each.words} for each in pages]}
        for title, pages in found.items()
    ]
    return Answer({"groups": groups})


ROUTES = (
    Route(
        path=f"{PAGES}/static/:digest/:name",
        handler=show_file,
        operation="pageFile",
        summary="A file of the pages.",
        tag="Pages",
        auth=Auth.NONE,
        in_memory=True,
        listed=False,
    ),
    change(
        "/theme",
        lambda call: choose_theme(call.form, f"{call.root}{PAGES}"),
        reads=True,
        summary="Choose the theme of pages.",
    ),
    raw("/alive", lambda call: Answer(b""), "Whether the viewer is still signed in.", "text/plain"),
    raw("/stream", show_stream, "What has changed, as events.", "text/event-stream"),
    page("/settings", show_settings, "settings.html", "What else is kept on the server."),
)
