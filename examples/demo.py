"""`make demo`: a proxy on an example document, a first evaluated answer, and the requests to go on with.

Starts `flagsvc proxy` as a process of its own on port 3000 or the next free one, and runs until Ctrl-C. Nothing is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
KEY = "demo-key"
TOKEN = "demo-server-side-token"
CONTEXT = "userId=7&region=eu&appVersion=4.2.0&basket=64"
READY_SECONDS = 30.0
STOP_SECONDS = 15.0
OURS = ("FLAGSVC_", "UNLEASH_", "EXP_", "CORS_", "PROXY_")


def main() -> int:
    """Run the demo; return the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    port = free_port(3000)
    url = f"http://localhost:{port}/proxy"
    with contextlib.suppress(KeyboardInterrupt), proxy(port) as process:
        if not wait_ready(process, url):
            print("the demo proxy did not become ready", file=sys.stderr)
            return 1
        show(url)
        code = process.wait()
        print(f"the demo proxy ended with exit code {code}", file=sys.stderr)
        return 1
    print("\nthe demo proxy has ended")
    return 0


def interrupt(number: int, frame: FrameType | None) -> None:
    """Treat a signal to end like Ctrl-C."""
    raise KeyboardInterrupt


def free_port(first: int) -> int:
    """Return the first port from `first` on that nobody listens on."""
    for port in range(first, first + 100):
        with contextlib.suppress(OSError), everywhere(port):
            return port
    raise SystemExit(f"no free port from {first} to {first + 99}")


def everywhere(port: int) -> socket.socket:
    """Return a socket that listens on every address of this machine, as the proxy does."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def environment(port: int) -> dict[str, str]:
    """Return the environment of the demo proxy: this one, without options meant for another proxy."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return clean | {
        "FLAGSVC_URL": (HERE / "document.json").as_uri(),
        "FLAGSVC_API_TOKEN": "not-needed-for-a-file",
        "FLAGSVC_PROXY_CLIENT_KEYS": KEY,
        "FLAGSVC_CUSTOM_STRATEGIES_FILE": str(HERE / "custom_strategies.py"),
        "FLAGSVC_STORAGE": "none",
        "EXP_CUSTOM_ENRICHERS_FILE": str(HERE / "enrichers.py"),
        "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": TOKEN,
        "ENABLE_ALL_ENDPOINT": "true",
        "ENABLE_OAS": "true",
        "PORT": str(port),
    }


@contextlib.contextmanager
def proxy(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a proxy on `port`; end it, and wait until it has ended, when the block is left."""
    command = [sys.executable, "-m", "flagsvc", "proxy"]
    process = subprocess.Popen(command, env=environment(port), start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    """Return whether the proxy became ready; False when it ended or took too long."""
    end = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            return bool(get(f"{url}/health"))
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return False


def get(url: str) -> bytes:
    """Return the body of the answer to a GET with the demo's client key."""
    request = urllib.request.Request(url, headers={"Authorization": KEY})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever HTTP_PROXY says
    with direct.open(request, timeout=5) as response:
        return bytes(response.read())


def show(url: str) -> None:
    """Print a first answer and what to try next."""
    toggles = json.loads(get(f"{url}?{CONTEXT}"))["toggles"]
    width = max(len(toggle["name"]) for toggle in toggles)
    print(f"\nThe flags of user 7 in the EU, with 64 in the basket:\n\n  GET {url}?{CONTEXT}\n")
    for toggle in toggles:
        print(f"  {toggle['name']:<{width}}  {describe(toggle['variant'])}".rstrip())
    print(
        f"\nGo on with:\n\n{requests(url)}\nEdit examples/document.json while it runs: a moment later the answers know.",
        end=" ",
    )
    print("Ctrl-C ends it.\n", flush=True)


def describe(variant: dict[str, object]) -> str:
    """Return a variant in words, nothing for a toggle that has none."""
    if not variant["enabled"]:
        return ""
    payload = variant.get("payload")
    return f"variant {variant['name']}" + (f", {payload['value']}" if isinstance(payload, dict) else "")


def requests(url: str) -> str:
    """Return the command lines to try next."""
    key = f"-H 'Authorization: {KEY}'"
    base = url.removesuffix("/proxy")
    lines = {
        "another user, in Australia, at Christmas": f"curl {key} '{url}?userId=42&region=au&currentTime=2026-12-24'",
        "two flags by name, with a context as JSON": f"curl {key} -H 'Content-Type: application/json' {url} \\\n      "
        """-d '{"toggles": ["free-shipping", "banner-text"], "context": {"properties": {"coupon": "ship-it"}}}'""",
        "every flag, on or off": f"curl {key} {url}/all",
        "the configuration, for server-side SDKs": f"curl -H 'Authorization: {TOKEN}' {url}/client/features",
        "why a flag is on or off": f"{command()} evaluate examples/document.json --context userId=7 --toggle new-checkout "
        "--explain",
        "the API in a browser": f"{base}/docs/openapi",
    }
    return "".join(f"  # {title}\n    {line}\n" for title, line in lines.items())


def command() -> str:
    """Return how `flagsvc` is called from here."""
    script = Path(sys.executable).with_name("flagsvc")
    return os.path.relpath(script) if script.exists() else f"{os.path.relpath(sys.executable)} -m flagsvc"


if __name__ == "__main__":
    sys.exit(main())
