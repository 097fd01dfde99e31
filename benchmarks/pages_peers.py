"""What our pages and those of the real server take: the first page, and four tasks of a person.

`python benchmarks/pages_peers.py [--rounds 10]` runs both servers with the same flags, and Chromium at their pages by turns. The
real server comes from npm by its name when it is first needed; node, PostgreSQL and Chromium must be installed. The person is a
script that clicks as soon as the target is at rest and can be hit, and writes as soon as the focus is in a field.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

from harness import machine  # noqa: E402
from harness.load import BenchError  # noqa: E402
from harness.page_tasks import (  # noqa: E402
    ASKED,
    COPIED,
    COPY,
    CREATE,
    CREATED,
    NAMES,
    OUR_TASKS,
    SWITCHED,
    THEIR_TASKS,
    WHY,
    WORDS,
    Click,
    Task,
    Write,
)
from support import peers  # noqa: E402
from support.browser import Browser, browser  # noqa: E402
from support.flagservers import USER_SECRET, our_flag_server  # noqa: E402
from support.person import Person  # noqa: E402
from support.processes import ADMIN_TOKEN, FIRST_USER, ask, our_proxy, postgresql, unleash_server  # noqa: E402
from support.waiting import wait_until  # noqa: E402

FEATURES = "/projects/default/features"
LEAVES_OUT_7 = [{"contextName": "userId", "operator": "IN", "values": ["1", "2", "3"]}]
WAIT_S, QUIET_S, LOOK_S, REST_S = 30.0, 1.5, 0.002, 0.02
SCREENS = {False: (1440, 900), True: (390, 844)}
"""Width and height of the page; True is a phone."""
FETCH_MS = 1000
"""Milliseconds between the polls of the proxy at which a change arrives."""
PLACE = """(() => { %s const found = %s;
  if (!found || found.disabled) return null;
  found.scrollIntoView({block: "center", behavior: "instant"});
  const box = found.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  return found.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})()"""
"""Where an element can be hit; null where it is not there, or something else covers it."""
WRITES = "document.activeElement?.matches('input, textarea, [contenteditable=true]') ?? false"


@dataclass
class Site:
    """A server with pages: its address, the path of its list of flags, its tasks, and the header that its admin API takes."""

    name: str
    root: str
    listed: str
    shown: str
    tasks: tuple[Task, ...]
    token: str

    def admin(self, path: str, body: Any = None, method: str = "") -> Any:
        """Call the admin API and return the answer. Raises BenchError for other statuses than success."""
        verb = method or ("GET" if body is None else "POST")
        answer = ask(f"{self.root}/api/admin{path}", method=verb, headers={"Authorization": self.token}, body=body)
        if answer.status >= 300:
            raise BenchError(f"{verb} {path} answers {answer.status}: {answer.text}")
        return answer.json() if answer.body else None

    def prepare(self) -> None:
        """Bring the flags of the tasks back to where the tasks begin."""
        place = f"{FEATURES}/{COPIED}/environments/production"
        self.admin(f"{FEATURES}/{SWITCHED}/environments/production/on", {})
        for each in self.admin(f"{place}/strategies"):
            self.admin(f"{place}/strategies/{each['id']}", method="DELETE")
        self.admin(f"{place}/off", {})
        if any(each["name"] == CREATED for each in self.admin(FEATURES)["features"]):
            self.admin(f"{FEATURES}/{CREATED}", method="DELETE")
            self.admin(f"/archive/{CREATED}", method="DELETE")

    def is_done(self, title: str) -> bool:
        """Return whether the server has what a task changes."""
        name = {CREATE: CREATED, COPY: COPIED}.get(title, SWITCHED)
        state = self.admin(f"{FEATURES}/{name}/environments/production")
        if title == CREATE:
            [strategy] = state["strategies"]
            [constraint] = strategy["constraints"]
            wanted = ("25", "country", ["DE"])
            return state["enabled"] is True and wanted == (
                strategy["parameters"]["rollout"],
                constraint["contextName"],
                constraint["values"],
            )
        if title == COPY:
            return bool(state["enabled"] and state["strategies"][0]["constraints"][0]["values"] == ["1", "2", "3"])
        return title == WHY or not state["enabled"]


@dataclass
class Figures:
    """What was measured in each round: seconds, requests, bytes, pages loaded, and the foreign hosts that were asked."""

    seconds: list[float] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)

    def take(self, page: Browser, seconds: float, root: str) -> None:
        """Add a round, from the events since it began."""
        asked = [each for each in page.requested() if each.startswith("http")]
        self.seconds.append(seconds)
        self.requests.append(len(asked))
        self.received.append(sum(int(each["encodedDataLength"]) for each in page.told("Network.loadingFinished")))
        self.loads.append(len(page.told("Page.loadEventFired")))
        self.foreign |= {urlsplit(each).netloc for each in asked} - {urlsplit(root).netloc}


def look(page: Browser, script: str) -> Any:
    """Return what a script says, None while the page is between two documents, or what the script needs is not there."""
    asked = {"expression": script, "returnByValue": True}
    try:
        return page.call("Runtime.evaluate", **asked)["result"].get("value")
    except AssertionError as error:
        if "context" not in str(error):
            raise
        return None


def wait_for(page: Browser, script: str) -> Any:
    """Return what a script says as soon as it says something true. Raises BenchError."""
    end = time.monotonic() + WAIT_S
    while not (found := look(page, script)):
        if time.monotonic() > end:
            raise BenchError(f"the page does not come to `{script}`")
        time.sleep(LOOK_S)
    return found


def settle(page: Browser) -> None:
    """Wait until no request was sent for a while."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_S:
        look(page, "0")
        if len(page.events) != seen:
            now = len(page.requested())
            since = time.monotonic() if now != seen else since
            seen = now
        time.sleep(0.02)


