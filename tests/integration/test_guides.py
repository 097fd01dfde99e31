"""The commands and programs of docs/how-to, run as a reader runs them. `pages/test_pages_browser.py` has the first day's clicks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.extras import install_command
from flagsvc.server.webhooks.sender import make_body
from support import fake_upstream, needs, peers, processes
from support.flagservers import BACKEND_SECRET, USER_SECRET, OurFlagServer, our_flag_server
from support.guides import HERE, block, blocks, run
from support.processes import Program, ask, free_port, running
from support.receivers import ADDONS
from support.scene import document, toggle
from support.waiting import wait_until

PAGE = "first-day.md"
STRATEGY = {"name": "flexibleRollout", "parameters": {"rollout": "25"}}
PAGE_OF_MOVING = processes.ROOT / "docs" / "how-to" / "move-flags-between-servers.md"
OLD, NEW = "https://old.example.com", "https://new.example.com"
FENCE = re.compile(r"^```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOVED: dict[str, Any] = {
    "features": [{"name": "dark-mode", "description": "night"}, {"name": "new-checkout"}],
    "featureStrategies": [{"name": "default", "featureName": "new-checkout"}],
    "featureEnvironments": [{"name": "new-checkout", "featureName": "new-checkout", "enabled": True}],
    "tagTypes": [],
}


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """The service sees the flag for some users, for none after the switch in the terminal, and the backup has it."""
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        secret = server.first_secrets(tmp_path / "flags.db").token
        variables = {"FLAGSVC_DATABASE_URL": str(tmp_path / "flags.db")}
        assert "/ui/sign-in#" in run(block(PAGE, "sign-in-link"), tmp_path, variables)
        flag = "/admin/projects/default/features"  # what the page does in the browser
        for path, body in (
            (flag, {"name": "new-checkout"}),
            (f"{flag}/new-checkout/environments/development/strategies", STRATEGY),
            (f"{flag}/new-checkout/environments/development/on", {}),
        ):
            assert server.ask("POST", path, body, token=secret).status < 300
        create, _, install = block(PAGE, "token create billing").partition("pip install")
        assert install == " UnleashClient\n"
        run(create, tmp_path, variables)
        (tmp_path / "service.py").write_text(block(PAGE, "UnleashClient(", "python").replace(HERE, server.root))
        service = partial(run, "python service.py\n", tmp_path, variables)
        assert "python service.py\n" in blocks(PAGE, "sh")
        some = service()
        assert some == block(PAGE, "is on for", "text")
        told = run(block(PAGE, "token create laptop").replace(HERE, server.root), tmp_path, variables)
        assert "new-checkout is on for []" in told and "25 %" in told
        assert service() == some
        run(block(PAGE, "server backup"), tmp_path, variables)
        assert (tmp_path / "first-day.backup").stat().st_mode & 0o777 == 0o600


PAGE_OF_UPGRADES = "back-up-and-upgrade.md"
POSTGRESQL = "postgresql://flags@db/flags"


def names(server: OurFlagServer) -> list[str]:
    """Return the flags that a service gets."""
    answer = server.ask("GET", "/client/features", token=BACKEND_SECRET)
    return [each["name"] for each in answer.json()["features"]]


@pytest.mark.long
@pytest.mark.programs
def test_the_commands_of_backups(tmp_path: Path, postgresql_url: str) -> None:
    """Back up, try, restore while the server runs, go back to a former version's database, and move to PostgreSQL."""
    variables = {"FLAGSVC_DATABASE_URL": str(tmp_path / "flags.db")}
    with our_flag_server(folder=tmp_path) as server:
        server.admin("/projects/default/features", {"name": "kept"})
        run(block(PAGE_OF_UPGRADES, "# a new file"), tmp_path, variables)
        assert "boss" in run(block(PAGE_OF_UPGRADES, "tried.db"), tmp_path, variables)
        server.admin("/projects/default/features", {"name": "later"})
        assert names(server) == ["kept", "later"]
        run(block(PAGE_OF_UPGRADES, "restore flags.backup --replace"), tmp_path, variables)
        wait_until(lambda: names(server) == ["kept"])
        install, _, backup = block(PAGE_OF_UPGRADES, "before-upgrade.backup\n").strip().partition("\n")
        assert install == install_command("server,cli").replace("install", "install --upgrade")
        run(backup, tmp_path, variables)
        run(block(PAGE_OF_UPGRADES, "flags-again.db"), tmp_path, variables)
    run(block(PAGE_OF_UPGRADES, POSTGRESQL).replace(POSTGRESQL, postgresql_url), tmp_path, {})
    for database in (str(tmp_path / "flags-again.db"), postgresql_url):
        with our_flag_server(database=database, seeded=False, folder=tmp_path) as server:
            assert names(server) == ["kept"]
    assert len(blocks(PAGE_OF_UPGRADES, "sh")) == 6


