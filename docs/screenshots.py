"""Takes the pictures of docs/screenshots/: pages of a flag server and of a proxy with the flags of `make demo`, in Chromium.

`make screenshots` runs it. `python docs/screenshots.py --every FOLDER` writes every page instead, at each width, in light and in
dark, to be looked at.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.browser import LOOKS, Browser, browser  # noqa: E402
from support.flagservers import OurFlagServer, our_flag_server  # noqa: E402
from support.person import Person  # noqa: E402
from support.processes import Proxy, answers, free_port, our_proxy, scratch  # noqa: E402

HERE = ROOT / "docs" / "screenshots"
EXAMPLES = ROOT / "examples"
WIDTHS = (360, 768, 1440)
TALLEST, TALLEST_KEPT = 2400, 1200
"""Pixels of the longest picture, and of the longest that is kept."""
ADA, BEN, TOKEN = "user:secret-of-ada", "user:secret-of-ben", "*:production.secret-of-the-proxy"
CALLS_A_SECOND = 20
HOURS = 24
FEATURES = "/projects/default/features"
FLAG = "new-checkout"
ROLLOUT = {"rollout": "25", "stickiness": "userId", "groupId": "checkout-2026"}
STRATEGY = {"name": "flexibleRollout", "title": "EU first", "parameters": ROLLOUT, "segments": [1], "sortOrder": 0}
CONSTRAINT = {"contextName": "tier", "operator": "IN", "values": ["gold", "platinum"]}
TEAM = {"name": "flexibleRollout", "title": "gold customers", "parameters": {**ROLLOUT, "rollout": "100"}}
MORE: dict[str, Any] = {
    "users": [{"name": "ada", "rootRole": "admin"}, {"name": "ben", "rootRole": "editor"}],
    "tokens": [
        {"type": "personal", "user": "ada", "secret": ADA},
        {"type": "personal", "user": "ben", "secret": BEN},
        {"type": "backend", "secret": TOKEN},
    ],
    "tagTypes": [{"name": "team", "description": "Who takes care of it", "color": "#1d4ed8"}],
    "contextFields": [{"name": "tier", "legalValues": [{"value": each} for each in ("basic", "gold", "platinum")]}],
}


@dataclass(frozen=True)
class Picture:
    """A page: the texts for its fields, the buttons to press in order, and the script that must then be true.

    `kept` are the looks in which the repository has it.
    """

    name: str
    path: str
    filled: dict[str, str] = field(default_factory=dict)
    pressed: tuple[str, ...] = ()
    awaited: str = "true"
    kept: tuple[tuple[str, int], ...] = ()

    def file(self, look: str, width: int) -> str:
        """Return the name of the file with the page in a look."""
        return f"{self.name}-{width}-{look}.webp"


USER_7 = {"[name=name][value=userId] + [name=value]": "7", "[name=name][value=region] + [name=value]": "eu"}
SERVER = (
    Picture("flags", "/flags", kept=(("light", 1440), ("dark", 360))),
    Picture("flag", f"/flags/{FLAG}", kept=(("light", 1440), ("light", 360))),
    Picture("switch", f"/flags/{FLAG}/production/switch"),
    Picture("strategy", "", {"[name=rollout]": "40"}, ("button[value=preview]:not(.hidden)",), kept=(("light", 768),)),
    Picture("strategy-new", f"/flags/{FLAG}/production/strategies/new"),
    Picture("try", "/try", USER_7, ("form .main", f"[name=why][value$=':{FLAG}']"), kept=(("dark", 1440),)),
    Picture("try-form", "/try"),
    Picture("history", "/history", kept=(("light", 768),)),
    Picture("compare", "/compare", kept=(("light", 1440),)),
    Picture("compare-plan", "/compare", pressed=("!input[value=gold-support]", "button[value=preview]:not(.hidden)")),
    Picture("copy", f"/flags/{FLAG}/copy", pressed=("button[value=preview]:not(.hidden)",)),
    Picture("import", "/import"),
    Picture("export", "/export"),
    Picture("flag-edit", f"/flags/{FLAG}/edit"),
    Picture("flag-variants", "/flags/search-backend/production/variants"),
    Picture("flag-parent", "/flags/express-payment/parent"),
    Picture("new-flag", "/new-flag"),
    Picture("segments", "/segments"),
    Picture("segment", "/segments/1"),
    Picture("proxies", "/proxies"),
    Picture("tokens", "/tokens"),
    Picture("token", "/tokens/2"),
    Picture("token-new", "/tokens/new"),
    Picture("settings", "/settings"),
    Picture("projects", "/projects"),
    Picture("project", "/projects/default"),
    Picture("environments", "/environments"),
    Picture("environment", "/environments/production"),
    Picture("people", "/people"),
    Picture("person", "/people/1"),
    Picture("person-new", "/people/new"),
    Picture("my-tokens", "/my-tokens"),
    Picture("sessions", "/sessions"),
    Picture("context-fields", "/context-fields"),
    Picture("context-field", "/context-fields/tier"),
    Picture("tag-types", "/tag-types"),
    Picture("tag-type", "/tag-types/team"),
    Picture("strategy-types", "/strategy-types"),
    Picture("strategy-type", "/strategy-types/openingHours"),
    Picture("nowhere", "/nowhere"),
)
DRAWN = "document.querySelector('#traffic .bars .yes') !== null"
"""The picture of the traffic has some requests."""
PROXY = (
    Picture("proxy-status", "/status", kept=(("light", 768),)),
    Picture("proxy-flags", "/flags"),
    Picture("proxy-flag", f"/flags/{FLAG}"),
    Picture("proxy-try", "/try", {"[name='field.userId']": "7", "[name=flag]": FLAG}, ("form .main",)),
    Picture("proxy-traffic", "/traffic", awaited=DRAWN, kept=(("dark", 768),)),
    Picture("proxy-changes", "/changes"),
    Picture("proxy-config", "/config"),
)


@contextmanager
def flag_server() -> Iterator[OurFlagServer]:
    """Run a flag server with the flags of the demo in both environments, and a day of usage and changes."""
    seed = yaml.safe_load((EXAMPLES / "demo-seed.yaml").read_text())
    given = {name: [*seed.get(name, ()), *MORE.get(name, ())] for name in {**seed, **MORE}}
    with scratch() as folder:
        (folder / "seed.json").write_text(json.dumps(given))
        with our_flag_server("--seed", str(folder / "seed.json"), seeded=False) as server:
            fill(server)
            yield server


def fill(server: OurFlagServer) -> None:
    """Import the flags, let two people change some, and report usage."""
    data = json.loads((EXAMPLES / "dataset.json").read_text())
    for environment in ("development", "production"):
        whole = {"project": "default", "environment": environment, "data": data}
        call(server, ADA, "POST", "/features-batch/import", whole)
    call(server, BEN, "POST", f"/features/{FLAG}/tags", {"type": "team", "value": "checkout"})
    strategies = f"{FEATURES}/{FLAG}/environments/production/strategies"
    [old] = call(server, ADA, "GET", strategies)
    call(server, BEN, "PUT", f"{strategies}/{old['id']}", STRATEGY)
    call(server, BEN, "POST", strategies, {**TEAM, "constraints": [CONSTRAINT]})
    for name in ("gold-support", "opening-hours-chat", "winter-sale"):
        call(server, BEN, "POST", f"{FEATURES}/{name}/environments/production/off")
    call(server, ADA, "POST", f"{FEATURES}/free-shipping/environments/production/off")
    report_usage(server)


def call(server: OurFlagServer, secret: str, method: str, path: str, body: Any = None) -> Any:
    """Call the admin API as one of the people and return the answer. Raises AssertionError if it is refused."""
    sent = {} if body is None and method != "GET" else body
    answer = server.ask(method, f"/admin{path}", sent, token=secret)
    assert answer.status < 300, (path, answer.status, answer.body)
    return answer.json() if answer.body else None


def report_usage(server: OurFlagServer) -> None:
    """Report usage of the last hours from two applications, more in the middle of the day."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for hour in range(HOURS):
        start = now - timedelta(hours=hour)
        busy = 40 + 30 * min(start.hour, HOURS - start.hour)
        counts = {name: {"yes": busy * share, "no": busy} for name, share in ((FLAG, 2), ("dark-mode", 5), ("eu-invoice", 1))}
        bucket = {"start": start.isoformat(), "stop": (start + timedelta(minutes=1)).isoformat(), "toggles": counts}
        for app in ("web", "ios")[: 1 + hour % 2]:
            sent = {"appName": app, "instanceId": app, "bucket": bucket}
            assert server.ask("POST", "/client/metrics", sent, token=TOKEN).status < 300


