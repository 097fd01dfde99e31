"""Every variable of Edge is translated, or named in a note; what several variables say together is one option here.

The command line of Edge as its variables.
Edge's storage as one URL.
Tokens of Edge: environments, their names, and the keys of callers in them.
"""

from __future__ import annotations

import shlex

import pytest

from flagsvc.cli.migrating.edge import file_place, redis_url, translate_edge, translate_storage
from flagsvc.cli.migrating.edge_tokens import EdgeToken, read_key, read_token, translate_tokens
from flagsvc.cli.migrating.migration import KNOWN, About, Migration, Peer
from flagsvc.cli.migrating.sources import EdgeCommand, is_edge_command, read_edge_command
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.edge import BY_VARIABLE, ROWS, Takes
from flagsvc.settings.environments import middle_of

BASE = {"UPSTREAM_URL": "https://flags.example.com", "TOKENS": "*:production.s3cret"}
OFFLINE = {"BOOTSTRAP_FILE": "/flags.json"}
SAMPLES = {
    "INTERFACE": "127.0.0.1",
    "CORS_ORIGIN": "https://shop.example.com",
    "CORS_METHODS": "PUT",
    "CUSTOM_CLIENT_HEADERS": "X-Key: s3cret",
    "PROXY_TRUSTED_SERVERS": "10.0.0.1",
    "PRETRUSTED_TOKENS": "s3cret@production",
    "REDIS_URL": "redis://h:6379",
    "LOG_FORMAT": "json",
    "RUST_LOG": "debug",
    "BOOTSTRAP_FILE": "/f.json",
}
"""A value that is not the default, for variables that do not take any text or number."""
COMPANIONS = {
    "PROXY_TRUSTED_SERVERS": {"TRUST_PROXY": "true"},
    "UPSTREAM_URL": {"TOKENS": BASE["TOKENS"]},
    **{name: {"TLS_ENABLE": "true"} for name in ("TLS_SERVER_CERT", "TLS_SERVER_KEY", "TLS_SERVER_PORT")},
    **{name: {"REDIS_HOST": "h"} for name in BY_VARIABLE if name.startswith("REDIS_") and name != "REDIS_URL"},
}
"""Variable → what it has an effect with."""
OTHER = {"REDIS_MODE": "cluster", "REDIS_SCHEME": "rediss", "REDIS_PORT": "7000"}


def sample(name: str) -> str:
    """Return a value of a variable that is not its default."""
    row = BY_VARIABLE[name]
    return SAMPLES.get(name) or OTHER.get(name) or ("true" if row.takes is Takes.NOTHING else "77")


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_every_variable_has_an_effect_or_a_note(name: str) -> None:
    """With the variable, the options are others than without it, or a note has its name."""
    offline = name in ("CLIENT_TOKENS", "FRONTEND_TOKENS", "RELOAD_INTERVAL", "BOOTSTRAP_FILE")
    given = (OFFLINE if offline else BASE) | COMPANIONS.get(name, {})
    given = {other: value for other, value in given.items() if other != name}
    before, after = translate_edge(given, ""), translate_edge(given | {name: sample(name)}, "")
    is_named = any(note.name == name for note in after.notes)
    assert before.options != after.options or is_named
    assert all(option in KNOWN for option in after.options)
    assert "s3cret" not in "".join(map(str, after.notes))


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.takes is Takes.NOTHING])
def test_a_switch_that_is_off(name: str) -> None:
    """A switch that is off asks for nothing: the options are as without the switch, or the opposite."""
    before, after = translate_edge(BASE, ""), translate_edge(BASE | {name: "false"}, "")
    changed = {option: value for option, value in after.options.items() if before.options.get(option) != value}
    assert all(value is True for value in changed.values())
    assert not any(note.about in (About.NEEDED, About.ABSENT) for note in after.notes)


def notes(migration: Migration, about: About) -> list[str]:
    """Return the notes of a kind, as texts."""
    return [f"{note.name}: {note.text}" for note in migration.notes if note.about is about]


