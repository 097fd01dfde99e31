"""Which classes get a program, which keep it, and what that may cost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from flagsvc.engine.classes.store import CREDIT, DELAYS, FOLLOWED_USES, MAX_USES, PRICE, RETRY, SLICE, WINDOW, ClassStore
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.lists import AnswerList, Lists
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.api.wire_format import FrontendShape
from support.evaluating import classes_of, constraint, feature, region, rollout, snapshot, strategy
from unit.engine.test_refresh import begun, text

LETTERS = "abcdefghij"
NOTHING = AnswerList([], "m")


def regions(count: int = 1) -> list[object]:
    """Return features for regions whose name holds a letter: every set of letters is a class."""
    letters = [feature(each, strategy("default", constraint("STR_CONTAINS", values=[each]))) for each in LETTERS[:count]]
    return [*letters, feature("half", rollout(50, groupId="g"))]


def named(number: int, count: int = len(LETTERS)) -> Context:
    """Return a context of the class of a number."""
    return region("-" + "".join([LETTERS[at] for at in range(count) if number >> at & 1]))


def programs(store: ClassStore) -> int:
    """Return the number of classes with a program."""
    return len([each for each in store.known.values() if each.program is not None])


def test_a_program_from_the_second_sighting_on() -> None:
    """A class that comes once leaves a number. At its second sighting it gets a program, which then answers."""
    made = snapshot(*regions())
    store = classes_of(made)
    answers = []
    for seen, kept, hits in ((1, 0, 0), (2, 1, 1), (3, 1, 2)):
        answers.append(made.enabled(region("a")))
        assert (len(store.known), programs(store), store.counts.hits, store.counts.misses) == (kept, kept, hits, seen - hits)
    assert answers[0] == answers[1] == answers[2]


def test_no_memory_no_classes() -> None:
    """With a bound of 0 there is no store; a class that exceeds the bound alone gets no program."""
    made = snapshot(*regions(), class_bytes=0)
    small = snapshot(*regions(), class_bytes=100, class_sightings=1)
    assert {made.enabled(region("a")), small.enabled(region("a"))} == {made.enabled(region("a"))}
    assert type(made.lists) is Lists and made.lists.containers() == []
    assert (classes_of(small).counts.hits, classes_of(small).counts.misses, classes_of(small).size) == (0, 1, 0)


def test_lists_have_programs_of_their_own() -> None:
    """The same class is known for each list, shape and part of a configuration by itself, within one bound."""
    made = snapshot(*regions(), class_sightings=1)
    part = restrict(made, frozenset({"p"}))
    for each in (made, part):
        for shape in (PLAIN, FrontendShape()):
            each.enabled(region("a"), shape)
            each.all(region("a"), shape)
    assert part.lists is made.lists
    assert len(classes_of(made).known) == 8 and classes_of(made).counts.hits == 8


def test_a_long_list_is_compiled_by_several_requests() -> None:
    """No request compiles more than a slice; until the program is complete, requests are evaluated."""
    features = [feature(f"f{at}", rollout(50, groupId=str(at))) for at in range(2 * SLICE + 1)]
    made, plain = snapshot(*features), snapshot(*features, class_bytes=0)
    context = Context(user_id="1")
    hits = []
    for _ in range(6):
        assert made.enabled(context) == plain.enabled(context)
        hits.append(classes_of(made).counts.hits)
    assert hits == [0, 0, 0, 1, 2, 3]
    [known] = classes_of(made).known.values()
    assert known.program is not None and known.size == classes_of(made).size > known.program.size


def test_programs_have_a_budget() -> None:
    """Look-ups pay for programs. A caller who invents classes uses up what was saved, and then gets one for many look-ups."""
    made = snapshot(*regions(len(LETTERS)))
    store = classes_of(made)
    store.credit = 2 * PRICE + 50
    for number in range(100):
        made.enabled(named(number))
        made.enabled(named(number))
    assert programs(store) == 3
    assert 0 <= store.credit < PRICE
    store.credit = CREDIT
    made.enabled(named(0))
    assert store.credit == CREDIT, "no more is saved up"


def test_the_classes_asked_for_most_are_kept() -> None:
    """When the bound is reached, classes that were not asked for since give way first."""
    one = snapshot(*regions(len(LETTERS)), class_sightings=1)
    one.enabled(named(0))
    bound = 4 * classes_of(one).size + 100
    made = snapshot(*regions(len(LETTERS)), class_sightings=1, class_bytes=bound)
    for number in range(200):
        for _ in range(3):
            made.enabled(named(0))
        made.enabled(named(number))
        assert classes_of(made).size <= bound
    assert 2 <= len(classes_of(made).known) <= 4
    hits = classes_of(made).counts.hits
    made.enabled(named(0))
    assert classes_of(made).counts.hits == hits + 1
    assert classes_of(made).size == sum([each.size for each in classes_of(made).known.values()])


def test_a_request_passes_over_few_classes() -> None:
    """However many classes are asked for all the time, a request that needs memory looks at a bounded number of them."""
    made = snapshot(*regions(len(LETTERS)), class_sightings=1)
    for number in range(3 * DELAYS):
        made.enabled(named(number))
    store = classes_of(made)
    for each in store.known.values():
        each.uses = MAX_USES
    store.limit = store.size - 1
    store.evict()
    assert len(store.known) == 3 * DELAYS - 1
    assert len([each for each in store.known.values() if each.uses < MAX_USES]) == DELAYS


def test_a_field_of_many_values_is_left_out_for_a_while() -> None:
    """If most look-ups of a window find no program, the field with the most patterns is no part of a class for some windows."""
    plans = [feature(each, strategy("default", constraint("IN", "plan", values=[each]))) for each in "xy"]
    made = snapshot(*regions(len(LETTERS)), *plans)
    store = classes_of(made)
    asked = [named(number * 7 % 509) for number in range(509)]
    for number in range(WINDOW):
        store.credit = 0
        made.enabled(asked[number % len(asked)])
    assert store.classes.dropped == {"region"}
    store.credit = CREDIT
    plain = snapshot(*regions(len(LETTERS)), *plans, class_bytes=0)
    for context in asked[:20]:
        assert made.enabled(context) == plain.enabled(context)
    assert len(store.known) == 1 and store.counts.hits > 0
    for _ in range(RETRY * WINDOW):
        classes_of(made).find(asked[0], NOTHING)
    assert store.classes.dropped == set()


def test_many_narrow_fields_are_left_out_at_once() -> None:
    """Fields of two patterns each make a million classes together. In one window, all but nine of them are left out."""
    fields = [f"field-{at}" for at in range(20)]
    made = snapshot(*[feature(each, strategy("default", constraint("IN", each, values=["1"]))) for each in fields])
    for number in range(WINDOW):
        properties = {each: str((number * 2654435761) >> at & 1) for at, each in enumerate(fields)}
        made.enabled(Context(properties=properties))
    assert len(classes_of(made).classes.fields) == 9


def test_a_window_without_fields() -> None:
    """Where no field makes classes, none is left out, and there is nothing to take again."""
    made = snapshot(feature("half", rollout(50, groupId="g")), class_bytes=100)
    for _ in range(RETRY * WINDOW):
        classes_of(made).find(Context(user_id="1"), NOTHING)
    assert classes_of(made).classes.version == 0 and classes_of(made).counts.hits == 0


def refreshed(compiler: Compiler, features: Sequence[object], previous: Snapshot | None, budget: int = 1 << 60) -> Snapshot:
    """Return the snapshot of a configuration after another one."""
    compilation = begun(compiler, text(*features), previous)
    while not compilation.advance(budget):
        pass
    return compilation.compiled().snapshot


def test_a_refresh_keeps_the_classes_asked_for_most() -> None:
    """Their programs are compiled with the next configuration, in slices, within the bound."""
    compiler = Compiler(CompileOptions(class_sightings=1))
    first = refreshed(compiler, regions(3), None)
    first.view(FrontendShape())
    for number in range(6):
        for _ in range(FOLLOWED_USES + number - 1):
            first.enabled(named(number, 3))
    first.all(named(1, 3))
    first.enabled(named(1, 3), FrontendShape())
    compiler.options.class_bytes = 4 * max(each.size for each in classes_of(first).known.values())
    second = refreshed(compiler, [*regions(3), feature("new")], first, 100)
    kept = [each.sample.properties["region"] for each in classes_of(second).known.values()]
    assert kept == [named(number, 3).properties["region"] for number in (5, 4, 3)]
    hits = classes_of(second).counts.hits
    assert classes_of(second).credit == classes_of(first).credit
    assert programs(classes_of(second)) == 3 and hits == classes_of(first).counts.hits > 0, "they go on"
    for number in range(8):
        plain = refreshed(Compiler(CompileOptions(class_bytes=0)), [*regions(3), feature("new")], None)
        assert second.enabled(named(number, 3)) == plain.enabled(named(number, 3))
    assert classes_of(second).counts.hits >= hits + 3


def test_a_class_that_has_become_too_large_is_not_followed() -> None:
    """A compiled program shows its size. Then neither it nor what programs share stays, and answers are as before."""
    compiler = Compiler(CompileOptions(class_sightings=1))
    first = refreshed(compiler, regions(3), None)
    for _ in range(FOLLOWED_USES):
        first.enabled(named(1, 3))
    more = [*regions(3), *[feature(f"f{at}", rollout(50, groupId=f"g{at}")) for at in range(300)]]
    taken = classes_of(refreshed(compiler, more, first)).taken()
    compiler.options.class_bytes = int(taken)
    second = refreshed(compiler, more, first)
    assert taken > 300 * 100 and not classes_of(second).known and classes_of(second).taken() == 0
    assert second.enabled(named(1, 3)) == refreshed(Compiler(CompileOptions(class_bytes=0)), more, None).enabled(named(1, 3))


def test_what_programs_share_counts() -> None:
    """The numbers of rollouts are there once, and count for the bound. They go with the last program."""
    features = [feature(f"f{at}", rollout(50, groupId=f"g{at}")) for at in range(100)]
    made = snapshot(*features, *regions(3), class_sightings=1)
    store = classes_of(made)
    made.enabled(region("a"))
    alone = store.rollouts.size
    made.enabled(region("b"))
    assert store.rollouts.size == alone >= 101 * 100 and store.taken() == store.size + alone
    store.limit = alone
    made.enabled(region("c"))
    assert not store.known and store.taken() == 0


def test_a_refresh_keeps_the_class_of_users_in_lists() -> None:
    """The class of users in lists stays apart from that of other users, although no sample holds a user."""
    ids = feature("ids", strategy("userWithId", parameters={"userIds": "1,2"}))
    compiler, off = Compiler(CompileOptions()), Compiler(CompileOptions(class_bytes=0))
    first = refreshed(compiler, [ids], None)
    for user in ("1", "3"):
        for _ in range(FOLLOWED_USES + 1):
            first.enabled(Context(user_id=user))
    second, plain = refreshed(compiler, [ids, feature("new")], first), refreshed(off, [ids, feature("new")], None)
    misses = classes_of(second).counts.misses
    for user in ("1", "2", "3", "4"):
        assert second.enabled(Context(user_id=user)) == plain.enabled(Context(user_id=user))
    assert classes_of(second).counts.misses == misses and programs(classes_of(second)) == 2


def test_a_refresh_forgets_what_is_no_class_any_more() -> None:
    """Two classes become one when their constraint goes; a list that is gone, and a class without its program, are not followed."""
    compiler = Compiler(CompileOptions(class_sightings=1))
    first = refreshed(compiler, regions(3), None)
    part = restrict(first, frozenset({"p"}))
    for number in range(8):
        for _ in range(FOLLOWED_USES):
            first.enabled(named(number, 3))
    for _ in range(FOLLOWED_USES):
        part.enabled(named(0, 3))
    next(iter(classes_of(first).known.values())).program = None
    second = refreshed(compiler, regions(2), first)
    assert programs(classes_of(second)) == 4
    second.enabled(named(0, 2))
    assert programs(classes_of(refreshed(compiler, regions(1), second))) == 0, "too few have asked"


def test_a_refresh_joins_lists_of_users_in_slices() -> None:
    """A configuration with many listed users is taken in steps, as everything else."""
    compiler = Compiler(CompileOptions())
    users = {each: ",".join([f"{each}{at}" for at in range(600)]) for each in LETTERS}
    listed = [feature(each, strategy("userWithId", parameters={"userIds": users[each]})) for each in LETTERS]
    made = refreshed(compiler, listed, None, 500)
    assert len(classes_of(made).classes.users.users) == 6000


def test_a_sample_holds_only_what_makes_the_class() -> None:
    """What is kept of a caller is what constraints look at, without user, session, address and other properties."""
    made = snapshot(*regions(), class_sightings=1)
    context = Context(
        app_name="app",
        environment="e",
        user_id="u",
        session_id="s",
        remote_address="192.0.2.1",
        properties={"region": "a", "plan": "p"},
        now=7.0,
    )
    made.enabled(context)
    [known] = classes_of(made).known.values()
    assert known.sample.as_dict() == {"properties": {"region": "a"}}
    assert known.sample.now == 7.0
    own = [feature(each, strategy("default", constraint("IN", each, values=["7"]))) for each in ("appName", "environment")]
    more = snapshot(*own, class_sightings=1)
    more.enabled(context)
    [known] = classes_of(more).known.values()
    assert known.sample.as_dict() == {"appName": "app", "environment": "e", "properties": {}}


def test_what_is_kept_of_a_caller_counts() -> None:
    """Long texts in a sample count by their memory, wherever a caller puts them, so they cannot exceed the bound."""
    texts = [feature(each, strategy("default", constraint("IN", each, values=["7"]))) for each in ("appName", "region")]
    text = "😀" * 1000
    for context in (Context(app_name=text), Context(environment=text), Context(properties={"region": text})):
        made = snapshot(*texts, class_sightings=1)
        made.enabled(context)
        kept = sum([sys.getsizeof(each) for each in (context.app_name, context.properties.get("region")) if each])
        assert classes_of(made).size > kept
        assert (classes_of(made).size > 4000) == (context.environment is None), "what is not kept does not count"


def test_a_property_that_is_none_is_absent() -> None:
    """An enricher may set a property to None. It is of the class of contexts without the property."""
    odd: Any = {"region": None}
    made = snapshot(*regions())
    for _ in range(3):
        made.enabled(Context(properties=odd))
    assert (classes_of(made).counts.hits, programs(classes_of(made))) == (2, 1)
    made.enabled(Context())
    assert classes_of(made).counts.hits == 3


def test_programs_end_when_the_fields_of_classes_change() -> None:
    """A class of the fields of before is none of now, also where its key is equal, and its memory is free."""
    features = [feature("f", strategy("default", constraint("IN", values=["eu"]))), *regions()]
    made, plain = snapshot(*features, class_sightings=1), snapshot(*features, class_bytes=0)
    store = classes_of(made)
    for asked in ("eu", "us"):
        store.classes.drop("region")
        made.enabled(region(asked))
        store.classes.restore()
        assert made.enabled(region(asked)) == plain.enabled(region(asked))
        assert store.size == sum([each.size for each in store.known.values()]) and len(store.known) == 1


def test_fields_are_taken_again_between_two_lookups() -> None:
    """A program that is being compiled while its classes lack a field is not continued for classes that have it."""
    features = [feature(f"f{at}", strategy("default", constraint("IN", values=["eu"]))) for at in range(SLICE + 1)]
    made, plain = snapshot(*features, class_sightings=1), snapshot(*features, class_bytes=0)
    classes_of(made).classes.drop("region")
    made.enabled(region("eu"))
    classes_of(made).windows_left = classes_of(made).window_left = 1
    assert made.enabled(region("us")) == plain.enabled(region("us"))
    assert classes_of(made).classes.dropped == set()


def test_fields_are_taken_again_across_refreshes() -> None:
    """The windows for which a field is left out go on in the next configuration, however often it changes."""
    compiler = Compiler(CompileOptions())
    first = refreshed(compiler, regions(2), None)
    classes_of(first).classes.drop("region")
    classes_of(first).windows_left = 3
    second = refreshed(compiler, regions(3), first)
    assert (classes_of(second).windows_left, classes_of(second).classes.dropped) == (3, {"region"})
