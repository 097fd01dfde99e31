"""What an answer means, as a record of few fields that can be read and compared.

| Field | Meaning |
|---|---|
| `status`, `type` | the status, and the media type of the body |
| `body` | a body that none of the further fields tells: a short one itself, else its kind: `text`, `json`, `plain` and others |
| `toggles` | the toggles in their order: `name`, `name=variant`; `-` before one that is off, `!` behind one with impression data |
| `payloads` | flag → payload of its variant, where it is not the one that the upstream gave |
| `features` | the features of a configuration; `~` behind those that differ from the upstream's, and `changed` has them |
| `segments` | the numbers of the segments that they use, with `~` likewise |
| `tokens` | token → its type, projects and environment |
| `etag`, `again` | whether toggles or a page have an entity tag; the status of the same request with it |
| `coding` | the content coding |
| `cors` | the headers that a browser looks at, for requests with an `Origin` |
| `counted`, `registered`, `measured` | what the upstream got of a report: `arrived` has the words |

`arrived` reads it from what a flag server got of a report, from either peer or from ours.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from peer_flags import Json
from peer_rows import Row

from support.fake_upstream import METRICS, REGISTER, FakeUpstream, Recorded
from support.processes import Answer

Record: TypeAlias = dict[str, Any]
BRIEF = 24
"""Bytes of a body that is shown as it is."""
UNTOLD = ("description", "weightType", "createdAt", "sortOrder", "id")
"""Members of a configuration that decide nothing."""
NEEDED_METRICS = ("last_metrics_fetch_epoch_timestamp_ms", "last_metrics_update_epoch_timestamp_ms", "unleash_proxy_up")
"""What the reference tells about itself in its metrics."""
CORS = "access-control-"


def meaning(answer: Answer, document: Json, *, is_foreign: bool) -> Record:
    """Return what an answer says. `document` is what the upstream gave, `is_foreign` whether a page of another origin asked."""
    coding = answer.headers.get("content-encoding", "")
    body = gzip.decompress(answer.body) if coding == "gzip" else answer.body
    media = "" if answer.status == 304 else answer.headers.get("content-type", "").partition(";")[0].strip()
    found: Record = {"status": answer.status, "type": media, **content(body, media, document), "coding": coding}
    if is_foreign:
        found["cors"] = dict(cors(answer.headers))
    return {field: value for field, value in found.items() if value != ""}


def content(body: bytes, media: str, document: Json) -> Record:
    """Return the fields of a body."""
    if not body:
        return {}
    try:
        value = json.loads(body)
    except ValueError:
        return {"body": kind_of_text(body, media)}
    for member, read in READERS.items():
        if isinstance(value, dict) and member in value:
            return read(value, document)
    return {"body": json.dumps(value) if len(body) <= BRIEF else "json"}


def kind_of_text(body: bytes, media: str) -> str:
    """Return a short text, or the kind of a long one."""
    text = body.decode("utf-8", "replace")
    if "# TYPE " in text:
        return " ".join(["metrics", *(name for name in NEEDED_METRICS if f"\n{name} " in text)])
    return text if len(text) <= BRIEF else media.rpartition("/")[2] or "text"


def cors(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what a browser looks at: lists in order, and names in lower case."""
    for name, value in sorted(headers.items()):
        if name.startswith(CORS):
            items = sorted(item.strip() for item in value.split(","))
            yield name.removeprefix(CORS), ", ".join(items if "methods" in name else map(str.lower, items))


# ---- evaluations


def toggles(given: list[Json], document: Json) -> Record:
    """Return the fields of toggles."""
    payloads = {(name, each["name"]): each.get("payload") for name, each in all_variants(document)}
    odd = {
        each["name"]: each["variant"].get("payload")
        for each in given
        if each["variant"].get("payload") != payloads.get((each["name"], each["variant"]["name"]))
    }
    return {"toggles": " ".join(map(word_of, given)), **({"payloads": odd} if odd else {})}


def word_of(toggle: Json) -> str:
    """Return a toggle as a word."""
    variant = f"={toggle['variant']['name']}" if toggle["variant"]["enabled"] else ""
    return f"{'' if toggle['enabled'] else '-'}{toggle['name']}{variant}{'!' if toggle.get('impressionData') else ''}"


