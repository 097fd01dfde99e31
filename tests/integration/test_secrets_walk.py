"""No secret of the configuration is ever shown: secrets everywhere, every error provoked, and all that comes out searched for them.

What a caller or the upstream is meant to get is the one exception: the token goes to the upstream in its header. No
message holds a secret (behaviour: Odd values).
"""

from __future__ import annotations

import json
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from flagsvc import ConfigurationError, ProxyOptions, create_app
from flagsvc.proxy.api.dialects import ROUTES
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.load import load
from flagsvc.settings.table import OPTIONS
from fuzzing.commands import Called, CommandFolder
from support import tracebacks
from support.environments import only
from support.fake_upstream import FEATURES, METRICS, REGISTER, FakeUpstream, Reply
from support.pki import Authority, written
from support.processes import Proxy, ask, our_proxy
from support.wiretap import found
from support.worker_pools import workers

MARK = "q7x9zk"
TOKEN = f"*:development.token{MARK}"
CLIENT, OTHER, SERVER = f"clientone{MARK}", f"clienttwo{MARK}", f"sdktoken{MARK}"
GIVEN: dict[str, dict[str, str]] = {
    "flagsvcApiToken": {"FLAGSVC_API_TOKEN": TOKEN},
    "upstreamHeaders": {"FLAGSVC_UPSTREAM_HEADERS": f"X-Gateway: gateway{MARK}"},
    "clientKeys": {"FLAGSVC_PROXY_CLIENT_KEYS": f"{CLIENT},{OTHER}"},
    "expServerSideSdkConfig.tokens": {"EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": SERVER},
    "expBootstrap.urlHeaders.Authorization": {"EXP_BOOTSTRAP_AUTHORIZATION": f"Bearer bootstrap{MARK}"},
    "expBootstrap.url": {"EXP_BOOTSTRAP_URL": f"http://user{MARK}:pass{MARK}@127.0.0.1:9/flags?signature=sig{MARK}"},
    "adminPageKeys": {"FLAGSVC_ADMIN_PAGE_KEYS": f"pages{MARK}"},
    "httpProxy": {"HTTP_PROXY": f"http://outuser{MARK}:outpass{MARK}@127.0.0.1:9", "NO_PROXY": "127.0.0.1"},
    "httpsProxy": {"HTTPS_PROXY": f"http://outuser{MARK}:outpass{MARK}@127.0.0.1:9"},
}
"""Option → variables that give it a secret."""
ELSEWHERE = {"proxySecrets", "tlsKeyPassword", "upstreamKeyPassword", "storagePassword", "storageKeyPassword"}
"""Secret options that need more than this walk has, or stand for another option."""
ENVIRONMENT = {name: value for variables in GIVEN.values() for name, value in variables.items()}


def leaks(content: bytes) -> list[str]:
    """Return the secrets in some bytes, in any packing."""
    return found([MARK], content)


@dataclass
class Outputs:
    """All outputs, by their origin."""

    written: dict[str, bytes] = field(default_factory=dict)

    def take(self, where: str, content: bytes | str) -> None:
        """Keep something."""
        self.written[where] = self.written.get(where, b"") + (content if isinstance(content, bytes) else content.encode())

    def check(self) -> None:
        """Search everything; there is something of each kind to search."""
        assert all(self.written.values()), [where for where, content in self.written.items() if not content]
        leaking = {where: content[:2000] for where, content in self.written.items() if leaks(content)}
        assert not leaking, leaking


def test_every_secret_is_in_the_walk() -> None:
    """A new secret option is given a value here, or a reason."""
    secret = {option.name for option in OPTIONS if option.secret}
    assert secret <= GIVEN.keys() | ELSEWHERE
    assert all(leaks(json.dumps(variables).encode()) for variables in GIVEN.values())


# ---- a process

