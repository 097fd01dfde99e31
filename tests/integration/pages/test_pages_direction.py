"""Texts of people from right to left: on every page they are isolated, so that none moves a number or a word beside it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from flagsvc.pages.templates import segment
from flagsvc.server.application import PAGE_ROUTES
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from support.desk_scene import DeskScene
from support.evaluating import constraint, feature, strategy
from support.flagservers import AppClient
from support.page_forms import Element, PageClient, PageForm, PageReader, read_forms
from support.processes import Answer

TEXT = "عرض 91 % (בטא 5)"
"""Arabic and Hebrew words, numbers, a percent sign and brackets: all that moves when it is not isolated."""
CONSTRAINT = {"contextName": "plan", "operator": "IN", "values": [TEXT, "gold"]}
LIKE = {"contextName": TEXT, "operator": "STR_CONTAINS", "values": [TEXT]}
STICKY = {"rollout": "25", "stickiness": TEXT, "groupId": TEXT}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": TEXT, "description": TEXT}],
    "features": [{"name": "a", "description": TEXT, "enabled": ["development"]}, {"name": "b"}, {"name": "parent"}],
    "segments": [{"name": TEXT, "description": TEXT, "constraints": [CONSTRAINT, LIKE]}],
    "contextFields": [
        {"name": "plan", "description": TEXT, "legalValues": [{"value": TEXT, "description": TEXT}, {"value": "gold"}]}
    ],
    "tagTypes": [{"name": "team", "description": TEXT, "icon": TEXT}],
    "strategyTypes": [
        {"name": "hours", "description": TEXT, "parameters": [{"name": TEXT, "type": "string", "description": TEXT}]}
    ],
}
F = "/api/admin/projects/default/features/a"
PLACE = f"{F}/environments/development"
FROM, TO = "\u2068", "\u2069"
"""The characters around an isolated text where no markup can stand."""
READ_ATTRIBUTES = ("title", "aria-label", "placeholder", "label")
"""Attributes that people read."""
TEXT_TYPES = ("text", "search", "")


class Isolation:
    """What a page says. `found` are the places where `text` stands without isolation, `seen` counts all places where it stands."""

    def __init__(self, page: str, text: str) -> None:
        self.text = text
        self.found: list[str] = []
        self.seen = 0
        for each in PageReader(page).root.every():
            self._check_attributes(each)
            if is_isolated(each):
                self._check_isolated(each)
            elif not any(map(is_isolated, each.around())):
                for data in each.inside:
                    if isinstance(data, str):
                        self._check(data, f"{each.tag}: {data.strip()!r}")

    def _check_attributes(self, element: Element) -> None:
        """Check the attributes of an element; a field with a text needs a direction of its own."""
        for name in READ_ATTRIBUTES:
            self._check(element.get(name), f"<{element.tag} {name}={element.get(name)!r}>")
        typed = element.tag == "textarea" or (element.tag == "input" and element.get("type") in TEXT_TYPES)
        own = element.get("dir") == "auto" or "readonly" in element.attributes or element.get("inputmode") == "numeric"
        if typed and not own:
            self.found.append(f"<{element.tag} name={element.get('name')!r}> has no direction of its own")

    def _check_isolated(self, element: Element) -> None:
        """Check the text of an isolated element: it is one text of people, and nothing else."""
        whole = "".join(texts_of(element)).strip()
        for part in whole.split("\n") if element.tag == "textarea" else (whole,):
            if part == self.text:
                self.seen += 1
            else:
                self._check(part, f"<{element.tag}> {part!r}")

    def _check(self, text: str, place: str) -> None:
        """Check that each occurrence in a text stands between isolates."""
        self.seen += text.count(self.text)
        if self.text in text.replace(f"{FROM}{self.text}{TO}", ""):
            self.found.append(place)


def is_isolated(element: Element) -> bool:
    return element.tag == "bdi" or element.get("dir") == "auto"


def texts_of(element: Element) -> Iterator[str]:
    """Yield the texts in an element, but for those of isolated elements in it."""
    for each in element.inside:
        if isinstance(each, str):
            yield each
        elif not is_isolated(each):
            yield from texts_of(each)


def prepared(client: AppClient) -> None:
    """Write the text wherever people may write one."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        answer = client.ask(method, path, body)
        assert answer.status < 300, (path, answer.text)
        return answer.json() if answer.body else None

    shared = {"weightType": "variable", "stickiness": TEXT, "payload": {"type": "string", "value": TEXT}}
    variants = [{"name": name, "weight": 500, **shared} for name in ("blue", "red")]
    for name, parameters in (("flexibleRollout", STICKY), ("hours", {TEXT: TEXT})):
        body = {"name": name, "title": TEXT, "parameters": parameters, "constraints": [CONSTRAINT, LIKE], "segments": [1]}
        ask("POST", f"{PLACE}/strategies", body | {"variants": variants if name == "flexibleRollout" else []})
    ask("PUT", f"{F}/variants-batch", {"environments": ["development"], "variants": variants})
    ask("POST", "/api/admin/features/a/tags", {"type": "team", "value": TEXT})
    ask("POST", f"{F}/link", {"url": "https://example.com/1", "title": TEXT})
    ask("POST", f"{F}/dependencies", {"feature": "parent"})
    ask("POST", "/api/admin/projects/shop/features", {"name": "shopped", "description": TEXT})
    ask("POST", "/api/admin/user-admin", {"name": TEXT, "username": "ada", "rootRole": 2})
    token = ask("POST", "/api/admin/user/tokens", {"description": TEXT, "expiresAt": "2999-01-01T00:00:00.000Z"})
    ask("POST", "/api/admin/api-tokens", {"tokenName": TEXT, "type": "client", "environment": "development", "projects": ["shop"]})
    hook = {"provider": "webhook", "enabled": True, "description": TEXT, "events": ["feature-created"]}
    ask("POST", "/api/admin/addons", hook | {"parameters": {"url": "http://127.0.0.1:1/", "bodyTemplate": TEXT}})
    for name, secret in (("one", token["secret"]), ("two", token["secret"])):
        assert client.ask("POST", f"{F}/environments/production/{'on' if name == 'one' else 'off'}", token=secret).status == 200
    with client.server.store.recording() as tx:
        add_counts(tx, [UsageCount("a", TEXT, "development", tx.now, 3, 4, {TEXT: 3})])


