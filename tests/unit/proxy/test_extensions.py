"""Files of custom strategies and enrichers: loading, and the messages about files that do not load.

Enrichers run one after the other, plain and async alike.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ExtensionError
from flagsvc.engine.context import Context
from flagsvc.proxy.extensions import ContextView, Strategy, enrich, enricher, load_enrichers, load_strategies

IS_GOLD = """
class IsGold:
    name = "isGold"

    def is_enabled(self, parameters, context):
        return context.get("tier") == "gold"

strategies = [IsGold()]
"""

ADD_TIER = """
def add_tier(context):
    return context.replace(properties={**context.properties, "tier": "gold"})

enrichers = [add_tier]
"""


class Odd(Strategy):
    """A strategy that is on for odd user ids."""

    name = "odd"
    pure = True
    reads = frozenset({"userId"})

    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> bool:
        """Return whether the user id is odd."""
        return int(context.user_id or 0) % 2 == 1


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_files_and_instances_mix(tmp_path: Path) -> None:
    """A list may contain paths, as texts too, and instances; their order is kept. The strategies answer for a context."""
    loaded = load_strategies([Odd(), str(write(tmp_path, "gold.py", IS_GOLD))])
    assert list(loaded.by_name) == ["odd", "isGold"]
    assert loaded.by_name["odd"].is_enabled({}, Context(user_id="7")) is True
    assert loaded.by_name["isGold"].is_enabled({}, Context(properties={"tier": "gold"})) is True
    assert loaded.by_name["isGold"].is_enabled({}, Context()) is False


def test_a_file_of_enrichers(tmp_path: Path) -> None:
    """The enrichers of the list `enrichers` are loaded in their order."""
    loaded = load_enrichers([write(tmp_path, "tier.py", ADD_TIER), lambda context: context])
    assert [function.__name__ for function in loaded.functions] == ["add_tier", "<lambda>"]


def test_nothing_at_all() -> None:
    """No sources make no extensions, and the digest of nothing is always the same."""
    assert load_strategies([]) == load_strategies(())
    assert load_strategies([]).by_name == {}
    assert load_enrichers([]).functions == ()


def test_two_loads_share_nothing(tmp_path: Path) -> None:
    """One file loaded twice makes two modules: an application does not see changes of another application."""
    path = write(tmp_path, "state.py", IS_GOLD.replace("IsGold()", "IsGold()]\nseen = [1") + "\nstrategies[0].seen = seen\n")
    first, second = load_strategies([path]), load_strategies([path])
    first.by_name["isGold"].seen.append(2)  # type: ignore[attr-defined]
    assert second.by_name["isGold"].seen == [1]  # type: ignore[attr-defined]


def test_a_file_may_define_dataclasses(tmp_path: Path) -> None:
    """A module can look itself up while it runs and afterwards, as dataclasses and typing do."""
    source = """
from __future__ import annotations
from dataclasses import dataclass, field

@dataclass
class Region:
    name: str
    allowed: set[str] = field(default_factory=set)

    def is_enabled(self, parameters, context):
        return context.get("region") in self.allowed