@pytest.mark.programs
def test_two_servers_on_one_database(tmp_path: Path, postgresql_url: str) -> None:
    """A change on one is on the other within a second or so, with the same entity tag; each is ready."""
    assert block("several-servers.md", "--port 4243").count("flagsvc server --port") == 2
    (tmp_path / "second").mkdir()
    with (
        our_flag_server(database=postgresql_url, folder=tmp_path) as first,
        our_flag_server(database=postgresql_url, folder=tmp_path / "second") as second,
    ):
        first.admin("/projects/default/features", {"name": "shared"})
        wait_until(lambda: names(second) == ["shared"])
        tags = {each.ask("GET", "/client/features", token=BACKEND_SECRET).headers["etag"] for each in (first, second)}
        assert len(tags) == 1


PAGE_OF_SDKS = "connect-an-sdk.md"
DOCUMENT = document(toggle("new-checkout", ("region", "eu"), variants=[{"name": "green", "weight": 1000}]))


@pytest.fixture(scope="module")
def proxy() -> Iterator[processes.Proxy]:
    """Give our proxy with the keys that the page names."""
    keys = {"UNLEASH_PROXY_CLIENT_KEYS": "web-app", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": "server-token"}
    with fake_upstream.fake_upstream(DOCUMENT) as upstream, processes.our_proxy(upstream.url, **keys) as found:
        yield found


def here(text: str, proxy: processes.Proxy) -> str:
    """Return a program of the page with the address of our proxy."""
    assert "https://flags.example.com/" in text
    return text.replace("https://flags.example.com/", proxy.url.removesuffix("proxy"))


@pytest.mark.parametrize("package", ["unleash-proxy-client", "unleash-client"])
def test_javascript(package: str, proxy: processes.Proxy) -> None:
    """The SDKs for browsers and for services print that the flag is on for the page's context."""
    modules = Path(peers.package(package)).parent
    with processes.scratch() as folder:
        (folder / "node_modules").symlink_to(modules)
        (folder / "program.mjs").write_text(here(block(PAGE_OF_SDKS, f"'{package}'", "js"), proxy))
        with processes.running("sdk", [peers.node(), "program.mjs"], env={}, folder=folder) as program:
            program.wait(lambda: "new-checkout: true" in program.output(), "told")
            if package == "unleash-proxy-client":
                program.wait(lambda: "variant: green" in program.output(), "told of the variant")


def test_python(proxy: processes.Proxy) -> None:
    """The Python SDK prints the same, and the program ends."""
    with processes.scratch() as folder:
        (folder / "program.py").write_text(here(block(PAGE_OF_SDKS, "import UnleashClient", "python"), proxy))
        with processes.running("sdk", [sys.executable, "program.py"], env={}, folder=folder) as program:
            program.wait(lambda: "new-checkout: True" in program.output(), "told")
            assert program.process.wait(30) == 0


@pytest.mark.parametrize("mark", ["-g", "toggles"])
def test_shell(mark: str, proxy: processes.Proxy) -> None:
    """Both commands are answered with the flag, on and with its variant."""
    needs.program("curl")
    command = here(block(PAGE_OF_SDKS, f"curl {mark}" if mark == "-g" else mark), proxy)
    told = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, timeout=30, check=True).stdout
    assert '"name":"new-checkout","enabled":true,"variant":{"name":"green"' in told


PAGE_OF_SERVERS = "run-the-flag-server.md"
ADMIN = "user:change-me"


def test_the_tokens_of_the_page(tmp_path: Path) -> None:
    """A proxy that looks tokens up hears what they open: the tokens of the seed, and the token that the command creates."""
    seed = tmp_path / "flags.yaml"
    seed.write_text(block(PAGE_OF_SERVERS, "tokens:", "yaml"))
    with our_flag_server("--seed", str(seed), seeded=False, folder=tmp_path) as server:
        command = block(PAGE_OF_SERVERS, "api-tokens ").replace(HERE, server.root)
        secret = json.loads(run(command, tmp_path, {"FLAGSVC_ADMIN_TOKEN": ADMIN}))["secret"]
        tokens = ["shop:production.change-me", "*:production.change-me", secret]
        answer = ask(f"{server.root}/edge/validate", method="POST", body={"tokens": tokens})
        assert [(each["type"], each["environment"], each["projects"]) for each in answer.json()["tokens"]] == [
            ("frontend", "production", ["shop"]),
            ("client", "production", ["*"]),
            ("frontend", "production", ["shop"]),
        ]


SECRET = re.compile(r'"secret":"([^"]+)"')


def test_the_commands_of_the_page_of_teams(tmp_path: Path) -> None:
    """The person of the page may read, and the token of the page reads the flags of its project."""
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        first = server.first_secrets(tmp_path / "flags.db").token
        commands = "".join(blocks("set-up-a-team.md", "sh")).replace(HERE, server.root)
        person, token = SECRET.findall(run(commands, tmp_path, {"FLAGSVC_ADMIN_TOKEN": first}))
        assert server.ask("GET", "/admin/user", token=person).json()["user"]["username"] == "ben"
        feature = {"name": "shop-new-checkout"}
        made = server.ask("POST", "/admin/projects/shop/features", feature, token=first)
        assert made.status == 201, made.body
        features = json.loads(server.ask("GET", "/client/features", token=token).body)["features"]
        assert [each["name"] for each in features] == ["shop-new-checkout"]


