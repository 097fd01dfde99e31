"""Texts of people from right to left: on every page they are isolated, so that none moves a number or a word beside it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.server.application import PAGE_ROUTES
from flagsvc.server.store.resources.usage import UsageCount, add_counts
from support.flagservers import AppClient
from support.isolation import not_isolated
from support.page_forms import PageClient, PageForm, read_forms
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
    "strategyTypes": [{"name": "hours", "description": TEXT, "parameters": [{"name": TEXT, "type": "string", "description": TEXT}]}],
}
F = "/api/admin/projects/default/features/a"
PLACE = f"{F}/environments/development"


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
TYPED = re.compile(r'<(?:input|textarea) name="([^"]+)"[^>]* dir="auto"')
NOT_READ = ("/ui", "/ui/sign-in/", "/ui/arrived/", "/ui/flags/:featureName/archived")
"""Beginnings of the paths of pages to which no link leads here."""


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
    fits = (
        each.path
        for each in PAGE_ROUTES
        if each.method == method and re.fullmatch(re.sub(r":\w+", "[^/]+", each.path), place)
    )
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
    texts = {name: TEXT for name in typed}
    base = {"base": "0" * 64} if "base" in dict(form.fields) else {}
    shows = [each for each in form.buttons if re.match("preview|add-|look|ticked|tag|on$|off$", each[1])]
    for name, value in shows:
        yield pages.post(form.action, [*form.fields, (name, value), ("flag", "a"), ("to", "production")])
    for changes in ([base] if base else []) + [{**texts, **base}, texts]:
        yield pages.post(form.action, [*form.filled(changes), ("do", "save"), ("flag", "a")])


def followed(pages: PageClient, answer: Answer) -> Answer:
    """Return the page to which an answer leads."""
    return pages.get(answer.headers["location"]) if answer.status == 303 else answer


def test_every_page(pages: PageClient) -> None:
    """Links lead to every page there is; wherever the text stands, it is isolated, and fields for texts have their own direction."""
    prepared(pages.client)
    read = crawl(pages)
    visited = {route_of(each, "GET") for each in read}
    there = {each.path for each in PAGE_ROUTES if each.method == "GET" and each.render}
    missing = {each for each in there - visited if not each.startswith(NOT_READ[1:]) and each != NOT_READ[0]}
    print("MISSING", missing)
    wrong = {place: address for address, page in read.items() for place in not_isolated(page, TEXT)[0]}
    for a, b in sorted((b, a) for a, b in wrong.items()): print(a, "   ", b)
    n = sum(not_isolated(page, TEXT)[1] for page in read.values())
    print(len(read), n)
    wrong = {}
    import collections
    stats = collections.Counter()
    for route, (address, form) in forms_of(read).items():
        typed = set(map(html.unescape, TYPED.findall(read[address]))) & set(dict(form.fields))
        if route.endswith(("/sign-out", "/delete")): continue
        for answer in answers_of(pages, form, typed):
            stats[answer.status] += 1
            if answer.status == 500: print(route, answer.text)
            found, seen = not_isolated(followed(pages, answer).text, TEXT)
            stats["seen"] += seen
            wrong |= {place: f"{route} {answer.status}" for place in found}
    print(stats)
    for a, b in sorted((b, a) for a, b in wrong.items()): print(a, "   ", b)