LINK = re.compile(r'(?:href|data-hx-get|action)="(/ui[^"#]*)')
NO_PAGES = re.compile(r"\.(json|jsonl|css|js|svg)(\?|$)|/ui/(live|alive)")
NUMBER = re.compile(r"[0-9a-f]{8}-[0-9a-f-]+|\d+|=[^&]*")
TYPED = re.compile(r'<(?:input|textarea)(?=[^>]* dir="auto")[^>]* name="([^"]+)"')
NOT_READ = {
    "/ui",
    "/ui/arrived/:groupId",
    "/ui/flags/:featureName/archived",
    *(f"/ui/sign-in/{each}" for each in ("callback", "header", "kept", "provider")),
}
"""The pages to which no link leads here."""
SHOWS = re.compile("preview|add-|look|ticked|tag|on$|off$")
"""The buttons that only show something."""


def crawl(pages: PageClient) -> dict[str, str]:
    """Return every page that links lead to: its address and its text. Addresses that differ in numbers only are read once."""
    found: dict[str, str] = {}
    known: set[str] = set()
    waiting = ["/ui/flags", "/ui/projects/shop/new-flag", "/ui/tokens/new/shop", "/ui/sign-in"]
    while waiting:
        address = waiting.pop(0)
        shape = NUMBER.sub("", address)
        if shape in known or NO_PAGES.search(address):
            continue
        known.add(shape)
        answer = pages.get(address)
        if answer.status == 200 and answer.headers["content-type"].startswith("text/html"):
            found[address] = answer.text
            waiting += [html.unescape(each) for each in LINK.findall(answer.text)]
    return found


def route_of(path: str, method: str) -> str:
    """Return the path of the route that answers at an address, with its parameters; empty without one."""
    place = path.partition("?")[0]
    fits = (each.path for each in PAGE_ROUTES if each.method == method and re.fullmatch(re.sub(r":\w+", "[^/]+", each.path), place))
    return min(fits, key=lambda each: each.count(":"), default="")


