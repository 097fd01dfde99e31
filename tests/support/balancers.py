"""Load balancers of Debian in front of several proxies, as programs that tests start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from support import needs
from support.processes import answers, free_port, running, scratch

HEALTH = "/proxy/health"
HAPROXY = """\
global
  maxconn 2000
defaults
  mode http
  retries 0
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend callers
  bind 127.0.0.1:{port}
  default_backend proxies
backend proxies
  balance roundrobin
  http-reuse always
  option httpchk GET /readyz
  timeout check 5s
  default-server check inter 100ms fall 1 rise 1
{servers}
"""
"""It asks each proxy ten times a second whether it is ready, and tries nothing twice."""

NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/client;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  upstream proxies {{
{servers}
    keepalive {kept};
  }}
  server {{
    listen 127.0.0.1:{port};
    {server}
    location / {{
      proxy_pass http://proxies;
      {location}
    }}
  }}
}}
"""
KEPT = "proxy_http_version 1.1;"
"""nginx speaks HTTP/1.0 to a server unless it is told otherwise, and keeps no connection."""
NEXT_ONE = 'proxy_set_header Connection ""; proxy_next_upstream error timeout http_503 non_idempotent;'
"""nginx makes no health checks. If a proxy refuses a connection or answers 503, nginx sends the request to another proxy."""


def haproxy(ports: Sequence[int]) -> AbstractContextManager[int]:
    """Run HAProxy in front of proxies on these ports until the block ends; give its port."""
    return haproxy_as(HAPROXY, "\n".join(f"  server s{port} 127.0.0.1:{port}" for port in ports))


def haproxy_as(text: str, servers: str, health: str = HEALTH) -> AbstractContextManager[int]:
    """Run HAProxy with this configuration until the block ends, and yield its port.

    `{port}` and `{servers}` in the configuration are replaced. It is ready when a server behind it answers at `health`.
    """
    return _balancer("haproxy", text, servers, health, "-db", "-f")


def nginx(ports: Sequence[int]) -> AbstractContextManager[int]:
    """Run nginx in front of proxies on these ports until the block ends; give its port."""
    return nginx_as("\n".join(f"    server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;" for port in ports))


def nginx_as(
    servers: str, health: str = HEALTH, location: str = NEXT_ONE, kept: int = 16, *, http: str = KEPT, server: str = ""
) -> AbstractContextManager[int]:
    """Run nginx with these settings of its server and location, as `haproxy_as` runs HAProxy; it keeps so many connections."""
    text = NGINX.replace("{location}", http + location).replace("{kept}", str(kept)).replace("{server}", server)
    return _balancer("nginx", text, servers, health, "-e", "stderr", "-c")


@contextmanager
def _balancer(name: str, text: str, servers: str, health: str, *arguments: str) -> Iterator[int]:
    program, port = needs.program(name, f"/usr/sbin/{name}"), free_port()
    with scratch() as folder:
        path = folder / f"{name}.conf"
        path.write_text(text.format(port=port, servers=servers, folder=folder))
        with running(name, [program, *arguments, path], env={}, folder=folder) as balancer:
            balancer.wait(lambda: answers(f"http://127.0.0.1:{port}{health}"), "ready")
            yield port
