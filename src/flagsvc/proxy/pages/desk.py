"""The contract of the operators' address with pages: pages below /ui, and everything else by the service for operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from flagsvc.core.log import locate_error
from flagsvc.http import http_errors
from flagsvc.http.answers import Answer, respond
from flagsvc.http.call import FETCH_SITE, KEY, Call, FunctionHandler
from flagsvc.http.client.addresses import shown
from flagsvc.http.contract import Contract
from flagsvc.http.first_page import LONGEST, qualities
from flagsvc.http.messages import GET, HEAD, POST, HttpError, Request, Response
from flagsvc.http.trust import TrustedProxies
from flagsvc.pages.forms import FORM, parse_form
from flagsvc.pages.headers import READ_HEADERS, is_own_request
from flagsvc.pages.live import HEADERS, EventStreams, event
from flagsvc.pages.sign_in_tries import SignInTries
from flagsvc.pages.site import redirect
from flagsvc.proxy.api.service import DISCARDED_DIGITS, Service
from flagsvc.proxy.generations.feeds import UpstreamSync
from flagsvc.proxy.generations.generation import Generations
from flagsvc.proxy.generations.setup import ProxySetup
from flagsvc.proxy.pages import status
from flagsvc.proxy.pages.access import Access, sign_in_rows
from flagsvc.proxy.pages.flags import flag_rows
from flagsvc.proxy.pages.page import (
    PAGES,
    SITE,
    PageCall,
    PageRow,
    ReadCounts,
    Scene,
    ShownEnvironment,
    answer_error,
    render,
)
from flagsvc.proxy.pages.traffic import Recorder, traffic_rows
from flagsvc.proxy.pages.trying import try_rows
from flagsvc.proxy.pages.unfolding import UnfoldedConfigurations
from flagsvc.settings.environments import TABLE, rows_for
from flagsvc.settings.load_environments import part_of
from flagsvc.settings.option import Option
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import DEFAULT, is_shown, row_text
from flagsvc.settings.table import OPTIONS


def make_rows(scene: Scene, access: Access, recorder: Recorder) -> tuple[PageRow, ...]:
    configurations = UnfoldedConfigurations()
    return (
        *status.ROWS,
        *flag_rows(configurations),
        *try_rows(configurations, scene),
        *traffic_rows(recorder),
        status.CHANGES_ROW,
        CONFIG_ROW,
        *stream_rows(scene, access),
        *sign_in_rows(access),
    )


async def show_config(call: PageCall) -> Answer:
    """Return the options as they were read at the start."""
    resolved = call.scene.resolved
    if resolved is None:
        return Answer({"read": False, "options": [], "environments": [], "warnings": []})
    environments = []
    for name, values in resolved.values.get(TABLE, ()):
        part = part_of(resolved, name, values)
        environments.append({"name": name, "options": await describe_options(call, rows_for(name), part)})
    options = await describe_options(call, OPTIONS, resolved)
    return Answer({"read": True, "options": options, "environments": environments, "warnings": list(resolved.warnings)})


async def describe_options(call: PageCall, rows: Iterable[Option], resolved: Resolved) -> list[dict[str, Any]]:
    """Return options as text, in slices."""
    found = []
    for row in rows:
        if is_shown(row, resolved):
            name, value, source = row_text(row, resolved)
            text = call.scene.secrets.mask(value)
            found.append(
                {
                    "name": name,
                    "section": row.section.value,
                    "value": text,
                    "source": source,
                    "isSet": source != DEFAULT,
                }
            )
            await call.slices.rest()
    return found


CONFIG_ROW = PageRow("/config", "config.html", show_config)


SECOND_S: Final = 1.0


def fingerprint(shown: ShownEnvironment) -> tuple[object, ...]:
    """Return what is different after a change of an environment."""
    snapshot, revisions = shown.holder.current, shown.changes.revisions
    compared = bool(revisions) and revisions[-1].is_compared
    return shown.name, shown.holder.state, shown.holder.stream.is_open, None if snapshot is None else snapshot.revision, compared


class News:
    """What the streams tell each second."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._last: list[tuple[object, ...]] = []

    def tell(self) -> bytes:
        found = [fingerprint(each) for each in self._scene.list_environments().values()]
        changed, self._last = found != self._last, found
        return (event("revision", {}) if changed else b"") + event("second", {})


