"""What the client towards the upstream costs: a proxy with ours beside the same proxy with httpcore, over TLS.

`python benchmarks/upstream_client.py [--rounds 15] [--flags 10]` starts each in turn, asks it once, prints the least of each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

CLIENTS = ("ours", "httpcore")
READY = b"flagsvc ready"


class Cost(NamedTuple):
    """What one start took until the first answer: milliseconds of the wall clock and of processor time, MB, modules."""

    wall_ms: float
    cpu_ms: float
    rss_mb: float
    modules: int


class Through:
    """Does with httpcore what `flagsvc.http.client.transport.Transport` does, as far as one answer needs it."""

    def __init__(self, shown: str, *, proxy: str | None, trust: object, limits: object) -> None:
        import httpcore

        from flagsvc.http.client.answers import Limits
        from flagsvc.http.client.trust import Trust

        assert isinstance(trust, Trust) and isinstance(limits, Limits) and proxy is None
        self.shown, self.limits = shown, limits
        self.pool = httpcore.AsyncConnectionPool(
            trust.context(), max_connections=4, max_keepalive_connections=2, keepalive_expiry=60.0
        )

    async def send(self, method: str, url: str, headers: Sequence[tuple[str, bytes]], content: bytes | None = None) -> object:
        """Send one request and return its answer."""
        from flagsvc.http.client.answers import Answer, Body

        step = dict.fromkeys(("connect", "read", "write", "pool"), self.limits.step_s)
        given = [(name.encode(), value) for name, value in headers]
        async with self.pool.stream(method, url, headers=given, content=content, extensions={"timeout": step}) as answer:
            found = {name.decode().lower(): value.decode() for name, value in answer.headers}
            body = Body(found.get("content-encoding", ""), self.limits.max_bytes, self.shown)
            async for piece in answer.aiter_stream():
                body.feed(piece)
            return Answer(answer.status, found, body.finish())

    async def aclose(self) -> None:
        """Close all connections."""
        await self.pool.aclose()


def be_a_proxy(client: str) -> int:
    """Run `flagsvc proxy` with one of the clients, and print at its end how many modules it has."""
    import flagsvc.proxy.upstream as session
    from flagsvc.cli import main

    if client == "httpcore":
        setattr(session, "Transport", Through)  # noqa: B010 - a class that the module does not declare
    code = main(["proxy"])
    print("modules", len(sys.modules), flush=True)
    return code


def environment(url: str, authority: str) -> dict[str, str]:
    """Return the variables of a proxy that speaks to `url` and trusts `authority`."""
    own = {"FLAGSVC_URL": url, "FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k", "FLAGSVC_STORAGE": "none"}
    own |= {"FLAGSVC_UPSTREAM_CA": authority, "FLAGSVC_SHUTDOWN_GRACE": "0"}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", **own}


def started(client: str, env: dict[str, str]) -> Cost:
    """Start a proxy, have it answer once, end it, and return what that took."""
    from support import processes

    port = processes.free_port()
    begun = time.perf_counter()
    command = [sys.executable, __file__, "--as", client]
    with subprocess.Popen(command, env=env | {"PORT": str(port)}, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if line.startswith(READY):
                break
        else:
            raise RuntimeError(f"the proxy with {client} ended before it was ready")
        answer = processes.ask(f"http://127.0.0.1:{port}/proxy", headers={"Authorization": "k"})
        wall = 1000 * (time.perf_counter() - begun)
        assert answer.status == 200, answer
        status = Path(f"/proc/{program.pid}/status").read_text()
        rss = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
        tasks = Path(f"/proc/{program.pid}/task").glob("*/schedstat")
        cpu = sum(int(path.read_text().split()[0]) for path in tasks) / 1e6
        program.terminate()
        modules = next(int(line.split()[1]) for line in program.stdout if line.startswith(b"modules"))
    return Cost(wall, cpu, rss, modules)


def measure(rounds: int, flags: int) -> None:
    """Print a row for each client."""
    import documents
    from support.fake_upstream import fake_upstream
    from support.pki import Authority, written

    authority = Authority()
    with (
        tempfile.TemporaryDirectory() as folder,
        fake_upstream(documents.document(flags), tls=authority.server()) as there,
    ):
        env = environment(there.url, written(Path(folder), "ca.pem", authority.pem))
        found: dict[str, list[Cost]] = {client: [] for client in CLIENTS}
        for _ in range(rounds):
            for client in CLIENTS:
                found[client].append(started(client, env))
    print("| client | start to the first answer, ms | CPU of that, ms | MB | modules |\n|---|--:|--:|--:|--:|")
    for client, costs in found.items():
        least = Cost(*map(min, zip(*costs, strict=True)))
        print(f"| {client} | {least.wall_ms:.0f} | {least.cpu_ms:.0f} | {least.rss_mb:.1f} | {least.modules} |")


def main() -> int:
    """Read the options, and measure or be what is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--flags", type=int, default=10)
    parser.add_argument("--as", dest="client", choices=CLIENTS, help="run the proxy with this client")
    args = parser.parse_args()
    if args.client:
        return be_a_proxy(args.client)
    measure(args.rounds, args.flags)
    return 0


if __name__ == "__main__":
    sys.exit(main())