PAGE_OF_WEBHOOKS = "webhooks.md"
ADDRESS = "http://127.0.0.1:8080/"


def printed(program: Program, text: str) -> bool:
    """Return whether the receiver has printed a text."""
    return text in program.output()


def test_the_receiver_of_the_page(tmp_path: Path) -> None:
    """It prints the test and a switched flag of production, and refuses what does not come from the server."""
    port = free_port()
    script = tmp_path / "receiver.py"
    script.write_text(block(PAGE_OF_WEBHOOKS, "class Receiver", "python").replace("8080", str(port)))
    settings = block(PAGE_OF_WEBHOOKS, "signingSecret", "json").replace(ADDRESS, f"http://127.0.0.1:{port}/")
    (tmp_path / "webhook.json").write_text(settings)
    secret = json.loads(settings)["parameters"]["signingSecret"]
    with (
        our_flag_server(folder=tmp_path) as server,
        running("receiver", [sys.executable, script], env={"WEBHOOK_SECRET": secret}, folder=tmp_path) as program,
    ):
        variables = {"FLAGSVC_ADMIN_TOKEN": USER_SECRET}
        answer = run(block(PAGE_OF_WEBHOOKS, "webhook.json").replace(HERE, server.root), tmp_path, variables)
        assert json.loads(answer)["parameters"]["signingSecret"] == "*****"
        program.wait(lambda: takes(port), "ready")
        run(block(PAGE_OF_WEBHOOKS, "/test -H").replace(HERE, server.root), tmp_path, variables)
        wait_until(lambda: printed(program, '"type":"webhook-test"'))
        server.admin("/projects/default/features", {"name": "cart"})
        for place in ("development", "production"):
            server.admin(f"/projects/default/features/cart/environments/{place}/on", method="POST")
        wait_until(lambda: printed(program, '"environment":"production"'))
        assert not printed(program, '"environment":"development"')
        states = {
            each["state"] for each in server.ask("GET", f"{ADDONS.removeprefix('/api')}/1/events").json()["integrationEvents"]
        }
        assert states <= {"success", "waiting"}
    assert len(blocks(PAGE_OF_WEBHOOKS, "sh")) == 2


def takes(port: int) -> bool:
    """Return whether the receiver answers; a request without a signature is refused."""
    headers = {"webhook-id": "some-id", "webhook-timestamp": "1750000000", "webhook-signature": "v1,AAAA"}
    try:
        return ask(f"http://127.0.0.1:{port}/", method="POST", headers=headers, body={}).status == 401
    except OSError:
        return False


def test_the_template_of_the_page() -> None:
    """It makes JSON of an event, also of one with quotes."""
    event: dict[str, Any] = {"featureName": 'a "b"', "summary": '**ada** made **a "b"**', "tags": []}
    template = block(PAGE_OF_WEBHOOKS, "{{eventMarkdown}}", "text").strip()
    found = json.loads(make_body(template, "application/json", event))
    assert found == {"text": event["summary"], "flag": event["featureName"], "all": event}


def script(old: str, new: str) -> str:
    """Return the blocks of the page as one shell script, with the addresses of running servers."""
    parts = []
    for language, text in FENCE.findall(PAGE_OF_MOVING.read_text()):
        named = re.match(r"# (\S+)\n", text)
        if language == "sh":
            parts.append(text)
        elif named is not None:
            parts.append(f"cat > {named[1]} <<'END'\n{text}END\n")
    return "".join(parts).replace(OLD, old).replace(NEW, new)


def test_the_commands_of_moving(tmp_path: Path) -> None:
    """A whole server goes from the real one to ours, then a project, then flags to the next environment, then from a file."""
    with processes.postgresql() as database, processes.unleash_server(database) as real, our_flag_server() as ours:
        root = real.url.removesuffix("/api")
        token = processes.personal_token(real)
        body = {"project": "default", "environment": "development", "data": MOVED}
        url = f"{real.url}/admin/features-batch/import"
        assert processes.ask(url, method="POST", headers={"Authorization": token}, body=body).status == 200

        env = processes.clean_environment(tmp_path)
        env |= {"OLD_TOKEN": token, "NEW_TOKEN": USER_SECRET}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", script(root, ours.root)],
            cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)
        query = {"project": "default", "environment": "production"}
        found = ours.admin("/features-batch/export", query)

    assert "moved: 2 flags into project `default`, environment `production`\n" in done.stdout
    assert "imported: 2 same\n" in done.stdout and done.stdout.endswith("imported: 1 changed\n")
    assert [(item["name"], item["description"]) for item in found["features"]] == [
        ("dark-mode", "On for everybody"),
        ("new-checkout", None),
    ]
    assert {item["name"]: item["enabled"] for item in found["featureEnvironments"]} == {"dark-mode": True, "new-checkout": True}
    assert [item["name"] for item in found["featureStrategies"]] == ["default", "default"]
    moved = json.loads((tmp_path / "flags.json").read_text())
    assert [item["name"] for item in moved["features"]] == ["dark-mode", "new-checkout"]
    assert (tmp_path / "new.token").stat().st_mode & 0o077 == 0