def do(page: Browser, step: Click | Write) -> None:
    """Do a step as soon as it can be done."""
    if step.target:
        press(page, step.target)
    if isinstance(step, Write):
        wait_for(page, WRITES)
        if step.target:
            look(page, "document.activeElement.select()")
        page.call("Input.insertText", text=step.text)


def press(page: Browser, target: str) -> None:
    """Click on what a script finds as soon as it is at rest, and can be hit."""
    place: list[float] | None = None
    while (found := wait_for(page, PLACE % (WORDS, target))) != place:  # it still moves
        place = found
        time.sleep(REST_S)
    x, y = found
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def visit(page: Browser, site: Site, figures: Figures) -> None:
    """Load the list of flags with an empty cache."""
    page.go("about:blank")
    page.call("Network.clearBrowserCache")
    page.events.clear()
    begun = time.perf_counter()
    page.call("Page.navigate", url=site.root + site.listed)
    wait_for(page, f"document.body?.innerText.includes('{NAMES[0]}') && {site.shown}")
    seconds = time.perf_counter() - begun
    settle(page)
    figures.take(page, seconds, site.root)


def perform(page: Browser, site: Site, task: Task, figures: Figures) -> None:
    """Do a task, from the list of flags on. Raises BenchError if it did not do what it should."""
    site.prepare()
    set_screen(page, phone=task.phone)
    page.go(site.root + site.listed)
    page.run("localStorage.clear()")  # the real pages remember there what was tried last
    page.go(site.root + site.listed)
    wait_for(page, f"document.body?.innerText.includes('{NAMES[0]}') && {site.shown}")
    settle(page)
    page.events.clear()
    begun = time.perf_counter()
    for step in task.steps:
        do(page, step)
    wait_for(page, f"(() => {{ {WORDS} return {task.done}; }})()")
    seconds = time.perf_counter() - begun
    settle(page)
    figures.take(page, seconds, site.root)
    wait_until(lambda: site.is_done(task.title), WAIT_S)
    set_screen(page, phone=False)


def set_screen(page: Browser, *, phone: bool) -> None:
    width, height = SCREENS[phone]
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)


def fill(site: Site) -> None:
    """Make the flags. All are on in both environments, except the flag to copy."""
    site.admin("/context", {"name": "country"})
    for name in NAMES:
        site.admin(FEATURES, {"name": name, "type": "release", "description": "a flag of the benchmark"})
        parameters = {"rollout": "100", "stickiness": "userId", "groupId": name}
        constraints = LEAVES_OUT_7 if name in (ASKED, COPIED) else []
        strategy = {"name": "flexibleRollout", "parameters": parameters, "constraints": constraints}
        for environment in ("development", "production")[: 1 if name == COPIED else 2]:
            place = f"{FEATURES}/{name}/environments/{environment}"
            site.admin(f"{place}/strategies", strategy)
            site.admin(f"{place}/on", {})