VALUES: list[tuple[dict[str, str], str, object]] = [
    # Edge's URL has no `/api`, ours does
    ({"UPSTREAM_URL": "https://flags.example.com"}, "flagsvcUrl", "https://flags.example.com/api"),
    ({"UPSTREAM_URL": "https://flags.example.com/"}, "flagsvcUrl", "https://flags.example.com/api"),
    ({"UPSTREAM_URL": "https://flags.example.com/acme/api/"}, "flagsvcUrl", "https://flags.example.com/acme/api"),
    ({"UPSTREAM_URL": "https://flags.example.com/api/client/features"}, "flagsvcUrl", "https://flags.example.com/api"),
    ({"UPSTREAM_URL": "http://[::1"}, "flagsvcUrl", None),
    ({"UPSTREAM_URL": "flags.example.com"}, "flagsvcUrl", None),
    # the switch decides, and the list is the value
    ({"TRUST_PROXY": "true"}, "trustProxy", True),
    ({"TRUST_PROXY": "1", "PROXY_TRUSTED_SERVERS": "10.0.0.0/8, ::1"}, "trustProxy", ["10.0.0.0/8", "::1"]),
    ({"TRUST_PROXY": "false", "PROXY_TRUSTED_SERVERS": "10.0.0.0/8"}, "trustProxy", None),
    ({"PROXY_TRUSTED_SERVERS": "10.0.0.0/8"}, "trustProxy", None),
    ({}, "trustProxy", None),
    # `::` is IPv4 as well in Edge, which is the default here: as a host it would be IPv6 alone
    *(({"INTERFACE": host}, "host", None) for host in ("::", "[::]")),
    *(({"INTERFACE": host}, "host", host) for host in ("0.0.0.0", "::1")),
]
"""Variables, and the value that they give to an option."""


@pytest.mark.parametrize(("given", "option", "value"), VALUES)
def test_values(given: dict[str, str], option: str, value: object) -> None:
    """An option has the value of its variables. A URL that is none is a note."""
    found = translate_edge(BASE | given, "")
    assert found.options.get(option) == value and found.complete is ("flagsvcUrl" in found.options)


def test_one_port_with_tls() -> None:
    """With TLS the port is the HTTPS port, and a note names the port that is gone. Without it a certificate has no effect."""
    on = translate_edge(BASE | {"TLS_ENABLE": "true", "PORT": "80", "TLS_SERVER_PORT": "443"}, "")
    assert on.options["port"] == 443
    assert any("nothing listens at 80" in text for text in notes(on, About.CHANGED))
    off = translate_edge(BASE | {"TLS_SERVER_CERT": "/c.pem", "PORT": "80"}, "")
    assert off.options["port"] == 80 and "tlsCert" not in off.options
    assert notes(off, About.IGNORED) == ["TLS_SERVER_CERT: TLS_ENABLE is not on"]


@pytest.mark.parametrize(
    ("level", "ours", "told"),
    [
        ("info", "info", 0),
        ("TRACE", "debug", 0),
        ("unleash_edge=warn,hyper=off", "warn", 1),
        ("unleash_edge=info", "info", 0),
        ("off", None, 1),
    ],
)
def test_level(level: str, ours: str | None, told: int) -> None:
    """The first level that flagsvc has is taken. A note says that there is only one."""
    found = translate_edge(BASE | {"RUST_LOG": level}, "")
    assert found.options.get("logLevel") == ours
    assert len([note for note in found.notes if note.name == "RUST_LOG"]) == told


def test_first_of_two() -> None:
    """Two variables for one option: the second is named as left out."""
    found = translate_edge(BASE | {"PKCS8_CLIENT_CERTIFICATE_FILE": "/a.pem", "PEM_CERT_FILE": "/b.pem"}, "")
    assert found.options["upstreamCert"] == "/a.pem"
    assert notes(found, About.IGNORED) == ["PEM_CERT_FILE: upstreamCert has a value of another variable"]


@pytest.mark.parametrize(
    ("given", "base"), [({}, ""), ({"BASE_PATH": "flags/"}, "/flags"), ({"BASE_PATH": "/"}, ""), ({"BASE_PATH": "not a path"}, "")]
)
def test_metrics_are_below_the_base_path(given: dict[str, str], base: str) -> None:
    """The note has both paths as Prometheus asks for them, with the base path in front."""
    path = f"Prometheus reads {base}/internal-backstage/metrics there, {base}/proxy/internal-backstage/prometheus here"
    assert f"metrics: {path}" in notes(translate_edge(BASE | given, ""), About.CHANGED)


def test_modes() -> None:
    """The subcommand decides about the mode, else the variables. What the other mode reads is named."""
    both = BASE | OFFLINE | {"CLIENT_TOKENS": "s3cret", "REDIS_URL": "redis://h"}
    online, offline = translate_edge(both, ""), translate_edge(both, "offline")
    assert online.options["flagsvcUrl"] == "https://flags.example.com/api"
    assert {text.partition(":")[0] for text in notes(online, About.IGNORED)} == {"BOOTSTRAP_FILE", "CLIENT_TOKENS"}
    assert offline.options["flagsvcUrl"] == "file:///flags.json"
    assert "tokenValidation" not in offline.options and "refreshInterval" not in offline.options
    assert {text.partition(":")[0] for text in notes(offline, About.IGNORED)} == {"UPSTREAM_URL", "REDIS_URL"}
    assert translate_edge(OFFLINE, "edge").options.get("flagsvcUrl") is None


