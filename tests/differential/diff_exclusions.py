"""Deliberate differences from the reference proxy: one row for each, with its reason and questions that bring it about.

A row explains differences of its own questions only, unless it is about one field of every answer. The run fails when a row no
longer occurs, so that none is left over.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diff_compare import ABSENT, Difference
from diff_fixed import BUCKET, question, usage, with_key, with_type
from diff_requests import Question

Json = dict[str, Any]


@dataclass(frozen=True)
class Exclusion:
    """A difference that is meant: what it is called, why it is there, what it explains, and how it is brought about."""

    name: str
    reason: str
    explains: Callable[[Difference], bool]
    document: Json
    questions: tuple[Question, ...]
    everywhere: bool = False
    possible: Callable[[], bool] = lambda: True

    def covers(self, found: Difference) -> bool:
        """Return whether `found` is what this row is about."""
        return (self.everywhere or found.case == self.name) and self.explains(found)


ON: Json = {"enabled": True, "strategies": [], "impressionData": False}
DEFAULT: Json = {"name": "default", "parameters": {}}
PLAIN: Json = {"version": 2, "features": [{"name": "a", **ON}]}
ASKED = Question("GET", "/all?userId=7&region=eu", alone=True, present=frozenset({"userId", "region"}))


def document(*features: Json, **more: Any) -> Json:
    """Return a document of these toggles, each of which is on unless it says otherwise."""
    return {"version": 2, "features": [{**ON, **feature} for feature in features], **more}


def constrained(name: str, **constraint: Any) -> Json:
    """Return a toggle with one constraint."""
    return {"name": name, "strategies": [{**DEFAULT, "constraints": [{"contextName": "userId", **constraint}]}]}


def with_variant(name: str, payload: Any) -> Json:
    """Return a toggle with one variant that has this payload."""
    return {"name": name, "variants": [{"name": "v", "weight": 1, "payload": payload}]}


def variant_state(found: Difference) -> bool:
    """The variant of a feature that is off: the reference has the state under one of its two names, we under both."""
    return found.field == "variant.featureEnabled" and found.reference == ABSENT and found.ours is False


def state_of(toggle: str, *, ours: bool) -> Callable[[Difference], bool]:
    """Return a condition: another state of this toggle, also inside its variant; ours is this one."""
    fields = ("enabled", "variant.feature_enabled", "variant.featureEnabled")
    return lambda found: found.toggle == toggle and found.field in fields and found.ours is ours


def no_impression_data(found: Difference) -> bool:
    """A feature that has no impressionData: the reference leaves the field out or says null, we say false."""
    return found.field == "impressionData" and found.reference in (ABSENT, None) and found.ours is False


def integer_names_first(found: Difference) -> bool:
    """Names that are array indices come first, and in the order of their numbers, in the reference."""
    indices = ["9", "10"]
    return found.field == "order" and found.reference == [*indices, *(name for name in found.ours if name not in indices)]


def left_out(found: Difference) -> bool:
    """A toggle that the reference lists and we do not."""
    return found.field == "toggle" and found.reference is True


def counting(**counts: Any) -> Question:
    """Return a report of these counts of one toggle."""
    return question("POST", "/client/metrics", usage(bucket={**BUCKET, "toggles": {"a": counts}}))


def statuses(reference: int, *ours: int) -> Callable[[Difference], bool]:
    """Return a condition: the reference's status is this one, and ours one of those."""
    return lambda found: found.field == "status" and found.reference == reference and found.ours in ours


def payload(found: Difference) -> bool:
    """Another payload, or another order of what it holds."""
    return found.field == "variant.payload"