def all_variants(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield every variant of a configuration with the name of its flag."""
    for feature in document["features"]:
        for owner in (feature, *feature["strategies"]):
            yield from ((feature["name"], each) for each in owner.get("variants", ()))


# ---- configurations


def configuration(value: Json, document: Json) -> Record:
    """Return the fields of a configuration."""
    found = features(value["features"], document)
    return found | ({"segments": " ".join(segments(value, document))} if "segments" in value else {})


def segments(value: Json, document: Json) -> Iterator[str]:
    """Yield the numbers of the segments that features of a configuration use."""
    known = {each["id"]: pruned(each["constraints"]) for each in document["segments"]}
    used = {number for each in value["features"] for rule in each["strategies"] for number in rule.get("segments") or ()}
    for each in value["segments"]:
        if each["id"] in used:
            yield f"{each['id']}{'' if pruned(each['constraints']) == known.get(each['id']) else '~'}"


def features(given: list[Json], document: Json) -> Record:
    """Return the fields of features."""
    known = {each["name"]: pruned(each) for each in document["features"]}
    read = {each["name"]: pruned(each) for each in given}
    changed = {name: each for name, each in read.items() if each != known.get(name)}
    found: Record = {"features": " ".join(f"{name}~" if name in changed else name for name in read)}
    return found | ({"changed": changed} if changed else {})


def pruned(value: Any) -> Any:
    """Return a part of a configuration without what decides nothing, and without what says the same as its absence."""
    if isinstance(value, list):
        return [pruned(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: pruned(item) for name, item in value.items() if name not in UNTOLD}
    return {name: item for name, item in kept.items() if item not in (None, False, [], {}, "")}


# ---- others


def tokens(value: Json, _: Json) -> Record:
    """Return the field of tokens."""
    return {
        "tokens": {
            each["token"]: f"{each['type']} of {' '.join(each['projects'])} in {each['environment']}" for each in value["tokens"]
        }
    }


def refusal(value: Json, _: Json) -> Record:
    """Return the field of an error in the form of the reference: which places of the request are wrong."""
    places = [each.get("instancePath", "") for each in value["validation"]] if isinstance(value["validation"], list) else []
    return {"body": " ".join(["json", *sorted(set(places))])}


READERS: dict[str, Callable[[Json, Json], Record]] = {
    "toggles": lambda value, document: toggles(value["toggles"], document),
    "variant": lambda value, document: toggles([value], document),
    "features": configuration,
    "strategies": lambda value, document: features([value], document),
    "tokens": tokens,
    "validation": refusal,
    "openapi": lambda value, document: {"body": "openapi"},
}
"""Member of an object → what reads the object."""


BULK = f"{METRICS}/bulk"


def arrived(upstream: FakeUpstream, row: Row) -> Record:
    """Return what the upstream got of a report so far."""
    looks: tuple[tuple[str, str, Callable[[FakeUpstream, str], Any]], ...] = (
        ("counted", row.counts, counted),
        ("registered", row.registers, registered),
        ("measured", row.measures, measured),
    )
    found = {field: look(upstream, name) for field, name, look in looks if name}
    return {field: value for field, value in found.items() if value}


def counted(upstream: FakeUpstream, flag: str) -> dict[str, str]:
    """Return the counts of a flag, by the application and the environment for which they were sent."""
    sums: dict[str, list[dict[str, Any]]] = {}
    for app, name, counts in all_counts(upstream):
        if name == flag:
            sums.setdefault(app, []).append(counts)
    return {app: total(each) for app, each in sums.items()}


def all_counts(upstream: FakeUpstream) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield application and environment, flag, and counts of all that was sent."""
    for sent in upstream.received(METRICS):
        report = sent.json()
        for name, counts in report["bucket"]["toggles"].items():
            yield of(report["appName"], sent), name, counts
    for sent in upstream.received(BULK):
        for each in sent.json()["metrics"]:
            yield of(each["appName"], sent, each["environment"]), each["featureName"], each


def of(app: str, sent: Recorded, environment: str = "") -> str:
    """Return an application with the environment for which something was sent: by default that of the token."""
    token = sent.headers.get("authorization", "")
    return f"{app} in {environment or token.partition(':')[2].partition('.')[0]}"


def total(counts: Iterable[dict[str, Any]]) -> str:
    """Return a sum as text: on, off, and variants."""
    yes = no = 0
    variants: dict[str, int] = {}
    for each in counts:
        yes, no = yes + each["yes"], no + each["no"]
        for name, number in (each.get("variants") or {}).items():
            variants[name] = variants.get(name, 0) + number
    return " ".join([f"{yes} yes {no} no", *(f"{name}={number}" for name, number in sorted(variants.items()))])


def registered(upstream: FakeUpstream, app: str) -> list[str]:
    """Return how an application was registered: by which SDK, in which environment."""
    alone = [(sent.json(), sent, "") for sent in upstream.received(REGISTER)]
    together = [(each, sent, each["environment"]) for sent in upstream.received(BULK) for each in sent.json()["applications"]]
    return sorted({
        of(each.get("sdkVersion") or "an SDK", sent, environment)
        for each, sent, environment in alone + together
        if each["appName"] == app
    })  # fmt: skip


def measured(upstream: FakeUpstream, metric: str) -> list[str]:
    """Return the samples of an impact metric: value and labels."""
    sent = [*upstream.received(METRICS), *upstream.received(BULK)]
    metrics = [each for one in sent for each in one.json().get("impactMetrics") or () if each["name"] == metric]
    samples = [sample for each in metrics for sample in each["samples"]]
    return sorted({f"{each['value']:g} {json.dumps(each['labels'], sort_keys=True)}" for each in samples})