ECHOES = (
    Reply(500, TOKEN.encode(), {"Retry-After": TOKEN}),
    Reply(401, TOKEN.encode(), {"WWW-Authenticate": TOKEN}),
    Reply(403, TOKEN.encode(), {"Content-Type": "text/html"}),
    Reply(404, TOKEN.encode()),
    Reply(429, b"", {"Retry-After": TOKEN}),
    Reply(302, b"", {"Location": f"http://127.0.0.2:9/{TOKEN}"}),
    Reply(302, b"", {"Location": f"http://{quote(TOKEN, safe='')}@127.0.0.2:9/?token={quote(TOKEN, safe='')}"}),
    Reply(200, TOKEN.encode(), {"Content-Type": TOKEN, "ETag": TOKEN}),
    Reply(200, TOKEN.encode(), {"Content-Encoding": TOKEN}),
    Reply(200, json.dumps({"features": TOKEN}).encode()),
    Reply(200, b'{"features": [{"name": "' + TOKEN.encode()),
)
"""What an upstream answers that repeats the token it was sent."""
ODD: tuple[dict[str, object], ...] = (
    {"parameters": {"userIds": [TOKEN]}},
    {"constraints": [{"contextName": "userId", "operator": "IN", "values": TOKEN}]},
    {"constraints": [{"contextName": "userId", "operator": "REGEX", "value": f"({TOKEN}"}]},
    {"segments": [TOKEN]},
)
MALFORMED = [
    *(TOKEN, {"name": TOKEN, "enabled": TOKEN}, {"name": "a", "enabled": True, "strategies": TOKEN}),
    *({"name": f"b{at}", "enabled": True, "strategies": [{"name": "userWithId"} | odd]} for at, odd in enumerate(ODD)),
]
SEGMENTS = [TOKEN, {"id": TOKEN, "constraints": TOKEN}, {"id": 1, "constraints": [TOKEN]}]
LEFT_OUT = Reply(200, json.dumps({"features": MALFORMED, "segments": SEGMENTS}).encode())
"""A document with the token in it, where a user could be: it is stored unchanged, and its problems are logged by place."""
ASKED: tuple[tuple[str, str, dict[str, str], object], ...] = (
    ("GET", "/proxy", {"Authorization": CLIENT}, None),
    ("GET", "/proxy", {"Authorization": SERVER}, None),
    ("GET", "/proxy", {"Authorization": f"Bearer {CLIENT}"}, None),
    ("GET", f"/proxy?userId={CLIENT}&key={OTHER}&properties[a]={SERVER}", {}, None),
    ("GET", f"/proxy/{TOKEN}", {}, None),
    ("GET", f"/{CLIENT}", {"Authorization": CLIENT}, None),
    ("DELETE", "/proxy", {"Authorization": OTHER, "Cookie": CLIENT, "Referer": f"https://x/{CLIENT}"}, None),
    ("GET", "/proxy/client/features", {"Authorization": CLIENT}, None),
    ("GET", "/proxy/client/features", {"Authorization": SERVER}, None),
    ("POST", "/proxy", {"Authorization": CLIENT}, {"toggles": [CLIENT, TOKEN], "context": {"userId": SERVER}}),
    ("POST", "/proxy", {"Authorization": CLIENT}, {"toggles": {CLIENT: SERVER}}),
    ("POST", "/proxy", {"Authorization": CLIENT, "Content-Type": SERVER}, {}),
    ("POST", "/proxy", {"Authorization": CLIENT}, CLIENT.encode()),
    ("POST", "/proxy/client/metrics", {"Authorization": CLIENT}, {"appName": CLIENT, "instanceId": SERVER, "bucket": TOKEN}),
    ("POST", "/proxy/client/register", {"Authorization": SERVER}, {"appName": CLIENT, "interval": SERVER}),
    ("OPTIONS", "/proxy", {"Origin": f"https://{CLIENT}", "Access-Control-Request-Headers": CLIENT}, None),
)
"""What callers send: their keys where they belong, and everywhere else."""
QUIET = ("/nowhere", *(row.path for row in ROUTES))
"""What is asked without a key, so that nothing of an answer can have come from the question."""
DOCUMENT = {"version": 2, "features": [{"name": "plain", "enabled": True, "strategies": [{"name": "raising"}]}]}
RAISING = f"""
class Raising:
    name = "raising"

    def is_enabled(self, parameters, context):
        raise ValueError("{TOKEN} {CLIENT}")

strategies = [Raising()]
"""


@pytest.mark.parametrize(("number", "as_json"), [("1", "false"), ("2", "true")], ids=["one process", "workers"])
def test_a_process_shows_none(upstream: FakeUpstream, as_json: str, number: str, tmp_path: Path) -> None:
    """No secret is in its most detailed log, in a page, in storage, or in its command line."""
    outputs = Outputs()
    (tmp_path / "code.py").write_text(RAISING)
    env = {
        **ENVIRONMENT,
        "UNLEASH_API_TOKEN": "",
        "UNLEASH_PROXY_CLIENT_KEYS": "",
        "LOG_LEVEL": "debug",
        "JSON_LOGGER": as_json,
        "FLAGSVC_ACCESS_LOG": "true",
        "ENABLE_OAS": "true",
        "FLAGSVC_WORKERS": number,
        "FLAGSVC_FETCH_INTERVAL": "20",
        "FLAGSVC_METRICS_INTERVAL": "20",
        "FLAGSVC_STORAGE": (tmp_path / "state").as_uri(),
        "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(tmp_path / "code.py"),
    }
    with our_proxy(upstream.url, **env) as proxy:
        busy(proxy, outputs)
        for reply in (*ECHOES, LEFT_OUT):
            if reply is LEFT_OUT:
                take_files(tmp_path / "state", outputs)
            upstream.replies |= {FEATURES: reply, METRICS: reply, REGISTER: reply}
            upstream.forget()
            busy(proxy, outputs)
            upstream.wait(lambda: len(upstream.received(FEATURES)) > 1)
        for pid in (proxy.program.process.pid, *workers(proxy)):
            outputs.take("command lines", Path(f"/proc/{pid}/cmdline").read_bytes())
        upstream.replies.clear()
        assert proxy.program.stop() == 0
        outputs.take("log", proxy.program.output())
    outputs.check()
    for event in (b"could not be fetched", b"a custom strategy raised", b"left out"):
        assert event in outputs.written["log"]