strategies = [Region("region", {"eu"})]
"""
    loaded = load_strategies([write(tmp_path, "region.py", source)])
    assert loaded.by_name["region"].is_enabled({}, Context(properties={"region": "eu"})) is True


def test_a_file_that_fails_leaves_no_module(tmp_path: Path) -> None:
    """A file that cannot be imported leaves no entry in sys.modules."""
    before = set(sys.modules)
    with pytest.raises(ExtensionError):
        load_strategies([write(tmp_path, "broken.py", "1 / 0")])
    assert set(sys.modules) == before


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """The bytes on disk decide, not a cached compilation of them: the same size and second make no difference."""
    path = write(tmp_path, "gold.py", IS_GOLD)
    load_strategies([path])
    path.write_text(IS_GOLD.replace('"isGold"', '"isBold"'))
    assert list(load_strategies([path]).by_name) == ["isBold"]


def test_the_digest_follows_the_code(tmp_path: Path) -> None:
    """Equal bytes have an equal digest wherever they lie, one changed byte has another, and order counts."""
    one = write(tmp_path, "a.py", IS_GOLD)
    other = write(tmp_path, "b.py", IS_GOLD.replace("gold", "silver").replace("isGold", "isSilver"))
    (tmp_path / "folder").mkdir()
    same = write(tmp_path, "folder/c.py", IS_GOLD)
    digest = load_strategies([one]).digest
    assert load_strategies([same]).digest == digest
    assert load_strategies([other]).digest != digest
    assert len({digest, load_enrichers([]).digest, load_strategies([Odd()]).digest}) == 3


def test_the_digest_follows_in_code_state() -> None:
    """Two instances of one class with other settings have another digest, in `__dict__` or in slots; equal ones the same."""

    class Named(Odd):
        def __init__(self, limit: int) -> None:
            self.limit = limit

    class Slotted:
        __slots__ = ("limit",)
        name = "slotted"
        is_enabled = Odd().is_enabled

        def __init__(self, limit: int) -> None:
            self.limit = limit

    for kind in (Named, Slotted):
        first, equal, other = (load_strategies([kind(limit)]).digest for limit in (1, 1, 2))
        assert first == equal != other


def test_the_digest_of_code_without_a_source() -> None:
    """Code typed into an interactive session has no bytes to digest: every load has a digest of its own."""
    space: dict[str, object] = {"__name__": "nowhere"}
    exec(IS_GOLD, space)
    typed = space["strategies"][0]  # type: ignore[index]
    assert load_strategies([typed]).digest != load_strategies([typed]).digest


STRATEGY_FAULTS = {
    "nothing exported": ("x = 1", "exports no list named `strategies`"),
    "another name": (
        "Strategies = []",
        "exports no list named `strategies`; did you mean `Strategies`? it must be called `strategies`",
    ),
    "not a list": ("strategies = {'a': 1}", "`strategies` is a dict, not a list"),
    "an item of another kind": ("strategies = [7]", "strategies[0] is an int without a `name`"),
    "a class": (IS_GOLD.replace("IsGold()]", "IsGold]"), "is the class IsGold, not an instance of it: write `IsGold()`"),
    "no method": (
        "from types import SimpleNamespace as N\nstrategies = [N(name='a')]",
        "strategies[0] (`a`) has no method is_enabled(parameters, context)",
    ),
    "an empty name": (IS_GOLD.replace('"isGold"', '""'), "strategies[0] is an IsGold without a `name`"),
    "wrong parameters": (IS_GOLD.replace("self, parameters, context", "self, context"), "does not take (parameters"),
    "async": (IS_GOLD.replace("def is_en", "async def is_en"), "has an async is_enabled: it must be a plain method"),
    "pure": (IS_GOLD.replace("name =", "pure = 'yes'\n    name ="), "has a `pure` that is neither True nor False"),
    "reads": (IS_GOLD.replace("name =", "reads = 'userId'\n    name ="), "has a `reads` that is not a set of context"),
    "division": ("\n\nx = 1 / 0", "does not import: ZeroDivisionError on line 3: division by zero"),
    "syntax": ("x = 1\nclass :", "does not import: SyntaxError on line 2: invalid syntax"),
    "import": ("import no_such_module", "ModuleNotFoundError on line 1: No module named 'no_such_module'"),
    "exit": ("import sys\nsys.exit(3)", "does not import: SystemExit on line 2: 3"),
    "abstract": (
        "from flagsvc.proxy.extensions import Strategy\nclass A(Strategy):\n    name = 'a'\nstrategies = [A()]",
        "TypeError on line 4: Can't instantiate abstract class A",
    ),
    "deeper": ("def f():\n    raise KeyError\nf()", "does not import: KeyError on line 2"),
}


ENRICHER_FAULTS = {
    "nothing exported": ("x = 1", "exports no list named `enrichers`"),
    "not callable": ("enrichers = ['x']", "enrichers[0] is a str: an enricher is a function"),
    "a class": ("class A:\n    pass\nenrichers = [A]", "enrichers[0] is the class A, not a function"),
    "no parameter": ("def f(): ...\nenrichers = [f]", "enrichers[0] (`f`) does not take exactly one argument"),
    "two parameters": ("enrichers = [lambda a, b: a]", "does not take exactly one argument, the context"),
    "reads": (
        "from flagsvc.proxy.extensions import enricher\n@enricher(reads='userId')\ndef f(c): ...\nenrichers = [f]",
        "has a `reads` that is not a set of context field names",
    ),
}


FAULTS = {
    **{name: (load_strategies, *row) for name, row in STRATEGY_FAULTS.items()},
    **{f"enrichers: {name}": (load_enrichers, *row) for name, row in ENRICHER_FAULTS.items()},
}


@pytest.mark.parametrize(("load", "source", "message"), FAULTS.values(), ids=FAULTS)
def test_faults_of_a_file(tmp_path: Path, load: Callable[..., object], source: str, message: str) -> None:
    """The message names the file, the item and what was expected, in one line and without a traceback."""
    path = write(tmp_path, "faulty.py", source)
    with pytest.raises(ExtensionError) as caught:
        load([path])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_missing_unreadable_and_foreign_files(tmp_path: Path) -> None:
    """A missing file, a folder, JavaScript and a file of another kind are each told in their own words, all at once."""
    script, text = write(tmp_path, "custom.js", "module.exports = []"), write(tmp_path, "custom.txt", "strategies = []")
    with pytest.raises(ExtensionError) as caught:
        load_strategies([tmp_path / "none.py", tmp_path, script, text])
    missing, folder, foreign, other = str(caught.value).splitlines()
    assert missing == f"custom strategies file `{tmp_path / 'none.py'}` does not exist"
    assert folder == f"custom strategies file `{tmp_path}` cannot be read: is a directory"
    assert foreign.startswith(f"custom strategies file `{script}` is JavaScript: port it to a Python file that exports")
    assert "docs/how-to/custom-strategies.md" in foreign
    assert other == f"custom strategies file `{text}` is not a Python file: its name must end in .py"


def test_two_strategies_of_one_name(tmp_path: Path) -> None:
    """The second strategy of a name is refused, and both places are named."""
    one, two = write(tmp_path, "one.py", IS_GOLD), write(tmp_path, "two.py", IS_GOLD)
    with pytest.raises(ExtensionError) as caught:
        load_strategies([one, two])
    assert str(caught.value) == (f"two custom strategies are named `isGold`: `{one}`: strategies[0] and `{two}`: strategies[0]")


def test_wrong_things_in_code() -> None:
    """The message names an invalid instance by its index."""
    with pytest.raises(ExtensionError, match=r"strategies\[1\] given in code is the class Odd, not an instance"):
        load_strategies([Odd(), Odd])  # type: ignore[list-item]


def test_a_callable_in_c_is_taken() -> None:
    """A function that tells no signature gets the benefit of the doubt."""
    assert load_enrichers([max]).functions == (max,)  # type: ignore[comparison-overlap, list-item]


def test_declarations_arrive() -> None:
    """The decorator leaves the function as it is and declares `pure` and `reads` on it."""

    @enricher(pure=True, reads=["userId"])
    def same(context: Context) -> Context:
        return context

    [function] = load_enrichers([same]).functions
    assert function is same
    assert (same.pure, same.reads) == (True, frozenset({"userId"}))  # type: ignore[attr-defined]


def add(context: Context) -> Context:
    return context.replace(properties={**context.properties, "seen": "1"})


async def add_later(context: Context) -> Context:
    """Add to it after a turn of the loop."""
    await asyncio.sleep(0)
    return context.replace(properties={**context.properties, "seen": context.properties["seen"] + "2"})


def test_each_sees_what_the_one_before_returned() -> None:
    """Plain and async enrichers run in their order, and the context that came in is not changed. Without enrichers the
    context stays the very same object.
    """
    given = Context(user_id="7", now=5.0, entropy=6)
    result = asyncio.run(enrich(given, [add, add_later]))
    assert result.properties == {"seen": "12"}
    assert (result.user_id, result.now, result.entropy) == ("7", 5.0, 6)
    assert given.properties == {}
    assert asyncio.run(enrich(given, [])) is given


async def later_none(context: Context) -> None:
    """Forget to return."""


@pytest.mark.parametrize("wrong", [lambda context: None, later_none, lambda context: context.as_dict()])
def test_anything_but_a_context(wrong: object) -> None:
    """An enricher that returns anything else raises, and the message names it and the type, never the value."""
    with pytest.raises(ExtensionError, match=r"enricher `.*` returned a (NoneType|dict), not a Context"):
        asyncio.run(enrich(Context(user_id="secret-person"), [wrong]))  # type: ignore[list-item]


def test_properties_become_texts() -> None:
    """As they do in a body: numbers and booleans as JavaScript writes them, None as the empty text."""

    def mixed(context: Context) -> Context:
        properties: dict[str, Any] = {"tier": 7, "share": 1.0, "on": True, "none": None, "region": "eu"}
        return context.replace(properties=properties)

    given = asyncio.run(enrich(Context(user_id="7", now=5.0), [mixed]))
    assert given.properties == {"tier": "7", "share": "1", "on": "true", "none": "", "region": "eu"}
    assert (given.user_id, given.now) == ("7", 5.0)


@pytest.mark.parametrize("wrong", [{"a": "secret-person"}, ["secret-person"]])
def test_a_property_that_can_be_no_text(wrong: object) -> None:
    """An enricher that returns one raises, and the message names the property and the type, never the value."""

    def put(context: Context) -> Context:
        return context.replace(properties={"region": "eu", "plan": wrong})

    with pytest.raises(ExtensionError, match=r"enricher `put` .* property `plan` is a (dict|list), not a text"):
        asyncio.run(enrich(Context(), [put]))