def forms_of(read: dict[str, str]) -> dict[str, tuple[str, PageForm]]:
    """Return a form of each route that takes one, with its page: the page where the text stands most often."""
    found: dict[str, tuple[str, PageForm]] = {}
    for address in sorted(read, key=lambda each: read[each].count(TEXT)):
        for form in read_forms(Answer(200, {}, read[address].encode())):
            if form.method == "post":
                found[route_of(form.action, "POST")] = (address, form)
    return found


def answers_of(pages: PageClient, form: PageForm, typed: set[str]) -> Iterator[Answer]:
    """Press the buttons of a form that only show something; save what another one changed, and then the text in every field."""
    texts = dict.fromkeys(typed & {name for name, _ in form.fields}, TEXT)
    base = {"base": "0" * 64} if "base" in dict(form.fields) else {}
    for name, value in form.buttons:
        if SHOWS.match(value):
            yield pages.post(form.action, [*form.fields, (name, value), ("flag", "a"), ("to", "production")])
    for changes in ([base] if base else []) + [{**texts, **base}, texts]:
        yield pages.post(form.action, [*form.filled(changes), ("do", "save"), ("flag", "a")])


def seen_pages(pages: PageClient) -> Iterator[tuple[str, str]]:
    """Yield every page with its address, and then what every form answers, with the path of its route."""
    read = crawl(pages)
    there = {each.path for each in PAGE_ROUTES if each.method == "GET" and each.render}
    assert there - {route_of(each, "GET") for each in read} == NOT_READ
    yield from read.items()
    yield "why", pages.post("/ui/try", [("environment", "development"), ("name", "plan"), ("value", TEXT), ("why", "0:a")]).text
    for route, (address, form) in forms_of(read).items():
        if not route.endswith(("/sign-out", "/delete")):
            for answer in answers_of(pages, form, set(map(html.unescape, TYPED.findall(read[address])))):
                page = pages.get(answer.headers["location"]) if answer.status == 303 else answer
                yield f"{route} {answer.status}", page.text


def test_every_page_and_form(pages: PageClient) -> None:
    """Wherever the text stands, it is isolated, and fields for texts have their own direction; in errors and conflicts, too."""
    prepared(pages.client)
    wrong: dict[str, str] = {}
    with_it = set()
    for place, page in seen_pages(pages):
        read = Isolation(page, TEXT)
        wrong |= dict.fromkeys(read.found, place)
        with_it |= {place} if read.seen else set()
    assert not wrong, "\n".join(f"{place}: {each}" for each, place in wrong.items())
    assert len(with_it) > 80


async def test_every_page_of_the_proxy() -> None:
    """The same for the pages of a proxy whose document has the text wherever a document may have a text."""
    variants = [{"name": TEXT, "weight": 500, "stickiness": TEXT}, {"name": "b", "weight": 500, "stickiness": TEXT}]
    rules = [
        strategy("flexibleRollout", constraint("IN", TEXT, values=[TEXT]), title=TEXT, parameters=STICKY, segments=[1]),
        {"name": TEXT, "parameters": {TEXT: TEXT}},
    ]
    told = {"type": "release", "description": TEXT, "project": TEXT, "impressionData": 0}
    flags = [
        feature(TEXT, *rules, variants=variants, **told),
        feature("child", *rules, dependencies=[{"feature": TEXT, "variants": [TEXT]}]),
    ]
    segments = [{"id": 1, "name": TEXT, "constraints": [constraint("IN", values=[TEXT])]}]
    scene = DeskScene(document={"version": 2, "features": flags, "segments": segments})
    typed = {f"field.{TEXT}": TEXT, "field.userId": TEXT, "name": TEXT, "value": TEXT}
    addresses = ["/ui/status", "/ui/config", "/ui/changes", "/ui/traffic", "/ui/flags", "/ui/try"]
    shown = {each: await scene.text(each) for each in [*addresses, *(f"/ui/flags/{segment(each)}" for each in (TEXT, "child"))]}
    shown["tried"] = await scene.text("/ui/try", method="POST", form=typed)
    read = {place: Isolation(page, TEXT) for place, page in shown.items()}
    wrong = {f"{place}: {each}" for place, found in read.items() for each in found.found}
    assert not wrong, "\n".join(wrong)
    assert sum(each.seen for each in read.values()) > 20
