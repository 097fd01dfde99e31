"""`make demo`: a flag server, flags imported into it, a proxy on top, a first answer, and the requests to go on with.

Starts `flagsvc server` on port 4242 and `flagsvc proxy` on port 3000, or the next free ones, each as a process of its own, and
runs until Ctrl-C. The flags are in an SQLite file in a temporary folder; nothing is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
KEY = "demo-key"
PROXY_TOKEN = "*:development.demo-proxy-token"  # this one and the next are in demo-seed.yaml
ADMIN_TOKEN = "user:demo-admin-token"
SDK_TOKEN = "demo-server-side-token"
PLACE = ("--project", "default", "--environment", "development")
CONTEXT = "userId=7&region=eu&appVersion=4.2.0&basket=64"
FLAG = "dark-mode"
READY_SECONDS = 30.0
STOP_SECONDS = 15.0
OURS = ("FLAGSVC_", "UNLEASH_", "EXP_", "CORS_", "PROXY_", "DATABASE_", "BASE_URI_")


class FailedError(Exception):
    """The demo cannot go on."""


def main() -> int:
    """Run the demo; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a shell may have started it with these ignored
        signal.signal(number, interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="flagsvc-demo-") as folder:
            run(Path(folder))
    except KeyboardInterrupt:
        print("\nthe demo has ended")
        return 0
    except FailedError as error:
        print(f"the demo cannot go on: {error}", file=sys.stderr)
    return 1


def interrupt(number: int, frame: FrameType | None) -> None:
    """Treat a signal to end like Ctrl-C."""
    raise KeyboardInterrupt


def run(folder: Path) -> None:
    """Start the flag server, fill it, start the proxy, tell what to try, and watch both; raises FailedError."""
    with listening("server", 4242, lambda port: server_environment(port, folder)) as (server, server_port):
        server_url = f"http://127.0.0.1:{server_port}"
        wait_ready(server, f"{server_url}/health")
        fill(server_url)
        with listening("proxy", 3000, lambda port: proxy_environment(port, server_url)) as (proxy, proxy_port):
            proxy_url = f"http://localhost:{proxy_port}/proxy"
            wait_ready(proxy, f"{proxy_url}/health")
            show(proxy_url, server_url)
            watch(server, proxy)


@contextlib.contextmanager
def listening(name: str, first: int, environment: Callable[[int], dict[str, str]]) -> Iterator[tuple[Program, int]]:
    """Run a command on the first free port from `first` on. If another program takes the port in between, try the next one.

    Raises FailedError.
    """
    for port in range(first, first + 100):
        if not is_free(port):
            continue
        with program(name, environment(port)) as started:
            if started.wait_listening():
                yield started, port
                return
        if is_free(port):
            raise FailedError(f"the {name} did not start")
    raise FailedError(f"no free port from {first} to {first + 99}")


def is_free(port: int) -> bool:
    """Return whether nobody listens on a port."""
    with contextlib.suppress(OSError), everywhere(port):
        return True
    return False


def everywhere(port: int) -> socket.socket:
    """Return a socket that listens on every address of this machine, as the proxy does."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def clean_environment() -> dict[str, str]:
    """Return this environment without options for another proxy or server, and without a grace period at the end."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return own | {"FLAGSVC_SHUTDOWN_GRACE": "0"}


def server_environment(port: int, folder: Path) -> dict[str, str]:
    """Return the environment of the flag server. Everybody knows its tokens, so only this machine reaches it."""
    return clean_environment() | {
        "FLAGSVC_SERVER_HOST": "127.0.0.1",
        "FLAGSVC_SERVER_PORT": str(port),
        "FLAGSVC_DATABASE_URL": str(folder / "flags.db"),
        "FLAGSVC_SEED": str(HERE / "demo-seed.yaml"),
    }


def proxy_environment(port: int, server_url: str) -> dict[str, str]:
    """Return the environment of the proxy: a flag that is switched is known to it a second later."""
    return clean_environment() | {
        "FLAGSVC_URL": f"{server_url}/api",
        "FLAGSVC_API_TOKEN": PROXY_TOKEN,
        "FLAGSVC_FETCH_INTERVAL": "1000",
        "FLAGSVC_METRICS_INTERVAL": "5000",
        "FLAGSVC_PROXY_CLIENT_KEYS": KEY,
        "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(HERE / "custom_strategies.py"),
        "FLAGSVC_STORAGE": "none",
        "EXP_CUSTOM_ENRICHERS_FILE": str(HERE / "enrichers.py"),
        "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": SDK_TOKEN,
        "ENABLE_ALL_ENDPOINT": "true",
        "ENABLE_OAS": "true",
        "NO_PROXY": "127.0.0.1",
        "PORT": str(port),
    }


class Program:
    """A running command of flagsvc. What it prints is passed on."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flagsvc", name],
            env=dict(environment),
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.told = threading.Event()
        self.listens = False
        self.reader = threading.Thread(target=self.pass_on, daemon=True)
        self.reader.start()

    def pass_on(self) -> None:
        """Print what the command prints, until it ends."""
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                sys.stdout.flush()
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
                if b" listening on " in line:
                    self.listens = True
                    self.told.set()
        self.told.set()

    def wait_listening(self) -> bool:
        """Return whether the command listens, as soon as it says so, or ends, or takes too long."""
        self.told.wait(READY_SECONDS)
        return self.listens

    def stop(self) -> None:
        """End the command, and wait until it has ended and all that it printed is passed on."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"the {self.name} does not end within {STOP_SECONDS:g} s, so the demo kills it", file=sys.stderr)
            self.process.kill()
            self.process.wait()
        self.reader.join()


