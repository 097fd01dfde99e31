"""Pages of the flag server as a browser without script uses them: read a form, type into it, press a button, follow."""

from __future__ import annotations

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
from support.flagservers import USER_SECRET, AppClient, app_client
from support.processes import Answer

FORM = "application/x-www-form-urlencoded"
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
    first_button: tuple[str, str] | None = None

    def value(self, name: str) -> str:
        """Return the first value of a field. Raises KeyError without one."""
        return dict(reversed(self.fields))[name]

    def filled(self, changes: Mapping[str, str | Sequence[str] | None]) -> list[tuple[str, str]]:
        """Return the fields after typing: a text, several, or None to leave a field out (an empty box)."""
        kept = [pair for pair in self.fields if pair[0] not in changes]
        for name, given in changes.items():
            kept += [(name, each) for each in ([] if given is None else [given] if isinstance(given, str) else given)]
        return kept


class FormReader(HTMLParser):
    """Reads the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self.inside = False
        self.disabled = 0
        self.select: tuple[str, list[tuple[str, bool]]] | None = None
        self.area: tuple[str, str] | None = None
        self.stack: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a field, a button or a form."""
        given = dict(attrs)
        name, off = given.get("name") or "", "disabled" in given or self.disabled > 0
        if tag == "form":
            form = PageForm(given.get("method") or "get", given.get("action") or "")
            form.multipart = given.get("enctype") == MULTIPART
            self.forms.append(form)
            self.inside = True
        elif tag == "fieldset":
            self.stack.append("disabled" in given)
            self.disabled += self.stack[-1]
        elif not self.inside or off:
            return
        elif tag == "input" and name and (given.get("type") not in ("checkbox", "radio") or "checked" in given):
            text = given.get("value", "on" if "checked" in given else "") or ""
            of_line = given.get("type") not in ("hidden", "checkbox", "radio")
            self.forms[-1].fields.append((name, as_line(text) if of_line else text))
        elif tag == "button":
            button = (name, given.get("value") or "")
            self.forms[-1].first_button = self.forms[-1].first_button or button
            self.forms[-1].buttons.append(button)
        elif tag == "select":
            self.select = (name, [])
        elif tag == "option" and self.select is not None:
            value = given.get("value")
            self.select[1].append(("\0" if value is None else value, "selected" in given))
        elif tag == "textarea":
            self.area = (name, "")

    def handle_data(self, data: str) -> None:
        """Take the text of a text area, or of an option without a value."""
        if self.area is not None:
            self.area = (self.area[0], self.area[1] + data)
        elif self.select is not None and self.select[1] and self.select[1][-1][0] == "\0":
            self.select[1][-1] = (data, self.select[1][-1][1])

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        elif tag == "fieldset":
            self.disabled -= self.stack.pop()
        elif tag == "select" and self.select is not None:
            name, options = self.select
            chosen = next((value for value, picked in options if picked), options[0][0] if options else None)
            if chosen is not None:
                self.forms[-1].fields.append((name, chosen))
            self.select = None
        elif tag == "textarea" and self.area is not None:
            self.forms[-1].fields.append((self.area[0], as_area(self.area[1]).removeprefix("\n")))
            self.area = None


class MarkReader(HTMLParser):
    """Reads what a page says of its fields: the wrong fields in order, and the sentences that describe them."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[dict[str, str]] = []
        self.focused: list[str] = []
        self.links: set[str] = set()
        self.texts: dict[str, str] = {}
        self.open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a wrong field, the field with the focus, a link within the page, or the start of a sentence."""
        given = {name: value or "" for name, value in attrs}
        identity = given.get("id", "")
        if given.get("aria-invalid") == "true":
            self.wrong.append(given)
        if "autofocus" in given:
            self.focused.append(identity)
        if given.get("href", "").startswith("#"):
            self.links.add(given["href"][1:])
        if identity:
            assert identity not in self.texts, f"two elements have the id {identity}"
            self.open, self.texts[identity] = identity, ""

    def handle_data(self, data: str) -> None:
        """Take the text behind the last id."""
        if self.open:
            self.texts[self.open] += data

    def handle_endtag(self, tag: str) -> None:
        self.open = "" if tag in ("span", "p") else self.open


def read_wrong(answer: Answer, *, summary: bool = True) -> dict[str, str]:
    """Return the wrong fields of a page with what is wrong, in the order of the page.

    Each is tied to its sentence, the summary, if there is one, leads to it, and the first one has the focus.
    """
    reader = MarkReader()
    reader.feed(answer.body.decode())
    found = {}
    for each in reader.wrong:
        identity = each["id"]
        assert each["aria-describedby"].split()[0] == f"{identity}-error"
        assert not summary or identity in reader.links
        found[identity] = reader.texts[f"{identity}-error"].strip()
    assert not found or reader.focused == list(found)[:1]
    return found


def read_forms(answer: Answer) -> list[PageForm]:
    reader = FormReader()
    reader.feed(answer.body.decode())
    return reader.forms


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