def take_files(folder: Path, outputs: Outputs) -> None:
    """Record the names and the contents of stored files."""
    for path in folder.rglob("*"):
        outputs.take("storage", path.name)
        with suppress(FileNotFoundError, IsADirectoryError):  # the proxy goes on storing
            outputs.take("storage", path.read_bytes())


def busy(proxy: Proxy, outputs: Outputs) -> None:
    """Send all requests, and record the answers to those without a secret."""
    base = proxy.url.removesuffix("/proxy")
    for method, target, headers, body in ASKED:
        ask(base + target, method=method, headers=headers, body=body)
    for path in QUIET:
        answer = ask(base + path)
        outputs.take(f"GET {path}", b"%d" % answer.status + repr(answer.headers).encode() + answer.body)


LOCK, WRONG_LOCK = f"lock{MARK}", f"wronglock{MARK}"
STORAGES = {
    "in the address": {"FLAGSVC_STORAGE": f"redis://keeper{MARK}:keeps{MARK}@127.0.0.1:9/0"},
    "beside it": {"FLAGSVC_STORAGE": "redis://127.0.0.1:9/0", "FLAGSVC_STORAGE_PASSWORD": f"keeps{MARK}"},
    "over TLS": {"FLAGSVC_STORAGE": f"rediss://:keeps{MARK}@127.0.0.1:9/0"},
}
"""A server that is away, and the password for it."""


@pytest.mark.parametrize("storage", STORAGES.values(), ids=STORAGES)
def test_passwords_of_keys_and_of_storage(upstream: FakeUpstream, storage: dict[str, str], tmp_path: Path) -> None:
    """No password is shown, neither when it works nor when the storage is away or the key has another password."""
    outputs, pair = Outputs(), Authority().issue()
    cert, key = written(tmp_path, "cert.pem", pair.cert), written(tmp_path, "key.pem", pair.locked(LOCK))
    env = {
        **storage,
        "LOG_LEVEL": "debug",
        "FLAGSVC_TLS_CERT": cert,
        "FLAGSVC_TLS_KEY": key,
        "FLAGSVC_TLS_KEY_PASSWORD": LOCK,
        "FLAGSVC_UPSTREAM_CERT": cert,
        "FLAGSVC_UPSTREAM_KEY": key,
        "FLAGSVC_UPSTREAM_KEY_PASSWORD": LOCK,
    }
    with our_proxy(upstream.url, wait_ready=False, **env) as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
        assert proxy.program.stop() == 0
        outputs.take("log", proxy.program.output())
    for name in ("FLAGSVC_TLS_KEY_PASSWORD", "FLAGSVC_UPSTREAM_KEY_PASSWORD"):
        with our_proxy(upstream.url, wait_ready=False, **env | {name: WRONG_LOCK}) as proxy:
            proxy.program.process.wait(30)
            outputs.take(name, proxy.program.output())
            assert proxy.program.process.returncode == 2 and "Traceback" not in proxy.program.output()
    outputs.check()


# ---- commands

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("config",),
    ("config", "--json"),
    ("config", "--docs"),
    ("config", "--port", "x"),
    ("proxy", "--help"),
    ("proxy", "--port", "x"),
    ("proxy", "--custom-strategies", "/no/such.py"),
    ("health",),
    ("evaluate", "/no/such/document"),
    ("--version",),
)
URL = f"http://upuser{MARK}:uppass{MARK}@127.0.0.1:9/api"
BROKEN_URLS = (
    f"http://upuser{MARK}:uppass{MARK}@",
    f"http://upuser{MARK}:uppass{MARK}@[::1",
    f"http://upuser{MARK}:uppass{MARK}@host:99999/api",
    f"ftp://upuser{MARK}:uppass{MARK}@host/api",
    f"http://host/api?token={MARK}#{MARK}",
    f"upuser{MARK}:uppass{MARK}@host",
    f"redis://user{MARK}:pass{MARK}@host:99999/x",
    f"redis://user{MARK}:pass{MARK}@[",
)
BROKEN_SECRETS = (f"{MARK}\n{MARK}", f"{MARK}\x00", f"\x7f{MARK}", f"ключ-{MARK}", f"{MARK}\udcff", f" , {MARK}\r")