@contextmanager
def proxy_of(server: OurFlagServer) -> Iterator[str]:
    """Run a proxy on production that is asked for some users all the time; give the address of its pages."""
    port = free_port()
    env = {
        "FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{port}",
        "FLAGSVC_STORAGE": "none",
        "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(EXAMPLES / "custom_strategies.py"),
        "EXP_CUSTOM_ENRICHERS_FILE": str(EXAMPLES / "enrichers.py"),
        "UNLEASH_API_TOKEN": TOKEN,
        "UNLEASH_APP_NAME": "web-proxy",
        "UNLEASH_INSTANCE_ID": "web-1",
    }
    address = f"http://127.0.0.1:{port}/ui"
    with our_proxy(server.url, **env) as proxy:
        proxy.program.wait(lambda: answers(f"{address}/status"), "pages")
        with calling(proxy):
            yield address


@contextmanager
def calling(proxy: Proxy) -> Iterator[None]:
    """Ask a proxy for some users until the block ends."""
    ended = threading.Event()

    def call() -> None:
        for user in itertools.count():
            if ended.wait(1 / CALLS_A_SECOND):
                return
            given = {"userId": str(user), "properties": {"region": ("eu", "us")[user % 2]}}
            proxy.post("", {"toggles": [FLAG, "dark-mode", "eu-invoice"][: 1 + user % 3], "context": given})

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def sign_in(page: Browser, address: str) -> None:
    """Sign in at the flag server as ada."""
    person = Person(page, "pointer")
    person.go(f"{address}/sign-in")
    person.fill("#token", ADA)
    person.follow("main form button")


