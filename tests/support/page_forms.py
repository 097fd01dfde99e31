"""Pages of the flag server as a browser without script uses them, with a session or a token: links, forms, buttons."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from flagsvc.pages.forms import MULTIPART, as_area, as_line
from flagsvc.server.store.resources import users
from flagsvc.testing import FakeClock
from support import processes
from support.flagservers import USER_SECRET, AppClient, app_client
from support.processes import Answer

FORM = "application/x-www-form-urlencoded"
HOSTILE = "<script>alert(1)</script>\"'&"
"""A text that would run as a script, or end an attribute."""
MARK = "----boundary-of-tests"
OF_THE_FRAME = ("/sign-out", "/theme")
"""The ends of the actions of forms that every page has."""


@dataclass
class PageForm:
    """A form of a page: where it goes, its fields as a browser sends them, and its buttons that are not disabled."""

    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    multipart: bool = False

    def value(self, name: str) -> str:
        """Return the first value of a field. Raises KeyError without one."""
        return dict(reversed(self.fields))[name]

    def filled(self, changes: Mapping[str, str | Sequence[str] | None]) -> list[tuple[str, str]]:
        """Return the fields after typing: a text, several, or None to leave a field out (an empty box)."""
        kept = [pair for pair in self.fields if pair[0] not in changes]
        for name, given in changes.items():
            kept += [(name, each) for each in ([] if given is None else [given] if isinstance(given, str) else given)]
        return kept


VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "rect", "path", "polyline", "circle"})


@dataclass(eq=False)
class Element:
    """An element of a page, with the elements and texts in it."""

    tag: str
    attributes: dict[str, str | None]
    above: Element | None
    inside: list[Element | str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return an attribute; the empty text without the attribute or its value."""
        return self.attributes.get(name) or ""

    def every(self, *tags: str) -> Iterator[Element]:
        """Yield the element and all that are in it, in the order of the page; only those with one of the tags, if any are given."""
        if not tags or self.tag in tags:
            yield self
        for each in self.inside:
            if isinstance(each, Element):
                yield from each.every(*tags)

    def around(self) -> Iterator[Element]:
        """Yield the elements that this one is in, from the innermost."""
        if self.above is not None:
            yield self.above
            yield from self.above.around()

    def is_disabled(self) -> bool:
        holders = (self, *(each for each in self.around() if each.tag == "fieldset"))
        return any("disabled" in each.attributes for each in holders)

    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text() for each in self.inside)