COMMANDS = [
    ("edge --upstream-url http://a --tokens x", EdgeCommand("edge", {"UPSTREAM_URL": "http://a", "TOKENS": "x"})),
    ("edge --upstream-url=http://a -t x -t y,z", EdgeCommand("edge", {"UPSTREAM_URL": "http://a", "TOKENS": "x,y,z"})),
    ("-p 1 -b /x edge -p key -b folder", EdgeCommand("edge", {
        "PORT": "1", "BASE_PATH": "/x", "PRETRUSTED_TOKENS": "key", "BACKUP_FOLDER": "folder"})),
    ("offline -b file -c a -f b -r 5", EdgeCommand("offline", {
        "BOOTSTRAP_FILE": "file", "CLIENT_TOKENS": "a", "FRONTEND_TOKENS": "b", "RELOAD_INTERVAL": "5"})),
    ("edge -f5 -m=7 -u=http://a", EdgeCommand("edge", {
        "FEATURES_REFRESH_INTERVAL_SECONDS": "5", "METRICS_INTERVAL_SECONDS": "7", "UPSTREAM_URL": "http://a"})),
    ("edge -s --trust-proxy --redis-secure=false", EdgeCommand("edge", {
        "SKIP_SSL_VERIFICATION": "true", "TRUST_PROXY": "true", "REDIS_SECURE": "false"})),
    ("edge -H 'A: 1' -H 'B: 2'", EdgeCommand("edge", {"CUSTOM_CLIENT_HEADERS": "A: 1,B: 2"})),
    ("tini -- /unleash-edge edge -w 4", EdgeCommand("edge", {"WORKERS": "4"})),
    ("--workers edge", EdgeCommand("edge", {})),
    ("edge --what s3cret --port 5 -Zs3cret - word", EdgeCommand("edge", {"PORT": "5"}, ("--what", "-Z"), 2)),
    ("health -e http://a -c ca.pem", EdgeCommand("health", {"EDGE_URL": "http://a", "CA_CERTIFICATE_FILE": "ca.pem"})),
    ("edge --port", EdgeCommand("edge", {})),
    ("", EdgeCommand("", {})),
]  # fmt: skip