def stream_rows(scene: Scene, access: Access) -> tuple[PageRow, ...]:
    """Return the row of the stream. It ends with the session or the key that opened it."""
    streams = EventStreams(News(scene).tell, SECOND_S)

    async def show(call: PageCall) -> Answer:
        if call.wants_data:
            raise HttpError(404, "there is no such page", [])
        head = call.head
        return Answer(headers=HEADERS, parts=streams.make(lambda: access.may_see_all(head), access.viewer_of(head)))

    async def show_alive(call: PageCall) -> Answer:
        return Answer()

    return (PageRow("/stream", "", show), PageRow("/alive", "", show_alive))


STATIC: Final = "static"
ALLOWED: Final = (b"allow", b"GET, HEAD, POST")


class PagesContract(Contract):
    """Answers requests for pages, and passes all others on to `service`."""

    def __init__(
        self, service: Service, scene: Scene, access: Access, rows: Sequence[PageRow], recorder: Recorder, base: str
    ) -> None:
        headers = {**service.headers, **READ_HEADERS, b"authorization": KEY}
        super().__init__(headers, service.header_limit, service.query_limit, service.reached, service.log)
        self.service = service
        self.scene = scene
        self.access = access
        self.rows = rows
        self.recorder = recorder
        self.roots = (base, "") if base else ("",)

    async def run_beside(self) -> None:
        """Read the counters now and then, for the page Traffic."""
        await self.recorder.run()

    def check_head(self, call: Call) -> Call | Response:
        """Return the call, or the answer if its head already decides that."""
        try:
            made = self.find_page(call.request)
            if made is None:
                home = self.find_home(call)
                call.handler = self.service
                return self.service.check_head(call) if home is None else home
            return self.check_page(PageCall(self.scene, call, *made))
        except Exception as error:  # the last resort: every request gets an answer
            return self.fail(call, error)

    def find_page(self, request: Request) -> tuple[str, str] | None:
        """Return what is in front of PAGES in a path, and what is behind; None for the path of no page."""
        path = request.path.decode("latin-1")
        for root in self.roots:
            place = root + PAGES
            if path == place or path.startswith(place + "/"):
                return root, path[len(place) :].rstrip("/")
        return None

    def find_home(self, call: Call) -> Response | None:
        """Return the redirect of a browser from the root to the first page; None for any other request."""
        path = call.request.path.decode("latin-1").rstrip("/")
        if path not in self.roots or call.request.method not in (GET, HEAD) or not wants_html(call.accept):
            return None
        return respond(call, redirect(f"{path}{PAGES}/"))

    def check_page(self, call: PageCall) -> Call | Response:
        """Return the call of a page, or its answer if the head already decides that."""
        head = call.head
        try:
            head.huge = head.content_length is not None and len(head.content_length) > DISCARDED_DIGITS
            self.service.check_size(head)
            self.access.check_host(head.host)
            row = self.find_row(call)
            self.check_access(call, row)
            if row is None:
                return self.finish(call, find_file(call))
            if row.limit and head.has_body():
                head.limit = check_body(head, row.limit)
            head.handler = FunctionHandler(partial(self.answer_page, call, row))
            return head
        except NeedsKeyError:
            return self.finish(call, redirect(call.address("/sign-in")))
        except HttpError as refused:
            return self.finish(call, refuse(call, refused))

    def find_row(self, call: PageCall) -> PageRow | None:
        """Return the row of a page, None for a file. Raises HttpError (404, 405)."""
        method = GET if call.head.request.method == HEAD else call.head.request.method
        if call.segments[:1] == (STATIC,) and len(call.segments) == 3 and method == GET:
            return None
        fitting = [(row, params) for row in self.rows if (params := row.match(call.segments)) is not None]
        if not fitting:
            raise HttpError(404, "there is no such page", [])
        for row, params in fitting:
            if row.method == method:
                call.params = params
                return row
        raise HttpError(405, "this page does not take that method", [])

    def check_access(self, call: PageCall, row: PageRow | None) -> None:
        """Check who asks. Raises HttpError (401, 403), and NeedsKeyError where a browser can sign in."""
        head = call.head
        call.sees_all = self.access.may_see_all(head)
        call.who = "signed in" if self.access.session_of(head) is not None else ""
        if head.request.method == POST and not may_send(head):
            raise HttpError(403, "this form was not sent by a page of this address", [])
        if row is None or row.open or call.sees_all:
            return
        if not self.access.has_keys:
            message = (
                "only the status is shown here: the address is neither loopback nor a Unix socket, and the option"
                " adminPageKeys has no key"
            )
            raise HttpError(403, message, [])
        if head.request.method in (GET, HEAD) and not call.wants_data and head.key is None:
            raise NeedsKeyError
        raise HttpError(401, "this page needs one of adminPageKeys, in the header Authorization", [])

    async def answer_page(self, call: PageCall, row: PageRow, head: Call, body: bytes) -> Response:
        try:
            if head.limit:
                if len(body) > head.limit:
                    raise HttpError(413, "the form is too large", [])
                call.form = parse_form(body)
            return self.finish(call, await render(call, row.template, await row.show(call)))
        except HttpError as refused:
            return self.finish(call, refuse(call, refused))
        except Exception as error:  # the last resort: every request gets an answer
            self.log.error("an unexpected error", route=f"{PAGES}{row.path}", error=locate_error(error))
            return self.finish(call, refuse(call, http_errors.internal_error()))

    def finish(self, call: PageCall, answer: Answer) -> Response:
        """Return the response to a call; it closes the connection if a huge body is still coming."""
        response = respond(call.head, answer)
        response.close = call.head.huge
        return response

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        return self.service.early_refusal(status, crowded)

    def tls_refusal(self) -> Response:
        return self.service.tls_refusal()

    def network(self, peer: str) -> bytes:
        return self.service.network(peer)

    def fail(self, call: Call, error: Exception) -> Response:
        return self.service.fail(call, error)


