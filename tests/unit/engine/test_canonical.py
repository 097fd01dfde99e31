"""The canonical bytes of a request: only what the configuration reads, and none if a random draw decides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.canonical import ALL, ENABLED, NAMED, CacheKeys
from flagsvc.engine.context import Context
from flagsvc.engine.reads import Reads

FORMS = (ENABLED, ALL, NAMED)


def cache_keys(**noted: Any) -> CacheKeys:
    """Return the canon of a configuration of which this is noted."""
    reads = Reads()
    for name, value in noted.items():
        setattr(reads, name, value)
    return CacheKeys(reads, "revision")


def key(made: CacheKeys, form: str = ENABLED, names: list[str] | None = None, **context: Any) -> bytes | None:
    """Return the bytes of a request."""
    return made.key(Context(**context), form, names or [])


def differ(*keys: bytes | None) -> bool:
    """Return whether there are bytes everywhere, all different."""
    return None not in keys and len(set(keys)) == len(keys)


def test_what_nobody_reads_is_left_out() -> None:
    """A configuration that reads nothing has one answer for everyone."""
    made = cache_keys()
    assert key(made, user_id="1", properties={"a": "b"}, now=1.0, entropy=2) == key(made)
    assert (made.timed, made.volatile, made.revision) == (False, False, "revision")


def test_the_forms_differ() -> None:
    """enabled, all, and look-ups by the names asked for, in their order."""
    made = cache_keys()
    plain = [key(made, ENABLED), key(made, ALL)]
    asked = [["a"], ["b"], ["a", "b"], ["b", "a"], ["a", "a"], ["a\0b"], ["a\0", "b"], ["2", "a", "b"], [""], ["", ""]]
    assert differ(*plain, *[key(made, NAMED, names) for names in asked])


@pytest.mark.parametrize("noted", ["random", "impure"])
def test_chance_has_no_bytes(noted: str) -> None:
    """A random share and an impure custom strategy make every answer volatile."""
    made = cache_keys(**{noted: True})
    assert made.volatile
    assert [key(made, form, user_id="1", session_id="2") for form in FORMS] == [None] * 3


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [("userId", "user_id"), ("appName", "app_name"), ("environment", "environment"), ("remoteAddress", "remote_address")],
)
def test_a_standard_field(wire: str, attribute: str) -> None:
    """Absent, its own, or a property of its name: three different things; its own hides the property."""
    made = cache_keys(fields={wire})
    given: list[dict[str, Any]] = [{attribute: value} for value in ("1", "2", "")]
    one, two, none = given
    own = key(made, **one)
    assert differ(key(made), own, key(made, **two), key(made, **none), key(made, properties={wire: "1"}))
    assert key(made, **one, properties={wire: "2"}) == own


def test_a_property() -> None:
    """Absent and empty are not the same. A lone surrogate, which only an enricher can make, does not raise."""
    made = cache_keys(fields={"region"})
    assert differ(key(made), key(made, properties={"region": ""}), key(made, properties={"region": "eu"}))
    assert key(made, properties={"region": "eu", "plan": "x"}) == key(made, properties={"region": "eu"}, user_id="1")
    made = cache_keys(fields={"region"})
    assert differ(*[key(made, properties={"region": text}) for text in ("\ud800", "\ud801", "?")])


def test_fields_are_not_confused() -> None:
    """No value counts for another field, however many there are: their states have more digits than Python's decimal limit."""
    made = cache_keys(fields={f"f{at}" for at in range(8000)})
    assert differ(key(made), *[key(made, properties={f"f{at}": "1"}) for at in (*range(80), 7999)])


def test_the_field_properties_is_the_same_for_everyone() -> None:
    """Its text is `[object Object]` for everyone."""
    made = cache_keys(fields={"properties"}, needed={"properties"})
    assert key(made) == key(made, properties={"properties": "x"})
    assert key(made) is not None


def test_the_current_time_as_a_field() -> None:
    """The time counts to the fraction of a millisecond, if something reads it as a field."""
    made = cache_keys(fields={"currentTime"})
    given = [{"current_time": 5.0}, {"current_time": 5.5}, {"properties": {"currentTime": "5.0"}}, {}]
    assert differ(*[key(made, **each) for each in given])  # type: ignore[arg-type]
    assert key(made, now=1.0) == key(made, now=2.0)
    assert not made.timed