def shown(called: Called) -> bytes:
    """Return all that a command printed."""
    return (called.out + called.err).encode("utf-8", "backslashreplace") or b"nothing"


def test_commands_show_none(tmp_path: Path) -> None:
    """Secrets are masked in valid and in invalid configurations."""
    commands, outputs = CommandFolder(tmp_path), Outputs()
    for arguments in COMMANDS:
        for env in (ENVIRONMENT, ENVIRONMENT | {"FLAGSVC_URL": URL}):
            given = env | {"PORT": "1"} if arguments == ("health",) else env
            outputs.take(" ".join(arguments), shown(commands.call(arguments, given)))
    outputs.check()
    assert b"***" in outputs.written["config"]


def test_a_broken_value_is_not_quoted(tmp_path: Path) -> None:
    """The error about a refused secret, or an address with credentials, has the reason, not the value."""
    commands, outputs = CommandFolder(tmp_path), Outputs()
    names = sorted(variable.name for option in OPTIONS if option.secret for variable in option.variables if not variable.holds_path)
    addresses = ("FLAGSVC_URL", "EXP_BOOTSTRAP_URL", "HTTP_PROXY", "HTTPS_PROXY", "FLAGSVC_STORAGE")
    for name in names:
        for value in BROKEN_SECRETS:
            (tmp_path / "secret").write_bytes(value.encode("utf-8", "surrogateescape"))
            if "\0" not in value:
                outputs.take(name, shown(commands.call(["config"], ENVIRONMENT | {"FLAGSVC_URL": URL, name: value})))
            from_file = {key: text for key, text in ENVIRONMENT.items() if key != name}
            from_file |= {"FLAGSVC_URL": URL, f"{name}_FILE": str(tmp_path / "secret")}
            outputs.take(f"{name}_FILE", shown(commands.call(["config"], from_file)))
    for name in addresses:
        for value in BROKEN_URLS:
            outputs.take(name, shown(commands.call(["config"], ENVIRONMENT | {"FLAGSVC_URL": URL} | {name: value})))
            outputs.take(name, shown(commands.call(["proxy", "--port", "x"], ENVIRONMENT | {"FLAGSVC_URL": URL} | {name: value})))
    outputs.check()


# ---- objects


def test_objects_show_none() -> None:
    """The repr of options and of objects made from them has no secret, because it appears in tracebacks."""
    outputs = Outputs()
    options = load(ENVIRONMENT | {"FLAGSVC_URL": URL}, None, {}).options
    setup = make_setup(options)
    runtime = ProxyRuntime(setup)
    world = only(runtime)
    [environment] = generations = runtime.generations
    made = (runtime, generations, generations.current, environment, environment.service)
    for each in (options, setup, create_app(options), *made, world, world.upstream, world.poller):
        outputs.take(type(each).__name__, repr(each) + str(each) + f"{each}")
        for name, part in getattr(each, "__dict__", {}).items():
            if not isinstance(part, str | tuple | list):
                outputs.take(f"{type(each).__name__}.{name}", repr(part) or "-")
    outputs.check()


WRONG: tuple[dict[str, object], ...] = (
    {"client_keys": [CLIENT, 7]},
    {"client_keys": {CLIENT: 1}},
    {"flagsvc_api_token": TOKEN.encode()},
    {"flagsvc_api_token": f"{TOKEN}\x01x"},
    {"flagsvc_url": BROKEN_URLS[2]},
    {"http_proxy": BROKEN_URLS[1]},
    {"exp_bootstrap": {"url": BROKEN_URLS[0]}},
    {"exp_bootstrap": {"url": URL, "urlHeaders": {"Authorization": [TOKEN]}}},
)
"""Options that are refused in code, with secrets in them."""


def test_refusals_in_code_show_none() -> None:
    """The traceback of options that are refused in code holds none of them, nor do the variables of its frames."""
    outputs = Outputs()
    for wrong in WRONG:
        given = {"flagsvc_url": URL, "flagsvc_api_token": TOKEN, "client_keys": [CLIENT], **wrong}
        with pytest.raises(ConfigurationError) as raised:
            ProxyOptions(**given)  # type: ignore[arg-type]
        outputs.take(str(wrong.keys()), "".join(traceback.format_exception(raised.value)))
        assert not tracebacks.leaks(raised.value, [MARK])
    outputs.check()
