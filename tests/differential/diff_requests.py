"""Random questions to a proxy: contexts, and the many ways in which a caller may write them down."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, quote_plus

import diff_words as words

from support import processes

Json = dict[str, Any]
ALWAYS_PRESENT = {"appName", "environment"}  # the proxy fills these in where the caller does not


@dataclass(frozen=True)
class Question:
    """One request. `present`: the context fields that certainly have a value; `alone`: not sent behind others."""

    method: str
    target: str
    body: bytes | None = None
    content_type: str | None = "application/json"
    named: bool = False
    present: frozenset[str] = frozenset()
    alone: bool = False
    context: Json = field(default_factory=dict)
    names: tuple[str, ...] = ()
    base: str = "/proxy"
    key: str = processes.KEY
    headers: tuple[str, ...] = ()

    @property
    def evaluates(self) -> bool:
        """Whether the answer is a list of toggles."""
        return self.method in ("GET", "POST") and self.target.partition("?")[0].rstrip("/") in ("", "/all")

    def content(self) -> bytes:
        """Return the request as it is sent."""
        lines = [f"{self.method} {self.base}{self.target} HTTP/1.1", "Host: proxy", *self.headers]
        lines += [f"Authorization: {self.key}"] * bool(self.key)
        if self.body is not None:
            lines += [f"Content-Type: {self.content_type}"] * (self.content_type is not None)
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (self.body or b"")

    def __str__(self) -> str:
        """Return the request in one line, as a person would type it."""
        return f"{self.method} {self.base}{self.target}" + (f" {self.body.decode(errors='replace')}" if self.body else "")


def questions(seed: str, number: int, names: list[str], count: int, *, trusting: bool = False) -> list[Question]:
    """Return `count` questions about the toggles `names` of a document; the same ones for the same seed and number.

    `trusting` says that the proxies believe who a question was forwarded for.
    """
    maker = Asker(random.Random(f"questions {seed} {number}"), names)
    return [forwarded(maker.question(), maker.forwarder(), trusting) for _ in range(count)]


def forwarded(question: Question, addresses: str, trusting: bool) -> Question:
    """Return the question as a load balancer hands it on for these addresses; as it is when there are none."""
    if not addresses:
        return question
    known = question.present | ({"remoteAddress"} if trusting else set())
    return replace(question, headers=(f"X-Forwarded-For: {addresses}",), present=known)


class Asker:
    """Makes questions with one random source."""

    def __init__(self, rng: random.Random, names: list[str]) -> None:
        self.rng = rng
        self.names = names

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < share

    def forwarder(self) -> str:
        """Return the addresses that a load balancer would name, as a rule none."""
        return self.rng.choice(FORWARDED) if self.chance(0.3) else ""

    def question(self) -> Question:
        """Return a question of any form."""
        kind = self.rng.choices(["get", "post", "named", "odd get", "odd post"], [40, 25, 25, 6, 4])[0]
        path = self.rng.choice(["", "", "/all"])
        if kind == "odd get":
            return Question("GET", f"{path}?{self.odd_query()}", alone=True)
        if kind == "odd post":
            return Question("POST", path, self.odd_body(), alone=True)
        context = self.context()
        if kind == "get":
            query = self.query(context)
            return Question("GET", path + (f"?{query}" if query else ""), present=present(context), context=context)
        return self.post(path, context, named=kind == "named")

    def post(self, path: str, context: Json, *, named: bool) -> Question:
        """Return a POST of a context, for named toggles or for a list."""
        typed = self.typed(context)
        names = tuple(self.rng.choices([*self.names, "unknown.toggle", "", "Ω"], k=self.rng.randint(1, 6))) if named else ()
        body: Json = {"context": typed} if typed or self.chance(0.5) else {}
        if named:
            body["toggles"] = list(names)
        elif self.chance(0.2):
            body["toggles"] = []
        content = json.dumps(body, ensure_ascii=self.chance(0.5)).encode()
        return Question("POST", path, content, named=named, present=present(context), context=context, names=names)

    def context(self) -> Json:
        """Return a context as texts: each standard field may be absent or empty, properties are a few of those there are."""
        shares = {"userId": 0.8, "sessionId": 0.6, "appName": 0.4, "environment": 0.3, "remoteAddress": 0.8, "currentTime": 0.4}
        content: Json = {}
        for name, share in shares.items():
            if self.chance(share):
                content[name] = self.value(name)
        chosen = self.rng.sample(list(words.PROPERTIES), self.rng.choice([0, 1, 4, 7, 9, 11]))
        if chosen or self.chance(0.2):
            content["properties"] = {name: self.value(name) for name in chosen}
        return content

    def value(self, name: str) -> str:
        """Return a value of a field: a known one, a plain number, or nothing but blanks."""
        if name in ("userId", "sessionId") and self.chance(0.4):
            return str(self.rng.randint(1, 10**6))
        if self.chance(0.05):
            return self.rng.choice(["", *words.BLANKS]) if name != "currentTime" else ""
        return self.rng.choice(words.FIELDS[name])

    def query(self, context: Json) -> str:
        """Return the context as query parameters: properties bare or in brackets, in any order, escaped in two ways."""
        pairs = [(name, value) for name, value in context.items() if name != "properties"]
        for name, value in context.get("properties", {}).items():
            pairs.append((f"properties[{name}]" if self.chance(0.6) else name, value))
            if self.chance(0.05):
                pairs.append((pairs[-1][0], self.rng.choice(["again", "", value])))
        self.rng.shuffle(pairs)
        escape = quote_plus if self.chance(0.3) else quote
        brackets = "" if self.chance(0.3) else "[]"
        return "&".join(f"{escape(name, safe=brackets)}={escape(value, safe='')}" for name, value in pairs)

    def typed(self, context: Json) -> Json:
        """Return the context for a POST: some values as numbers, booleans or null instead of texts."""
        content = {name: value for name, value in context.items() if name != "properties"}
        for name in ("userId", "sessionId", "appName", "environment"):
            if name in content and self.chance(0.15):
                content[name] = context[name] = self.scalar()
            elif name not in content and self.chance(0.05):
                content[name] = None
        if content.get("currentTime") and self.chance(0.3):
            content["currentTime"] = self.rng.choice([0, 1642856400000, 1642856399999.5, -1, 10**15, 8.64e15, 8.7e15])
        if "properties" in context:
            changed = {name: self.scalar() if self.chance(0.2) else value for name, value in context["properties"].items()}
            content["properties"] = context["properties"] = changed
        for name in ("extra", "region"):
            if self.chance(0.05):
                content[name] = self.scalar()
        return content

    def scalar(self) -> Any:
        """Return a number, a boolean or null."""
        return self.rng.choice([7, 0, -1, 1.0, 1.5, 1e21, 123456789012345680000, 1e-7, -0.0, 5e-324, 0.1, 2**53, True, False, None])

    def odd_query(self) -> str:
        """Return a query that few callers would write, but some do."""
        return self.rng.choice(ODD_QUERIES)

    def odd_body(self) -> bytes:
        """Return a body that is not what the endpoint wants."""
        return self.rng.choice(ODD_BODIES)


def present(context: Json) -> frozenset[str]:
    """Return the fields of a context that certainly have a value."""
    fields = {**context.get("properties", {}), **{name: value for name, value in context.items() if name != "properties"}}
    return frozenset({name for name, value in fields.items() if value not in ("", None)} | ALWAYS_PRESENT)


FORWARDED = ["10.1.2.3", "192.168.1.7", "10.1.2.3, 192.168.1.7", "2001:db8::1", "10.1.2.3,127.0.0.1", "192.168.1.7 , 10.1.2.3"]
ODD_QUERIES = [
    *("userId=1&userId=2", "properties=foo", "properties[]=x", "properties[a][]=1&properties[a][]=2"),
    *("a[]=1&a[]=2", "a[0]=1&a[1]=2"),
    *("a=1&a=2&a=3", "properties[region]=eu&properties[region]=us", "region=eu&properties[region]=us", "region=eu&region=us"),
    *("userId=%zz", "userId=%E4", "region=%", "region=%u0041", "region=%C3%28&userId=7", "userId", "userId&region", "=x", "&&&"),
    *("userId=7&&region=eu&", "userId=7;region=eu", "a=b=c", "?userId=7", "userId=7#x", "userId=a%00b"),
    *("region=a+b%20c", "%75serId=7"),
    *("properties%5Bregion%5D=eu", "properties[region=eu", "properties[]", "properties[", "[region]=eu"),
    *("properties[region]", "properties[userId]=9", "properties[properties]=x"),
    *("currentTime=1642856400000", "currentTime=nonsense"),
    *("currentTime=2022&currentTime=2023", "appName=", "environment=", "environment=%20", "sessionId="),
    *("remoteAddress=", "userId=+"),
    *("hasOwnProperty=x", "properties[constructor]=x", "__proto__=x", "properties[__proto__]=x", "length=3", "a.b=c"),
    *("1=2", "userId[]=7", "userId[a]=7", "userId[0]=7", "x=" + "y" * 3000),
    "&".join(f"p{number}={number}" for number in range(150)),
]
ODD_BODIES = [
    *(b"", b"{}", b"[]", b"null", b"7", b'"x"', b"{", b"{'a': 1}", b'{"context": null}', b'{"context": []}', b'{"context": "x"}'),
    *(b'{"context": 7}', b'{"context": {"userId": {}}}', b'{"context": {"userId": []}}', b'{"context": {"userId": ["7"]}}'),
    *(b'{"context": {"properties": null}}', b'{"context": {"properties": []}}', b'{"context": {"properties": "x"}}'),
    *(
        b'{"context": {"properties": {"a": {}}}}',
        b'{"context": {"properties": {"a": ["x", "y"]}}}',
        b'{"context": {"a": {"b": 1}}}',
    ),
    *(b'{"toggles": null}', b'{"toggles": "beta"}', b'{"toggles": {}}', b'{"toggles": [1]}'),
    *(b'{"toggles": [null]}', b'{"toggles": 7}'),
    *(b'{"toggles": [["a"]]}', b'{"toggles": ["a"], "context": {}, "more": 1}', b'{"context": {"userId": "a", "userId": "b"}}'),
    *(b'{"userId": "7", "appName": "unwrapped"}', b'{"context": {"currentTime": true}}'),
    *(b'\xef\xbb\xbf{"context": {"userId": "7"}}', b'{"context": {"userId": "a\\u0000b"}}'),
    *(b'{"context": {"userId": "7"}} x', b'{"context": {"userId": NaN}}', b'{"context": {"userId": 1e400}}', b"  {}  ", b"{}\n"),
    *(b'{"context": {"a": 1, "properties": {"a": 2}}}', b'{"context": {"userId": "\xff"}}'),
    *(b'{"context": {"a": [1, 2]}}', b'{"context": {"remoteAddress": 7}}', b'{"context": {"environment": false, "appName": true}}'),
]