@pytest.mark.parametrize(("line", "command"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_what_it_says(line: str, command: EdgeCommand) -> None:
    """Options stand before and behind the subcommand, in long and short form. What is unknown is named without its value."""
    assert read_edge_command(shlex.split(line)) == command


@pytest.mark.parametrize(
    ("line", "is_edge"),
    [("edge", True), ("--port 1 offline", True), ("/unleash-edge", True), ("node dist/start.js", False), ("", False)],
)
def test_which_command_is_edges(line: str, is_edge: bool) -> None:
    """The name of the program, or a subcommand, says that a command line is Edge's."""
    assert is_edge_command(shlex.split(line)) is is_edge


def test_many_words() -> None:
    """The time for a command line grows with its length, not with its square."""
    found = read_edge_command(["edge", *["-t", "a"] * 200_000, *["x"] * 200_000])
    assert found.variables["TOKENS"].count("a") == found.stray == 200_000


URLS = [
    ({"REDIS_URL": "redis://h"}, "redis://h"),
    ({"REDIS_URL": "rediss://u:p@h:1/2"}, "rediss://u:p@h:1/2"),
    ({"REDIS_URL": "redis://h:1?protocol=resp3"}, "redis://h:1"),
    ({"REDIS_HOST": "h"}, "redis://h"),
    ({"REDIS_HOST": "h:1", "REDIS_SCHEME": "tls"}, "rediss://h:1"),
    ({"REDIS_HOST": "h", "REDIS_PORT": "1", "REDIS_USERNAME": "a b", "REDIS_SECURE": "true"}, "rediss://a%20b@h:1"),
    ({"REDIS_URL": "redis://:p@h", "REDIS_USERNAME": "u"}, "redis://u@h"),
    ({"REDIS_HOST": "[::1]", "REDIS_PORT": "1"}, "redis://[::1]:1"),
    ({"REDIS_URL": "redis+unix:///run/redis.sock"}, "unix:///run/redis.sock"),
    ({"REDIS_URL": "unix:///run/redis.sock?db=2"}, "unix:///run/redis.sock?db=2"),
    ({"REDIS_HOST": "/run/redis.sock", "REDIS_SCHEME": "redis-unix", "REDIS_PORT": "1"}, "unix:///run/redis.sock"),
    ({"REDIS_URL": "redis://h:port"}, "redis://h:port"),
]


@pytest.mark.parametrize(("given", "url"), URLS)
def test_url(given: dict[str, str], url: str) -> None:
    """The parts that Edge has in several variables are one URL. A malformed URL stays as it is."""
    address = given.get("REDIS_URL") or given["REDIS_HOST"]
    assert redis_url(address, given) == url


def translated(**given: str) -> Migration:
    """Return what some variables mean."""
    migration = Migration(Peer.EDGE)
    translate_storage(given, migration)
    return migration


def test_password_and_timeout() -> None:
    """The password has an option of its own, and the longer time-out counts."""
    found = translated(
        REDIS_HOST="h",
        REDIS_PASSWORD="s3cret",
        REDIS_READ_CONNECTION_TIMEOUT_MILLISECONDS="100",
        REDIS_WRITE_CONNECTION_TIMEOUT_MILLISECONDS="50",
    )
    assert found.options == {"storage": "redis://h", "storagePassword": "s3cret", "storageTimeout": 100}


def test_clusters_and_several_places() -> None:
    """A cluster is left out, of several addresses the first is taken, a folder wins. A wrong address is not repeated."""
    assert translated(REDIS_URL="redis://a", REDIS_MODE="Cluster").options == {}
    several = translated(REDIS_URL="redis://a, redis://b")
    assert several.options == {"storage": "redis://a"} and several.notes[0].about is About.ABSENT
    both = translated(REDIS_URL="redis://a", BACKUP_FOLDER="/b")
    assert both.options == {"storage": "file:///b"} and both.notes[-1].name == "REDIS_URL"
    found = translated(REDIS_URL="redis://:s3cret@h:port")
    assert found.options == {} and not found.complete
    assert "s3cret" not in str(found.notes[0])


@pytest.mark.parametrize(
    ("path", "url"), [("/a b", "file:///a%20b"), ("a", "file:a"), (" /a ", "file:///a"), ("\udcff", "file:\udcff")]
)
def test_file_place(path: str, url: str) -> None:
    """A path is a URL; a relative one stays relative."""
    assert file_place(path) == url


@pytest.mark.parametrize(
    ("text", "project", "environment"),
    [
        ("*:production.s3cret", "*", "production"),
        ("shop:production.a.b", "shop", "production"),
        ("my.shop:production.s3cret", "my.shop", "production"),
        ("[]:production.s3cret", "[]", "production"),
        (":production.s3cret", "*", "production"),
        *((text, "", "") for text in ("s3cret", "shop:s3cret", "shop:.s3cret", "a:b:c.d", "")),
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
        ("*:eu-west.1,*:eu_west.2", ["eu-west", "eu_west-2"]),
        ("one,two", ["default", "default-2"]),
        *((tokens, []) for tokens in ("a:prod.1,a:prod.2,a:prod.1", "*:prod.1", "")),
    ],
)
def test_names(tokens: str, names: list[str]) -> None:
    """A table has the name of its environment, with the project if there are several, and no two make the same variables."""
    found = tables(tokens)
    assert list(found.environments) == names
    assert len({middle_of(name) for name in found.environments}) == len(names)


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        ("a:prod.1,b:prod.2,*:dev.3", ["prod-a, prod-b"]),
        ("a:prod.1,[]:prod.2", ["prod-a, prod-several"]),
        ("a:prod.1,b:prod.2,c:dev.3,d:dev.4", ["prod-a, prod-b", "dev-c, dev-d"]),
        *((tokens, []) for tokens in ("a:prod.1,*:prod.2", "a:prod.1,b:dev.2", "a:prod.1,a:prod.2", "one,two")),
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
    found = tables("*:prod.1", "k1@prod,k2@staging,k3")
    assert found.options["clientKeys"] == ["k1"] and len(notes(found, About.NEEDED)) == 2


def test_more_environments_than_a_process_can_have() -> None:
    """Each token has a name that differs from all others, so many tokens would take a time that grows with their square."""
    with pytest.raises(ConfigurationError, match=r"^TOKENS: expected at most 1000 environments, found 40000$"):
        tables(",".join(f"*:e{number}.s" for number in range(40_000)))