@contextmanager
def our_site(page: Browser) -> Iterator[Site]:
    """Run our flag server on SQLite, with a proxy that polls it, and a browser that is signed in."""
    with ExitStack() as running, our_flag_server() as server:
        site = Site("flagsvc", server.root, "/ui/flags", "true", OUR_TASKS, USER_SECRET)
        fill(site)
        token = {"tokenName": "proxy", "type": "client", "environment": "production", "projects": ["*"]}
        secret = site.admin("/api-tokens", token)["secret"]
        running.enter_context(our_proxy(server.url, UNLEASH_API_TOKEN=secret, FLAGSVC_FETCH_INTERVAL=str(FETCH_MS)))
        person = Person(page, "pointer")
        person.go(f"{site.root}/ui/sign-in")
        person.fill("#token", USER_SECRET)
        person.follow("main form button")
        yield site


@contextmanager
def their_site(page: Browser) -> Iterator[Site]:
    """Run the real server on PostgreSQL, with a browser that is signed in and has closed the welcome."""
    with postgresql() as url, unleash_server(url) as server:
        root = server.url.removesuffix("/api")
        shown = "!document.querySelector('[data-loading=true]')?.matches('.skeleton')"
        site = Site(f"unleash-server {version()}", root, "/projects/default", shown, THEIR_TASKS, ADMIN_TOKEN)
        fill(site)
        page.go(f"{root}/login")
        for name, text in zip(("username", "password"), FIRST_USER.values(), strict=True):
            do(page, Click(f"one('input[name={name}]')"))
            do(page, Write(text))
        do(page, Click("one('button[type=submit]')"))
        do(page, Click("said('button', \"Got it, let's get started!\")"))
        settle(page)
        yield site


def version() -> str:
    """Return the version of the real server."""
    return str(json.loads((peers.package("unleash-server", "server") / "package.json").read_text())["version"])


def table(titles: str, rows: Sequence[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    print(f"\n| {titles} |\n|{'|'.join(['---'] * (titles.count('|') + 1))}|")
    for each in rows:
        print(f"| {' | '.join(map(str, each))} |", flush=True)


def medians(figures: Figures) -> tuple[str, str, str, str]:
    """Return requests, bytes and seconds of the middle round, and the shortest and longest seconds."""
    requests, received = statistics.median(figures.requests), statistics.median(figures.received)
    shortest, longest = min(figures.seconds), max(figures.seconds)
    return (
        f"{requests:.0f}",
        f"{received:,.0f}",
        f"{statistics.median(figures.seconds):.2f}",
        f"{shortest:.2f}–{longest:.2f}",
    )


def measure(page: Browser, sites: Sequence[Site], rounds: int) -> None:
    """Measure by turns, and print the tables."""
    first = {site.name: Figures() for site in sites}
    tasks = {(task.title, site.name): Figures() for site in sites for task in site.tasks}
    for _ in range(rounds):
        for site in sites:
            visit(page, site, first[site.name])
            for task in site.tasks:
                perform(page, site, task, tasks[task.title, site.name])
    table(
        "first page, nothing cached | requests | bytes | seconds until the flags are there | shortest–longest | other hosts",
        [(name, *medians(each), ", ".join(sorted(each.foreign)) or "none") for name, each in first.items()],
    )
    table(
        "task | pages | clicks | fields | pages loaded | requests | bytes | seconds | shortest–longest",
        [
            (
                task.title,
                site.name,
                sum(isinstance(step, Click) for step in task.steps),
                sum(isinstance(step, Write) for step in task.steps),
                f"{statistics.median(tasks[task.title, site.name].loads):.0f}",
                *medians(tasks[task.title, site.name]),
            )
            for at in range(len(OUR_TASKS))
            for site in sites
            for task in site.tasks[at : at + 1]
        ],
    )


def main() -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    with browser() as page, our_site(page) as ours, their_site(page) as theirs:
        set_screen(page, phone=False)
        known = machine.about(datetime.datetime.now(datetime.UTC))
        known["versions"] = {name: known["versions"][name] for name in ("Python", "flagsvc")}
        known["versions"] |= {
            "unleash-server": version(),
            "Chromium": page.call("Browser.getVersion")["product"].partition("/")[2],
        }
        print("\n".join(machine.facts(known)), flush=True)
        measure(page, (ours, theirs), args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