@contextlib.contextmanager
def program(name: str, environment: Mapping[str, str]) -> Iterator[Program]:
    """Run a command of flagsvc until the block is left."""
    started = Program(name, environment)
    try:
        yield started
    finally:
        started.stop()


def wait_ready(started: Program, url: str) -> None:
    """Return when `url` answers; raises FailedError when the command ended or took too long."""
    end = time.monotonic() + READY_SECONDS
    while started.process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, OSError):
            get(url)
            return
        time.sleep(0.05)
    raise FailedError(f"the {started.name} did not become ready")


def watch(*programs: Program) -> None:
    """Wait until one of the commands ends, which nothing asked it to; raises FailedError."""
    while True:
        for each in programs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise FailedError(f"the {each.name} ended with exit code {each.process.wait(0.2)}")


def get(url: str) -> bytes:
    """Return the body of the answer to a GET with the demo's client key."""
    request = urllib.request.Request(url, headers={"Authorization": KEY})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # ignores HTTP_PROXY
    with direct.open(request, timeout=5) as response:
        return bytes(response.read())


def fill(server_url: str) -> None:
    """Import the example data set, which is validated first; raises FailedError."""
    words = ["import", str(HERE / "dataset.json"), *PLACE, "--yes"]
    environment = clean_environment() | {
        "FLAGSVC_URL": server_url,
        "FLAGSVC_ADMIN_TOKEN": ADMIN_TOKEN,
        "NO_PROXY": "127.0.0.1",
        "PYTHONIOENCODING": "utf-8",
    }
    command = [sys.executable, "-m", "flagsvc", *words]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise FailedError("the example data set was not imported")
    print(f"flagsvc {done.stdout.decode().splitlines()[-1]}", flush=True)


def show(url: str, server_url: str) -> None:
    """Print a first answer and what to try next."""
    toggles = json.loads(get(f"{url}?{CONTEXT}"))["toggles"]
    width = max(len(toggle["name"]) for toggle in toggles)
    print(f"\nThe flags of user 7 in the EU, with 64 in the basket:\n\n  GET {url}?{CONTEXT}\n")
    for toggle in toggles:
        print(f"  {toggle['name']:<{width}}  {describe(toggle['variant'])}".rstrip())
    print(f"\nAsk the proxy:\n\n{steps(of_proxy(url))}")
    print(f"Switch {FLAG} in the flag server, and ask the proxy for it a second later:\n\n{steps(switching(url, server_url))}")
    print(f"Look into the flag server:\n\n{steps(of_server(server_url))}")
    print("Ctrl-C ends it.\n", flush=True)


def describe(variant: dict[str, object]) -> str:
    """Return a variant in words, nothing for a toggle that has none."""
    if not variant["enabled"]:
        return ""
    payload = variant.get("payload")
    return f"variant {variant['name']}" + (f", {payload['value']}" if isinstance(payload, dict) else "")


def of_proxy(url: str) -> dict[str, str]:
    """Return what to ask the proxy, title → command line."""
    key = f"-H 'Authorization: {KEY}'"
    return {
        "another user, in Australia, at Christmas": f"curl {key} '{url}?userId=42&region=au&currentTime=2026-12-24'",
        "two flags by name, with a context as JSON": f"curl {key} -H 'Content-Type: application/json' {url} \\\n      "
        """-d '{"toggles": ["free-shipping", "banner-text"], "context": {"properties": {"coupon": "ship-it"}}}'""",
        "every flag, on or off": f"curl {key} {url}/all",
        "the configuration, for server-side SDKs": f"curl -H 'Authorization: {SDK_TOKEN}' {url}/client/features",
        "the API in a browser": f"{url.removesuffix('/proxy')}/docs/openapi",
    }


def switching(url: str, server_url: str) -> dict[str, str]:
    """Return how to switch a flag and see the change, title → command line."""
    flag = f"{server_url}/api/admin/projects/default/features/{FLAG}/environments/development"
    asking = f"""curl -H 'Authorization: {KEY}' -H 'Content-Type: application/json' {url} -d '{{"toggles": ["{FLAG}"]}}'"""
    return {
        "off": f"curl -X POST -H 'Authorization: {ADMIN_TOKEN}' {flag}/off",
        "what the proxy says": asking,
        "and on again": f"curl -X POST -H 'Authorization: {ADMIN_TOKEN}' {flag}/on",
    }


def of_server(server_url: str) -> dict[str, str]:
    """Return what to ask the flag server, title → command line."""
    client = f"{server_url}/api/client/features"
    return {
        "what it holds": f"curl -H 'Authorization: {ADMIN_TOKEN}' {server_url}/api/admin/projects/default/features",
        "what proxies and server-side SDKs read": f"curl -H 'Authorization: {PROXY_TOKEN}' {client}",
        "why a flag is on or off": f"{command()} evaluate {client} --token '{PROXY_TOKEN}' \\\n      "
        "--context userId=7 --toggle new-checkout --explain",
        "the flags as a file, to change and to import again": f"{command()} export {' '.join(PLACE)} \\\n      "
        f"--url {server_url} --token {ADMIN_TOKEN}",
        "its API in a browser": f"{server_url}/docs/openapi",
        f"its pages in a browser: sign in with {ADMIN_TOKEN}": f"{server_url}/ui/sign-in",
    }


def steps(lines: Mapping[str, str]) -> str:
    """Return titles and command lines as they are printed."""
    return "".join(f"  # {title}\n    {line}\n" for title, line in lines.items())


def command() -> str:
    """Return how `flagsvc` is called from here."""
    script = Path(sys.executable).with_name("flagsvc")
    return os.path.relpath(script) if script.exists() else f"{os.path.relpath(sys.executable)} -m flagsvc"


if __name__ == "__main__":
    sys.exit(main())
