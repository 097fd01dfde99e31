"""What has changed between documents: what is remembered, and for how long (dialects: Delta and streaming)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from flagsvc.http import delta
from flagsvc.http.delta import Changes, DeltaChannel, Items, Told, make_id, read_feature, split_content
from flagsvc.http.parts import PartsResponse
from flagsvc.http.streams import StreamLimits, Streams, Subscriber
from support.deltas import Listener


def take(changes: Changes, identity: int, *names: str, project: object = "default") -> None:
    """Take a document with features of these names."""
    features = [{"name": name, "project": project} for name in names]
    changes.take(str(identity), *split_content(json.dumps({"features": features}).encode()))


def types(told: Told | None) -> list[str] | None:
    return None if told is None else [each["type"] for each in json.loads(told.body)["events"]]


def test_ids() -> None:
    """An id has 13 hexadecimal digits of the digest, which JavaScript reads exactly; `eventId` has 31 bits of it, as SDKs do."""
    identity = make_id("f" * 16)
    assert int(identity) == 2**52 - 1
    changes = Changes()
    take(changes, int(identity), "a")
    told = changes.tell()
    assert told is not None and json.loads(told.body)["events"][0]["eventId"] == 2**31 - 1 and told.identity == identity


@pytest.mark.parametrize(("max_known", "max_gone", "remembered"), [(3, 100, [False, True, True]), (9, 1, [False, False, True])])
def test_what_is_remembered(max_known: int, max_gone: int, remembered: list[bool]) -> None:
    """The last documents are remembered, and fewer of them if too much was removed since."""
    changes = Changes(max_known, max_gone)
    names = ["a", "b", "c", "d"]
    for number in range(4):
        take(changes, number, *names[number:])
    assert [types(changes.tell(str(number))) != ["hydration"] for number in range(3)] == remembered
    assert changes.tell("3") is None and types(changes.tell("nonsense")) == types(changes.tell()) == ["hydration"]


def test_any_of_several_ids_counts() -> None:
    """Of the ids in an If-None-Match, the latest that is known counts; `*` is every document."""
    changes = Changes()
    for number in (1, 2, 3):
        take(changes, number, *"abc"[:number])
    for condition, told in (
        (None, ["hydration"]),
        (b'"7"', ["hydration"]),
        (b'"1"', 2),
        (b'"7", "1", W/"2"', 1),
        (b' "3", "1"', 0),
        (b"* ", 0),
    ):
        identity, answer = changes.answer(condition)
        found = types(answer) or []
        assert identity == "3"
        assert found == told or found == ["feature-updated"] * (told if isinstance(told, int) else 9), condition


def test_texts_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All callers with the same document get the same text until the next document, within a bound in bytes for all documents."""
    changes = Changes()
    take(changes, 1, "a")
    take(changes, 2, "a", "b")
    first, all_of_it = changes.tell("1"), changes.tell()
    assert first is changes.tell("1") and all_of_it is changes.tell("x") and first is not None and first.packed is first.packed
    monkeypatch.setattr(delta, "MAX_MADE_BYTES", 1)
    take(changes, 3, "a", "b", "c")
    assert changes.tell("1") is not first and changes.tell("1") is changes.tell("1")
    before = changes.tell("1")
    assert changes.tell("2") is not None and changes.tell("1") is not before
    before, other = changes.tell("1"), Changes()
    take(other, 1, "x")
    assert other.tell() is other.tell() and changes.tell("1") is not before, "all documents share the bound"


def test_the_last_of_the_same_name_counts_and_projects_are_told() -> None:
    """As in SDKs, the last feature of a name counts. A removal tells the last project, or `default` for none."""
    changes = Changes()
    take(changes, 1, "a", "b", "a", project="web")
    take(changes, 2, "a", "b", project=None)
    take(changes, 3, "b", project=5)
    told = changes.tell("1")
    assert told is not None
    removed = [each for each in json.loads(told.body)["events"] if each["type"] == "feature-removed"]
    assert removed == [{"type": "feature-removed", "eventId": 3, "featureName": "a", "project": "default"}]


def test_unchanged_features_are_not_decoded_again() -> None:
    """Only what is new, changed or in another place is decoded."""
    decoded: list[Any] = []

    def read(raw: msgspec.Raw) -> tuple[str, str]:
        decoded.append(read_feature(raw)[0])
        return read_feature(raw)

    items = Items(read)
    for number, (names, expected) in enumerate(
        (("abcde", "abcde"), ("abcde", ""), ("abxcde", "x"), ("abde", "d"), ("ebda", "eba"))
    ):
        decoded.clear()
        items.replace([msgspec.Raw(b'{"name":"%b"}' % name.encode()) for name in names], number)
        assert "".join(decoded) == expected and list(items.found) == list(names)


async def test_a_caller_that_is_ahead_hears_the_way_back() -> None:
    """A request may take a document before the streams hear of it. A caller is then told that document, and has its id. When the
    document that was announced comes back, the caller hears of it at once."""
    channel = DeltaChannel(Streams(StreamLimits()))
    take(channel.changes, 1, "a")
    channel.announce("1")
    caller = Listener(PartsResponse(200, [], [], Subscriber(channel, b"", "", lambda: True)))
    caller.full = True
    take(channel.changes, 2, "a", "b")
    channel.announce("2")
    take(channel.changes, 3, "a", "b", "c")
    caller.full = False
    for _ in range(2):
        caller.parts.beat(0.0)  # type: ignore[attr-defined]
        assert (caller.known, set(caller.twin.features), len(caller.heard)) == ("3", {"a", "b", "c"}, 2)
    take(channel.changes, 2, "a", "b")
    channel.announce("2")
    assert (caller.known, set(caller.twin.features)) == ("2", {"a", "b"})