def show(page: Browser, address: str, picture: Picture, width: int) -> None:
    """Load a page at a width, write into it and press its buttons; `!` stands before what leads to no other page."""
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    person = Person(page, "pointer")
    person.go(address + picture.path)
    for selector, text in picture.filled.items():
        person.fill(selector, text)
    for selector in picture.pressed:
        if selector.startswith("!"):
            person.press(selector[1:])
        else:
            person.follow(selector)
    page.wait_for(picture.awaited)


def take(page: Browser, path: Path, width: int, tallest: int) -> None:
    """Write a picture of the page that is shown, from its top to its end, or as much as is allowed."""
    page.run("document.activeElement?.blur(); scrollTo(0, 0)")
    height = min(page.run("document.documentElement.scrollHeight"), tallest)
    page.screenshot(path, width, max(height, 400))


def take_all(page: Browser, address: str, pictures: tuple[Picture, ...], folder: Path, every: bool) -> None:
    """Take the pictures of one program: those that are kept, or every one."""
    for picture in pictures:
        for look in ("light", "dark"):
            page.call("Emulation.setEmulatedMedia", features=LOOKS[look])
            for width in WIDTHS:
                if every or (look, width) in picture.kept:
                    show(page, address, picture, width)
                    take(page, folder / picture.file(look, width), width, TALLEST if every else TALLEST_KEPT)


def main() -> int:
    """Read the options and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", metavar="FOLDER", type=Path, help="write every page, at each width and in both schemes")
    args = parser.parse_args()
    folder = args.every or HERE
    folder.mkdir(parents=True, exist_ok=True)
    with flag_server() as server, proxy_of(server) as desk, browser() as page:
        pages = f"{server.root}/ui"
        page.call("Emulation.setScrollbarsHidden", hidden=True)
        sign_in(page, pages)
        [first, *_] = call(server, ADA, "GET", f"{FEATURES}/{FLAG}/environments/production/strategies")
        edited = f"/flags/{FLAG}/production/strategies/{first['id']}"
        pictures = tuple(replace(each, path=edited) if each.name == "strategy" else each for each in SERVER)
        take_all(page, pages, pictures, folder, bool(args.every))
        take_all(page, desk, PROXY, folder, bool(args.every))
    return 0


if __name__ == "__main__":
    sys.exit(main())
