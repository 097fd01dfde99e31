"""Tokens of Edge: environments, their names, and the keys of callers in them."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.edge_tokens import EdgeToken, read_key, read_token, translate_tokens, unique
from flagsvc.cli.migrating.migration import About, Migration, Peer
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.environments import middle_of


@pytest.mark.parametrize(
    ("text", "project", "environment"),
    [
        ("*:production.s3cret", "*", "production"),
        ("shop:production.a.b", "shop", "production"),
        ("my.shop:production.s3cret", "my.shop", "production"),
        ("[]:production.s3cret", "[]", "production"),
        (":production.s3cret", "*", "production"),
        ("s3cret", "", ""),
        ("shop:s3cret", "", ""),
        ("shop:.s3cret", "", ""),
        ("a:b:c.d", "", ""),
        ("", "", ""),
    ],
)
def test_token(text: str, project: str, environment: str) -> None:
    """A token names a project and an environment; a text of another form names nothing."""
    assert read_token(text) == EdgeToken(text, project, environment)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("s3cret@production", EdgeToken("s3cret", "*", "production")),
        ("a@b@production", EdgeToken("a@b", "*", "production")),
        ("shop:production.s3@cret", EdgeToken("shop:production.s3@cret", "shop", "production")),
        ("s3cret", EdgeToken("s3cret")),
        ("@production", EdgeToken("@production")),
    ],
)
def test_trusted_key(text: str, key: EdgeToken) -> None:
    """Of `secret@environment` callers send the secret; a token is sent as it is."""
    assert read_key(text) == key


def tables(tokens: str, keys: str = "") -> Migration:
    """Return what tokens and trusted keys mean."""
    migration = Migration(Peer.EDGE)
    translate_tokens({"TOKENS": tokens, "PRETRUSTED_TOKENS": keys}, migration)
    return migration


@pytest.mark.parametrize(
    ("tokens", "names"),
    [
        ("*:dev.1,*:prod.2", ["dev", "prod"]),
        ("a:prod.1,b:prod.2", ["prod-a", "prod-b"]),
        ("*:prod.1,a:prod.2", ["prod", "prod-a"]),
        ("[]:prod.1,[]:prod.2", ["prod-several", "prod-several-2"]),
        ("c:a-b.1,*:a-b.2,b-c:a.3,*:a.4", ["a-b-c", "a-b", "a-b-c-2", "a"]),
        ("*:Prod.1,*:prod.2", ["Prod", "prod-2"]),
        ("one,two", ["default", "default-2"]),
        ("a:prod.1,a:prod.2,a:prod.1", []),
        ("*:prod.1", []),
        ("", []),
    ],
)
def test_names(tokens: str, names: list[str]) -> None:
    """A table has the name of its environment, with the project if there are several, and no two make the same variables."""
    found = tables(tokens)
    assert list(found.environments) == names
    assert len({middle_of(name) for name in found.environments}) == len(names)


def test_the_same_scope_twice() -> None:
    """Of two tokens that read the same, one is enough: the other one is named by its number."""
    found = tables("a:prod.s3cret-1,a:prod.s3cret-2")
    assert found.options["flagsvcApiToken"] == "a:prod.s3cret-1"
    (note,) = [note for note in found.notes if note.about is About.IGNORED]
    assert note.text == "token 2: another one reads the same of environment `prod`"


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        ("a:prod.1,b:prod.2,*:dev.3", ["prod-a, prod-b"]),
        ("a:prod.1,[]:prod.2", ["prod-a, prod-several"]),
        ("a:prod.1,b:prod.2,c:dev.3,d:dev.4", ["prod-a, prod-b", "dev-c, dev-d"]),
        ("a:prod.1,*:prod.2", []),
        ("a:prod.1,b:dev.2", []),
        ("a:prod.1,a:prod.2", []),
        ("one,two", []),
    ],
)
def test_projects_of_several_tables(tokens: str, named: list[str]) -> None:
    """A note tells what a caller's token of several tables opens here, and what to do, unless one table has all projects."""
    notes = [note.text for note in tables(tokens).notes if "opens none of " in note.text]
    assert [text.partition("opens none of ")[2].partition(", unless")[0] for text in notes] == named
    assert all("one backend token of `" in text for text in notes) and "s3cret" not in str(notes)
    assert {note.about for note in tables(tokens).notes if note.text in notes} <= {About.CHANGED}


def test_keys_find_their_table() -> None:
    """A key belongs to the table of its project, else to the first one of its environment."""
    keys = "b:prod.k1,k2@prod,*:prod.k3,c:dev.k4,k5@nowhere,k6"
    found = tables("a:prod.1,b:prod.2,*:dev.3", keys)
    listed = {name: table.get("clientKeys") for name, table in found.environments.items()}
    assert listed == {"prod-a": ["k2", "*:prod.k3"], "prod-b": ["b:prod.k1"], "dev": ["c:dev.k4"]}
    assert [note.text for note in found.notes if note.about is About.NEEDED] == [
        "a key of environment `nowhere` is left out, because TOKENS has none for it",
        "a key is left out, because it names no environment: Edge asks for the form `key@environment`",
    ]


def test_keys_beside_one_token() -> None:
    """With one token the keys are options of the whole; a token without an environment takes all of them."""
    assert tables("*:prod.1", "k1@prod,k2@prod").options["clientKeys"] == ["k1", "k2"]
    assert tables("legacy", "k1@prod,k2").options["clientKeys"] == ["k1", "k2"]
    assert not tables("", "k1@prod").complete


def test_unique() -> None:
    """A number is added until the name is free."""
    assert unique("a", ["a", "a-2", "A_3"]) == "a-4"


def test_more_environments_than_a_process_can_have() -> None:
    """Each token has a name that differs from all others, so many tokens would take a time that grows with their square."""
    with pytest.raises(ConfigurationError, match=r"^TOKENS: expected at most 1000 environments, found 40000$"):
        tables(",".join(f"*:e{number}.s" for number in range(40_000)))