class PageReader(HTMLParser):
    """Reads a page into elements: `root` has all of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.root = self._open = Element("", {}, None)
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, dict(attrs), self._open)
        self._open.inside.append(made)
        if tag not in VOID:
            self._open = made

    def handle_data(self, data: str) -> None:
        self._open.inside.append(data)

    def handle_endtag(self, tag: str) -> None:
        closed = next((each for each in (self._open, *self._open.around()) if each.tag == tag), None)
        if closed is not None and closed.above is not None and tag not in VOID:
            self._open = closed.above


def read_wrong(answer: Answer, *, summary: bool = True) -> dict[str, str]:
    """Return the wrong fields of a page with what is wrong, in the order of the page.

    Each is tied to its sentence, the summary, if there is one, leads to it, and the first one has the focus.
    """
    elements = list(PageReader(answer.text).root.every())
    named = {each.get("id"): each for each in elements if each.get("id")}
    assert len(named) == sum(1 for each in elements if each.get("id")), "two elements have the same id"
    links = {each.get("href") for each in elements}
    found = {}
    for each in elements:
        if each.get("aria-invalid") == "true":
            identity = each.attributes["id"] or ""
            assert each.get("aria-describedby").split()[0] == f"{identity}-error"
            assert not summary or f"#{identity}" in links
            found[identity] = named[f"{identity}-error"].text().strip()
    assert not found or [each.get("id") for each in elements if "autofocus" in each.attributes] == list(found)[:1]
    return found


def read_forms(answer: Answer) -> list[PageForm]:
    return forms_in(answer.text)


def forms_in(page: str) -> list[PageForm]:
    return [form_of(each) for each in PageReader(page).root.every("form")]


def form_of(element: Element) -> PageForm:
    form = PageForm(element.get("method") or "get", element.get("action"), multipart=element.get("enctype") == MULTIPART)
    for each in element.every("input", "button", "select", "textarea"):
        name, kind = each.get("name"), each.get("type")
        if each.is_disabled():
            continue
        if each.tag == "button":
            form.buttons.append((name, each.get("value")))
        elif each.tag == "select":
            options = [option for option in each.every("option") if "disabled" not in option.attributes]
            chosen = [option for option in options if "selected" in option.attributes] or options
            for option in chosen[:1]:
                form.fields.append((name, option.text() if option.attributes.get("value") is None else option.get("value")))
        elif each.tag == "textarea":
            form.fields.append((name, as_area(each.text()).removeprefix("\n")))
        elif name and (kind not in ("checkbox", "radio") or "checked" in each.attributes):
            text = each.get("value") if "value" in each.attributes or "checked" not in each.attributes else "on"
            form.fields.append((name, text if kind in ("hidden", "checkbox", "radio") else as_line(text)))
    return form


@dataclass(frozen=True)
class PageClient:
    """A flag server with its pages, in this process."""

    client: AppClient

    def get(self, path: str, *, token: str = USER_SECRET) -> Answer:
        return self.client.get(path, token=token)

    def data(self, path: str, *, token: str = USER_SECRET) -> Any:
        answer = self.client.get(f"{path}.json", token=token)
        assert answer.status == 200, answer.body
        return answer.json()

    def post(self, path: str, fields: Sequence[tuple[str, str]] = (), *, token: str = USER_SECRET) -> Answer:
        sent = urlencode([(name, as_area(text).replace("\n", "\r\n")) for name, text in fields])
        return self.client.ask("POST", path, sent.encode(), token=token, headers={"content-type": FORM})

    def form(self, answer: Answer, action: str = "") -> PageForm:
        """Return the form of a page that posts to an address with this end."""
        return next(
            each
            for each in read_forms(answer)
            if each.method == "post" and each.action.endswith(action) and not each.action.endswith(OF_THE_FRAME)
        )

    def press(self, form: PageForm, do: str = "", *, token: str = USER_SECRET, **changes: str | Sequence[str] | None) -> Answer:
        """Press a button of a form after typing into fields; `__` in a name stands for a dot."""
        typed = {name.replace("__", "."): each for name, each in changes.items()}
        fields = form.filled(typed)
        if do:
            assert ("do", do) in form.buttons, (do, form.buttons)
            fields.append(("do", do))
        if form.multipart:
            return self.post_parts(form.action, fields, token=token)
        return self.post(form.action, fields, token=token)

    def undo(self, told: Answer) -> None:
        """Take back what a change did, with the button on the page to which it leads."""
        assert self.press(self.form(self.get(told.headers["location"]), "/undo")).status == 303

    def post_parts(self, path: str, fields: Sequence[tuple[str, str]], *, token: str = USER_SECRET) -> Answer:
        """POST a form with a file, as browsers do: the field `file` is one, which may not be chosen."""
        body = b"".join(encode_part(name, value, file=name == "file") for name, value in fields) + f"--{MARK}--\r\n".encode()
        headers = {"content-type": f"{MULTIPART}; boundary={MARK}"}
        return self.client.ask("POST", path, body, token=token, headers=headers)


def encode_part(name: str, value: str, *, file: bool) -> bytes:
    """Return a part of a form with a file."""
    more = f'; filename="{"flags.json" if value else ""}"\r\nContent-Type: application/json' if file else ""
    text = value if file else value.replace("\n", "\r\n")
    return f'--{MARK}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{text}\r\n'.encode()


SHOWN_ONCE = re.compile('<input value="([^"]+)" readonly')


def read_secret(answer: Answer) -> str:
    """Return what a page shows once. No cache may keep the page, and its address has nothing of it."""
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store"), answer.text
    assert "location" not in answer.headers
    [found] = SHOWN_ONCE.findall(answer.text)
    return html.unescape(found)


def require_kept(pages: PageClient, secret: str, *paths: str) -> None:
    """Check that no page, event or log line has what a page showed once."""
    for path in (*paths, "/ui/history", "/ui/history.json", "/api/admin/events"):
        page = pages.get(path)
        assert page.status == 200 and secret not in page.text, path
    assert secret not in json.dumps(pages.client.log.lines, default=str)


@contextmanager
def page_client(database: str, given: Mapping[str, Any] | None = None) -> Iterator[PageClient]:
    """Give a flag server with its pages on a database in this process."""
    with app_client(database, given=given) as client:
        yield PageClient(client)


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
