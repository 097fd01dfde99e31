"""Which contexts are of one class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flagsvc.engine.classes.fields import CHARACTER, CHARACTERS, ENTRIES, MAX_WORK, VALUE, ContextClasses
from flagsvc.engine.classes.users import LAST_NUMBER, MAX_USERS, READ_AT_ONCE, UserLists
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.context import Context
from support.evaluating import classes_of, constraint, feature, region, rollout, snapshot, strategy
from unit.engine.test_refresh import compiled, text


def classes(*features: object, **more: Any) -> ContextClasses:
    """Return the classes of a configuration."""
    return classes_of(snapshot(*features, **more)).classes


def key(found: ContextClasses, context: Context) -> str | None:
    """Return the class of a context."""
    return found.key(context, "m", len(found.users.holding(context)) > 0)


def in_region(*values: str) -> dict[str, Any]:
    """Return a feature for some regions."""
    return feature(f"in-{'-'.join(values)}", strategy("default", constraint("IN", values=list(values))))


def test_values_that_no_constraint_tells_apart_are_one_class() -> None:
    """A class is what the constraints make of a value, so a value that none knows makes no class of its own."""
    found = classes(in_region("eu", "us"), in_region("eu"))
    keys = {value: key(found, region(value)) for value in ("eu", "us", "a", "b", None)}
    assert keys["a"] == keys["b"] == keys[None]
    assert len(set(keys.values())) == 3
    assert key(found, Context(user_id="7", session_id="8", remote_address="::1", properties={"plan": "a"})) == keys["a"]


def test_segments_and_dates_count() -> None:
    """The constraints of segments count as those of strategies, and a time by its position among the dates."""
    segment = {"id": 1, "constraints": [constraint("IN", values=["eu"]), constraint("DATE_AFTER", value="2026-01-01")]}
    found = classes(feature("f", strategy("default", segments=[1])), segments=[segment])
    before, after = Context(now=0.0), Context(now=1.9e12)
    assert key(found, before) != key(found, after) == key(found, Context(now=1.8e12))
    assert key(found, Context(current_time=math.nan)) not in (key(found, before), key(found, after))
    assert key(found, region("eu")) != key(found, region("us"))
    assert [each.name for each in found.fields] == ["region"]


def test_what_makes_no_classes() -> None:
    """Constraints of disabled features, of folded strategies and on identifiers, which differ within a class, make no classes."""
    off = in_region("eu") | {"enabled": False}
    found = classes(off, feature("on", strategy("default"), strategy("default", constraint("IN", values=["us"]))))
    assert found.fields == []
    fields = ("userId", "sessionId", "remoteAddress", "currentTime")
    one = [feature(each, strategy("default", constraint("STR_CONTAINS", each, values=["1"]))) for each in fields]
    assert classes(*one).fields == []


def test_users_in_lists_are_a_class() -> None:
    """One look-up tells the users in no list, of strategies and of constraints; a property `userId` counts without a user."""
    ids = strategy("userWithId", parameters={"userIds": "1,2"})
    found = classes(feature("a", ids), feature("b", strategy("default", constraint("IN", "userId", values=["3"]))))
    keys = [key(found, Context(user_id=user)) for user in ("1", "2", "3", "4", None)]
    assert keys[0] == keys[1] == keys[2] != keys[3] == keys[4]
    assert key(found, Context(properties={"userId": "3"})) == keys[0]


def read(lists: Sequence[frozenset[str]], former: UserLists | None = None) -> tuple[UserLists, list[int]]:
    """Return lists that were read after others, and the users of each step."""
    made = UserLists()
    return made, list(made.read([*lists], UserLists() if former is None else former))


def holding(lists: UserLists, *users: str) -> list[list[int]]:
    """Return the numbers of the lists that hold each user."""
    return [sorted(lists.holding(Context(user_id=user))) for user in users]


LONG = frozenset([str(user) for user in range(READ_AT_ONCE + 1)])


def test_lists_that_stay_are_not_read_again() -> None:
    """The new lists copy what was read, without lists that are gone. The former lists do not change."""
    one, two, three, longer = frozenset({"a", "b"}), frozenset({"b", "c"}), frozenset({"c", "d"}), LONG | {"a"}
    first, _ = read([one, two, LONG])
    second, steps = read([two, longer, three], first)
    assert steps == [0, 2, 0, 2]
    assert holding(second, "a", "b", "c", "d", "7") == [[4], [2], [2, 5], [5], [4]]
    assert holding(first, "a", "b", "c", "d", "7") == [[1], [1, 2], [2], [], [3]]
    third, steps = read([LONG, one], second)
    assert holding(third, "a", "b", "c", "7") == [[7], [7], [], [6]] and steps == [0, 2]
    fourth, _ = read([LONG], third)
    assert holding(fourth, "a", "7") == [[], [6]] and fourth.users == {}


def test_numbers_of_lists_begin_again() -> None:
    """Each new list gets the next number. Programs have 31 bits for it, so after very many, all lists are read again from 1."""
    kept, new = frozenset({"a"}), frozenset({"b"})
    former, _ = read([kept])
    former.last = LAST_NUMBER
    grown, steps = read([kept, new], former)
    assert holding(grown, "a", "b") == [[1], [LAST_NUMBER + 1]] and steps == [0, 1]
    again, _ = read([kept, new], grown)
    assert holding(again, "a", "b") == [[1], [2]]


def test_users_may_be_in_every_list() -> None:
    """Testers who are in thousands of lists cost each list the same, and those of a single list share its number."""
    testers = [f"tester-{number}" for number in range(50)]
    sets: list[Any] = [frozenset([*testers, f"{at}", f"{at} too"]) for at in range(3000)]
    first, lists = UserLists(), UserLists()
    list(first.read(sets[:2000], UserLists()))
    list(lists.read(sets, first))
    for each in testers:
        assert lists.holding(Context(user_id=each)) == tuple(range(1, 3001))
        assert first.holding(Context(user_id=each)) == tuple(range(1, 2001))
    assert lists.holding(Context(user_id="7")) is lists.holding(Context(user_id="7 too"))
    assert lists.holding(Context(user_id="7")) == (8,)


def test_the_users_of_short_lists_have_a_bound() -> None:
    """Lists are read in steps, until there are too many users; further lists count as long."""
    count = MAX_USERS // READ_AT_ONCE + 2
    lists, steps = read([frozenset([f"{at}-{user}" for user in range(READ_AT_ONCE)]) for at in range(count)])
    assert steps == [READ_AT_ONCE] * (count - 1) + [0]
    assert len(lists.users) == (count - 1) * READ_AT_ONCE and lists.long == [count]
    assert holding(lists, "0-0", f"{count - 1}-0") == [[1], [count]]


def test_remembered_values_have_a_bound() -> None:
    """A value that exceeds it alone is not remembered, and when there is no room, all are forgotten. The classes stay the same."""
    room = 1000
    found = classes(in_region("eu"), class_bytes=8 * room)
    other = key(found, region("x"))
    [field] = found.fields
    assert key(found, region("y" * room)) == other
    assert list(field.values) == ["x"] and found.size == VALUE + CHARACTER
    for at in range(100):
        assert key(found, region(str(at))) == other
        assert found.size == sum([VALUE + CHARACTER * len(each) for each in field.values]) <= room
    assert key(found, region("eu")) != other


def test_telling_classes_has_a_budget_of_work() -> None:
    """A value that is not known costs all constraints on its field. Contexts for whose values no work is left have no class."""
    slow = [feature(str(at), strategy("default", constraint("REGEX", value=f"a{at}"))) for at in range(10)]
    found = classes(*slow, in_region("eu"))
    [field] = found.fields
    assert field.work == 10 * 100 + 1
    told = [key(found, region(str(at))) is not None for at in range(60)]
    assert told == [True] * (MAX_WORK // field.work) + [False] * (60 - MAX_WORK // field.work)
    assert (field.starved, found.dropped) == (60 - MAX_WORK // field.work, set())
    assert key(found, region("0")) is not None, "it is remembered"
    found.earn(ENTRIES * field.work)
    assert key(found, region("new")) is not None
    found.earn(1 << 40)
    assert found.work_left == MAX_WORK
    assert key(found, region("x" * CHARACTERS * 50)) is None, "long values cost more"


def test_what_is_not_tested_for_lack_of_work_is_left_out_first() -> None:
    """Its values cannot be told apart, so nothing speaks for it; then the field with the most patterns goes."""
    plans = [feature(each, strategy("default", constraint("IN", "plan", values=[each]))) for each in "abc"]
    found = classes(*plans, in_region("eu"))
    for plan in "abc":
        key(found, Context(properties={"plan": plan, "region": "x"}))
    found.work_left = 0
    assert key(found, Context(properties={"plan": "a", "region": "y"})) is None
    found.narrow()
    assert found.dropped == {"region"}
    found.restore()
    found.begin_window()
    found.narrow()
    assert found.dropped == {"plan"}


def test_a_field_with_too_many_patterns_is_left_out() -> None:
    """A field that makes too many classes is dropped, its predicates are open, and the rest stays."""
    letters = "abcdefghijklmnop"
    features = [feature(each, strategy("default", constraint("STR_CONTAINS", values=[each]))) for each in letters]
    found = classes(*features, feature("z", strategy("default", constraint("IN", "plan", values=["gold"]))))
    version = found.version
    for number in range(1 << 10):
        text = "".join([each for at, each in enumerate(letters) if number >> at & 1])
        last = key(found, region(text))
        if last is None:
            break
    assert last is None and found.dropped == {"region"} and found.version == version + 1
    assert [each.name for each in found.fields] == ["plan"]
    assert key(found, region("a")) == key(found, region("b"))
    found.restore()
    assert [each.name for each in found.fields] == ["plan", "region"] and found.version == version + 2
    assert key(found, region("a")) != key(found, region("b"))
    assert key(found, region(text)) is not None, "there is room for patterns again"


def test_what_did_not_change_is_kept() -> None:
    """Tables of fields with the same constraints, the set of users and dropped fields go on in the next configuration."""
    users = feature("u", strategy("userWithId", parameters={"userIds": "1"}))
    plan = feature("p", strategy("default", constraint("IN", "plan", values=["gold"])))

    compiler = Compiler(CompileOptions())
    first = compiled(compiler, text(users, plan, in_region("eu"))).snapshot
    classes_of(first).classes.drop("region")
    before = classes_of(first).classes
    changed = text(users, plan, in_region("us"), feature("r", rollout(50)))
    after = classes_of(compiled(compiler, changed, first).snapshot).classes
    assert after.users is before.users
    assert [each.name for each in after.fields] == ["plan"] and after.dropped == {"region"}
    assert after.fields[0] is before.fields[0]
    assert after.all_fields[1] is not before.all_fields[1], "its constraints changed"