def test_a_session_that_is_drawn() -> None:
    """A list gives a caller without a session a random one, so it is volatile if the session counts. A look-up gets no session."""
    made = cache_keys(fields={"sessionId"})
    assert key(made, ENABLED) is key(made, ALL) is None
    assert key(made, ENABLED, properties={"sessionId": "1"}) is None
    assert differ(key(made, NAMED, ["a"]), key(made, NAMED, ["a"], session_id="1"))
    assert differ(key(made, ENABLED, session_id=""), key(made, ENABLED, session_id="1"))
    assert key(cache_keys(fields={"userId"}), ENABLED) is not None


@pytest.mark.parametrize("noted", ["rollouts", "draws"])
def test_default_stickiness_takes_the_user_first(noted: str) -> None:
    """With a user, no session counts, not even a random one. Without a user the session does."""
    made = cache_keys(**{noted: True})
    user = key(made, user_id="1")
    assert user is not None
    assert user == key(made, user_id="1", session_id="2", remote_address="::1")
    assert key(made, user_id="") is key(made) is key(made, remote_address="::1") is None
    assert differ(user, key(made, user_id="2"), key(made, session_id="1"), key(made, session_id="2"))
    assert key(made, user_id="", session_id="1") == key(made, session_id="1", remote_address="::1")


def test_without_user_and_session() -> None:
    """In a look-up, variants stick to the address, and rollouts are drawn."""
    asked: dict[str, Any] = {"form": NAMED, "names": ["a"]}
    draws, rollouts, both = cache_keys(draws=True), cache_keys(rollouts=True), cache_keys(draws=True, rollouts=True)
    assert differ(*[key(draws, **asked, remote_address=each) for each in ("::1", "::2")])
    assert differ(key(draws, **asked, remote_address="x"), key(draws, **asked, session_id="x"))
    assert [key(made, **asked, remote_address="::1") for made in (rollouts, both)] == [None, None]
    assert key(draws, **asked) is key(draws, **asked, remote_address="") is None
    assert key(draws, ENABLED, session_id="", remote_address="::1") is not None


def test_a_draw_that_sticks_to_a_field() -> None:
    """If the field is absent or empty, the draw is random."""
    made = cache_keys(fields={"region", "userId"}, needed={"region"})
    assert key(made) is key(made, properties={"region": ""}) is None
    assert differ(key(made, properties={"region": "eu"}), key(made, properties={"region": "us"}))


def test_the_time_between_moments() -> None:
    """Before, at and after each moment differ; other times between moments do not. The caller's own time counts first."""
    made = cache_keys(moments={10.0, 20.0})
    times = (9.0, 10.0, 11.0, 20.0, 21.0)
    assert made.timed
    assert differ(*[key(made, now=time) for time in times], key(made, current_time=float("nan")))
    assert [key(made, now=time) for time in times] == [key(made, now=99.0, current_time=time) for time in times]
    assert key(made, now=11.0) == key(made, now=19.0)


def test_a_custom_strategy_that_reads_anything() -> None:
    """Every field, every property; the time is set, for it may be looked at."""
    made = cache_keys(any_field=True, custom=True, needed={"region"})
    base: dict[str, Any] = {"session_id": "1", "properties": {"region": "eu"}}
    assert differ(key(made, **base), key(made, **base, current_time=1.0))
    assert made.timed
    shifted = [(["a", "b", "c"], {}), (["a"], {"b": "c"})]
    free = cache_keys(any_field=True)
    assert differ(*[key(free, NAMED, names, properties=own) for names, own in shifted])
    assert key(made, **{**base, "session_id": None}) is None
    assert key(made, **{**base, "properties": {"a": "b"}}) is None


texts = st.text(alphabet="\0,:1ab", max_size=3)


OWN = ("user_id", "session_id", "remote_address", "app_name", "environment")
contexts = st.fixed_dictionaries({}, optional={name: st.none() | texts for name in OWN})


@given(contexts, contexts, st.dictionaries(texts, texts, max_size=3), st.dictionaries(texts, texts, max_size=3))
def test_only_equal_contexts_have_equal_bytes(
    first: dict[str, Any], second: dict[str, Any], one: dict[str, str], other: dict[str, str]
) -> None:
    """If everything is read, all contexts have different bytes. A mark inside a value does not shift later parts."""
    made = cache_keys(any_field=True)
    found, further = (key(made, NAMED, ["a"], **each, properties=own) for each, own in ((first, one), (second, other)))
    given = [{name: each.get(name) for name in OWN} for each in (first, second)]
    assert (found == further) == ((given[0], one) == (given[1], other))