class NeedsKeyError(Exception):
    """The caller has to sign in first."""


def wants_html(accept: bytes | None) -> bool:
    """Return whether an Accept header names HTML, as that of a browser does."""
    return any(media == "text/html" and weight > 0 for media, weight in qualities((accept or b"")[:LONGEST].decode("latin-1")))


def may_send(head: Call) -> bool:
    """Return whether a form came from a page of ours, or from a program: only browsers send these headers."""
    fetch_site = head.other(FETCH_SITE)
    if fetch_site is None and head.origin is None:
        return True
    return is_own_request(fetch_site, head.origin, head.host)


def check_body(head: Call, limit: int) -> int:
    """Return the limit of a form's body. Raises HttpError (413, 415)."""
    media = (head.content_type or b"").partition(b";")[0].strip().lower()
    if media != FORM.encode() or head.content_encoding is not None:
        raise HttpError(415, f"the body must be a form ({FORM}), not compressed", [])
    if head.announced() > limit:
        head.huge = True
        raise HttpError(413, f"the form is larger than {limit} bytes", [])
    return limit


def refuse(call: PageCall, refused: HttpError) -> Answer:
    own = [ALLOWED] if refused.status == 405 else []
    own += [(b"retry-after", b"%d" % refused.retry)] if refused.retry else []
    return answer_error(call, refused.status, refused.message, *own)


def find_file(call: PageCall) -> Answer:
    """Return a file; 404 for an unknown one, or another version of it."""
    return SITE.file(call.segments[1], call.segments[2]) or answer_error(call, 404, "there is no such file")


def make_desk(generations: Generations, read_counts: ReadCounts) -> Contract:
    """Return the contract of the operators' address: the service for operators, and pages unless the option is off.

    `read_counts` returns the counters of all processes that answer callers.
    """
    setup, service = generations.setup, generations.operators
    options = setup.options
    if options.admin_address is None or not options.admin_pages:
        return service
    tries, trust = SignInTries(setup.clock, service.reached), TrustedProxies(options.trust_proxy)
    access = Access(options.admin_address, options.admin_page_keys, setup.clock, tries, trust)
    scene = Scene(
        read_identity=lambda: generations.setup.identity,
        clock=setup.clock,
        log=setup.service_log,
        secrets=setup.secrets,
        readiness=service.readiness,
        read_workers=generations.sources.workers,
        read_counts=read_counts,
        list_environments=lambda: {
            each.name: show(each.setup, each.feed) for each in generations if isinstance(each.feed, UpstreamSync)
        },
        resolved=setup.resolved,
        started=setup.clock.now(),
    )
    SITE.templates.load()
    recorder = Recorder(read_counts, setup.clock, setup.service_log)
    return PagesContract(service, scene, access, make_rows(scene, access, recorder), recorder, service.settings.base_path)


def show(setup: ProxySetup, feed: UpstreamSync) -> ShownEnvironment:
    return ShownEnvironment(
        name=setup.name,
        upstream=shown(setup.options.flagsvc_url),
        refresh_s=setup.options.refresh_interval / 1000,
        holder=feed.holder,
        notes=feed.poller.notes,
        asked=feed.counters,
        changes=feed.changes,
        settings=setup.service_settings,
        compile_options=setup.compile_options,
        enrichers=setup.enrichers.functions,
    )