def listening_on_ipv6() -> bool:
    """Return whether this machine has IPv6, so that programs take IPv4 connections as mapped ones."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


STATES = ("enabled", "impressionData", "variant.feature_enabled", "variant.featureEnabled")
"""The fields with the state or the impression data of a toggle, as the document has it."""


NAMELESS = document({"name": ""}, {"name": "good"})
ODD = document(
    {"name": "strategies", "strategies": "default"},
    {"name": "state", "enabled": "yes"},
    {"name": "variants", "variants": "x"},
    {"name": "weight", "variants": [{"name": "v", "weight": 333.5}, {"name": "w", "weight": 666.5}]},
    {"name": "dependencies", "dependencies": {}},
    {"name": "impression", "impressionData": "yes"},
    {"name": "rollout", "strategies": [{"name": "flexibleRollout", "parameters": {"rollout": {}}}]},
    {"name": "good"},
)
FATAL = (
    constrained("values", operator="IN"),
    {"name": "parameters", "strategies": [{"name": "flexibleRollout"}]},
    {"name": "null", "strategies": [None]},
)
PAYLOADS = document(with_variant("null", None), with_variant("number", {"type": "number", "value": 7}))
INHERITED = document(constrained("inherited", operator="REGEX", contextName="constructor", value="native"))
ROLLOUT: Json = {"rollout": "50", "groupId": "größe", "stickiness": "userId"}
HALF = document({"name": "half", "strategies": [{"name": "flexibleRollout", "parameters": ROLLOUT}]})
MAPPED = document({"name": "peer", "strategies": [{"name": "remoteAddress", "parameters": {"IPs": "127.0.0.1"}}]})

EXCLUSIONS: tuple[Exclusion, ...] = (
    Exclusion(
        "the variant of a feature that is off has `featureEnabled`, too",
        "the two names go together; the reference has `feature_enabled` alone there",
        variant_state, document({"name": "a", "enabled": False}), (ASKED,), everywhere=True
    ),
    Exclusion(
        "`impressionData` is false where the feature has none",
        "the specification's toggle always has the field; the reference leaves it out or says null",
        no_impression_data, {"version": 2, "features": [{"name": "a", "enabled": True, "strategies": []}]}, (ASKED,),
        everywhere=True
    ),
    Exclusion(
        "integer-like names keep their place",
        "the answer has the order of the document; the reference lists such names first, as JavaScript orders keys",
        integer_names_first, document({"name": "b"}, {"name": "10"}, {"name": "9"}, {"name": "a"}), (ASKED,)
    ),
    Exclusion(
        "a feature without a name is left out",
        "no SDK can ask for it; it is logged by its place, and the other features are used",
        left_out, NAMELESS, (ASKED,)
    ),
    Exclusion(
        "the state and the impression data of a toggle are true or false",
        "the specification's toggle has no other value there; the reference passes on what the document has",
        lambda found: found.field in STATES and found.reference == "yes" and found.ours is True,
        ODD, (ASKED,)
    ),
    *(
        Exclusion(
            f"a malformed feature harms only itself ({feature['name']})",
            "the reference's process ends over it",
            statuses(0, 200), document(feature, {"name": "good"}), (ASKED,)
        )
        for feature in FATAL
    ),
    Exclusion(
        "a payload is an object of type and value, both text",
        "the specification's payload is always that, or not there; the reference passes on what the document has",
        payload, PAYLOADS, (ASKED,)
    ),
    Exclusion(
        "names that every JavaScript object has are plain names",
        "the reference takes its language's own functions for a context field",
        state_of("inherited", ours=False),
        INHERITED, (ASKED,)
    ),
    Exclusion(
        "a property may be named `toString`",
        "the reference's process ends when a constraint looks at the properties as a whole",
        statuses(0, 200), document(constrained("whole", operator="IN", contextName="properties", values=["x"])),
        (question("GET", "?toString=x"),)
    ),
    Exclusion(
        "the peer's IPv4 address is written as one",
        "the reference sees ::ffff:127.0.0.1 on a socket for both families, which is in no IPv4 range",
        state_of("peer", ours=True),
        MAPPED, (Question("GET", "/all", alone=True, present=frozenset({"remoteAddress"})),), possible=listening_on_ipv6
    ),
    Exclusion(
        "half of a surrogate pair is U+FFFD",
        "it is no character, and has no bytes that an answer or a log could hold; the reference hashes its low byte",
        lambda found: found.field == "toggle" and found.toggle == "half", HALF,
        (question("POST", "", {"context": {"userId": "\ud800"}}, present=frozenset({"userId"})),)
    ),
    Exclusion(
        "a query nests one level deep",
        "a property is one text; the reference takes the text [object Object]",
        statuses(200, 400), PLAIN,
        tuple(question("GET", f"?{query}=1") for query in ("a[b]", "properties[a][b]", "a[b][c]", "properties]a["))
    ),
    Exclusion(
        "properties may have numbers for names",
        "they are names like others; the reference takes them for the positions of a list, and refuses that",
        statuses(400, 200), PLAIN, (question("GET", "?properties[1]=2"), question("GET", "?properties[0]=a&properties[1]=b"))
    ),
    Exclusion(
        "a `currentTime` that is an object or a list is 400",
        "it is refused like any other standard field of the wrong shape; the reference drops it",
        statuses(200, 400), PLAIN, (question("POST", "", {"context": {"currentTime": {}}}),)
    ),
    Exclusion(
        "the key is looked at before the body",
        "a caller without a key learns nothing of the schema, and no body is read; the reference says 400 first",
        statuses(400, 401), PLAIN,
        tuple(with_key("wrong", "POST", f"/client/{name}", body={}) for name in ("metrics", "register"))
    ),
    Exclusion(
        "an unknown charset or content coding is 415",
        "the fault is the caller's; the reference says 500",
        statuses(500, 415), PLAIN,
        (
            *(with_type(f"application/json; charset={charset}") for charset in ("latin1", "bogus")),
            with_type("application/json", b"{}", "Content-Encoding: bogus")
        )
    ),
    Exclusion(
        "a body of no bytes has no media type",
        "there is nothing to read, so nothing to refuse; the reference says 415",
        statuses(415, 200), PLAIN, (with_type("text/plain", b""),)
    ),
    Exclusion(
        "a known path with another method is 405",
        "the answer names the methods that there are; the reference says 404",
        statuses(404, 405), PLAIN,
        (question("DELETE", ""), question("POST", "/health", {}), question("GET", "/client/metrics"), question("PUT", "/all"))
    ),
    Exclusion(
        "a body over the limit is 413",
        "the fault is the caller's; the reference says 500",
        statuses(500, 413), PLAIN,
        (
            question("POST", "", {"context": {"userId": "x" * 110_000}}),
            question("POST", "/client/metrics", usage(appName="x" * 1_100_000))
        )
    ),
    Exclusion(
        "usage may be reported in up to 1 MB",
        "a page with many toggles has much to report; the reference takes 100 kB and says 500",
        statuses(500, 200), PLAIN, (question("POST", "/client/metrics", usage(appName="x" * 110_000)),)
    ),
    Exclusion(
        "the request line and the headers have limits of their own",
        "a long query is 414, long headers are 431; the reference says 431 to 16 kB of both together",
        statuses(431, 414, 200), PLAIN,
        (question("GET", f"?userId={'x' * 17_000}"),)
    ),
    Exclusion(
        "absurd counts are taken",
        "each count is taken in constant time; the reference makes a list of that length, and says 500",
        statuses(500, 200), PLAIN,
        (question("POST", "/client/metrics", usage(bucket={**BUCKET, "toggles": {"a": {"yes": 10**15, "no": 0}}})),)
    ),
    Exclusion(
        "reports that a real server takes are taken",
        "SDKs send them, and lose what they counted if they get a 400",
        statuses(400, 200), PLAIN,
        (
            *(question("POST", "/client/metrics", usage(**{name: None})) for name in ("instanceId", "bucket")),
            *(question("POST", "/client/metrics", usage(bucket={**BUCKET, "toggles": {}, name: 5})) for name in ("start", "stop")),
            *(counting(**counts) for counts in ({"variants": None}, {"variants": {"v": 1.5}}, {"yes": 1.5, "no": 0}))
        )
    ),
    Exclusion(
        "a bad entry of a report costs only itself",
        "one flag must not cost the counts of all others; the peer refuses the report",
        statuses(400, 200), PLAIN,
        (counting(yes=-1), counting(no="x"), counting(variants=[]), counting(variants={"v": -1}))
    ),
)  # fmt: skip
