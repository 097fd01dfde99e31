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
from support.page_forms import PageClient, read_forms

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


LINK = re.compile(r'(?:href|data-hx-get)="(/ui[^"#]*)')
MARKED = "/ui/"
FILES = re.compile(r"\.(json|jsonl|css|js|svg)(\?|$)|/ui/(files|sign-out|live|alive|export/)")
SEEN_ONCE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]+|\d+")


def crawl(pages: PageClient, *first: str) -> dict[str, str]:
    """Return every page that links lead to: its address and its text. Addresses that differ in numbers only are read once."""
    found: dict[str, str] = {}
    known: set[str] = set()
    waiting = [f"/ui{each}" for each in first]
    while waiting:
        address = waiting.pop()
        shape = SEEN_ONCE.sub("0", address)
        if shape in known or FILES.search(address):
            continue
        known.add(shape)
        answer = pages.get(address)
        if answer.status == 200:
            found[address] = answer.text
            waiting += [html.unescape(each) for each in LINK.findall(answer.text)]
    return found


def test_every_page(pages: PageClient) -> None:
    """Links lead to every page there is; wherever the text stands, it is isolated, and fields for texts have their own direction."""
    prepared(pages.client)
    read = crawl(pages, "/flags")
    wrong = {}
    total = 0
    for address, text in read.items():
        found, seen = not_isolated(text, TEXT)
        total += seen
        wrong |= {each: address for each in found}
    print(len(read), total)
    for a, b in sorted((b, a) for a, b in wrong.items()): print(a, "   ", b)
    assert not wrong
