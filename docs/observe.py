"""The alerts and dashboards of both programs as rows, and what is written from them to deploy/observe/. `generate.py` writes it.

Each alert has a paragraph in docs/how-to/runbook.md under its name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

RUNBOOK = "https://github.com/flagsvc/flagsvc/blob/main/docs/how-to/runbook.md"
WRITTEN = "# Written by `make docs` from the rows in docs/observe.py.\n"
CRITICAL, WARNING = "critical", "warning"
"""Critical wakes a person, warning waits for the morning."""
PROXY, SERVER = "flagsvc-proxy", "flagsvc-server"
PROGRAMS = (PROXY, SERVER)


class Alert(NamedTuple):
    """One alert of one program: its name, severity, expression, and the time that this must hold.

    `summary` is the sentence for the person who is woken, and `description` says what callers notice. `fault` are series of the
    fault for the test, each with its values a minute, and `labels` those of the alert that then fires.
    """

    program: str
    name: str
    severity: str
    expr: str
    hold: str
    summary: str
    description: str
    fault: dict[str, str]
    labels: tuple[tuple[str, str], ...] = ()


class Panel(NamedTuple):
    """One panel of a dashboard: its title, unit (Grafana's word), description, and the queries with their legends."""

    title: str
    unit: str
    description: str
    queries: tuple[tuple[str, str], ...]


def both(program: str, slow_s: float) -> tuple[Alert, ...]:
    """Return the alerts that both programs have. `slow_s` is the time that one of a hundred requests may take longer than."""
    prefix, about = ("FlagsvcProxy", "the proxy") if program == PROXY else ("FlagsvcServer", "the flag server")
    only = f"and on (job, instance) {OWN_METRIC[program]}"
    requests, times = "flagsvc_http_requests_total", "flagsvc_http_request_duration_seconds_bucket"
    return (
        Alert(
            program,
            f"{prefix}NotReady",
            CRITICAL,
            f"flagsvc_ready == 0 {only}",
            "2m",
            f"An instance of {about} has not been ready for two minutes.",
            "Balancers send it no callers. The word in the body of /readyz says why.",
            {"flagsvc_ready": "0x30"},
        ),
        Alert(
            program,
            f"{prefix}Errors",
            CRITICAL,
            f'sum by (job) (rate({requests}{{status=~"5.."}}[5m]) {only}) / sum by (job) (rate({requests}[5m]) {only}) > 0.02',
            "5m",
            f"More than 2 % of the requests to {about} fail with a status of 5xx.",
            "Callers get no answer, and use what they had before or their defaults.",
            {f'{requests}{{route="/some",method="GET",status="500"}}': "0+600x30"},
            (("job", program),),
        ),
        Alert(
            program,
            f"{prefix}Slow",
            WARNING,
            f"histogram_quantile(0.99, sum by (job, le) (rate({times}[5m]) {only})) > {slow_s:g}",
            "10m",
            f"One of a hundred requests to {about} takes longer than {slow_s:g} seconds.",
            "Callers wait for their flags.",
            {f'{times}{{route="/some",method="GET",le="0.1"}}': "0x30"},
            (("job", program),),
        ),
        Alert(
            program,
            f"{prefix}LimitReached",
            WARNING,
            f"sum by (job, limit) (increase(flagsvc_limits_reached_total[10m]) {only}) > 10",
            "0m",
            f"{about[0].upper()}{about[1:]} turns requests or connections away at a limit.",
            "The label `limit` names the limit. Some callers get a refusal in place of their flags.",
            {'flagsvc_limits_reached_total{limit="connections"}': "0+60x30"},
            (("job", program), ("limit", "connections")),
        ),
        Alert(
            program,
            f"{prefix}CertificateEnds",
            WARNING,
            f"flagsvc_certificate_expiry_timestamp_seconds - time() < 7 * 86400 {only}",
            "10m",
            f"The certificate of {about} ends within seven days.",
            "When it has ended, no caller over TLS gets an answer.",
            {"flagsvc_certificate_expiry_timestamp_seconds": "3600x30"},
        ),
        Alert(
            program,
            f"{prefix}LoopLate",
            WARNING,
            f"histogram_quantile(0.9, sum by (job, instance, le) (rate(flagsvc_event_loop_lag_seconds_bucket[5m]) {only})) > 0.25",
            "10m",
            f"The event loop of {about} turns too slowly: a timer is a quarter of a second late.",
            "Every caller of the instance waits. It has too little processor time, or something blocks it.",
            {'flagsvc_event_loop_lag_seconds_bucket{le="0.25"}': "0x30"},
        ),
    )


def buckets(name: str, *bounds: str, more: str = "") -> dict[str, str]:
    """Return the series of a histogram with durations that are all in the first of these buckets."""
    return {f'{name}_bucket{{{more}le="{bound}"}}': "0+60x30" for bound in (*bounds, "+Inf")}


SOME = 'route="/some",method="GET",'
HEALTHY_BOTH: dict[str, str] = {
    "flagsvc_ready": "1x30",
    f'flagsvc_http_requests_total{{{SOME}status="200"}}': "0+6000x30",
    f'flagsvc_http_requests_total{{{SOME}status="500"}}': "0x30",
    **buckets("flagsvc_http_request_duration_seconds", "0.1", "10.0", more=SOME),
    'flagsvc_limits_reached_total{limit="connections"}': "0x30",
    "flagsvc_certificate_expiry_timestamp_seconds": "7776000x30",
    **buckets("flagsvc_event_loop_lag_seconds", "0.25", "0.5"),
}
HEALTHY: dict[str, dict[str, str]] = {
    PROXY: {
        **HEALTHY_BOTH,
        "flagsvc_workers": "2x30",
        'flagsvc_config_state{state="fresh"}': "1x30",
        'flagsvc_config_state{state="cold"}': "0x30",
        'flagsvc_config_state{state="refused"}': "0x30",
        'flagsvc_config_info{revision="newest"}': "1x30",
        "flagsvc_config_age_seconds": "3x30",
        "flagsvc_upstream_consecutive_failures": "0x30",
        'flagsvc_upstream_answers_total{event="unusable"}': "0x30",
        'flagsvc_usage_dropped_total{reason="full"}': "0x30",
        'flagsvc_usage_dropped_total{reason="malformed"}': "0+1x30",
        "flagsvc_worker_restarts_total": "0x30",
        "flagsvc_storage_errors_total": "0x30",
    },
    SERVER: {
        **HEALTHY_BOTH,
        "flagsvc_database_reachable": "1x30",
        "flagsvc_database_writable": "1x30",
        "flagsvc_database_errors_total": "0x30",
        **buckets("flagsvc_database_turn_seconds", "1.0", "2.5"),
        "flagsvc_database_connections_waiting": "0x30",
        'flagsvc_webhook_attempts_total{outcome="failed"}': "0x30",
        'flagsvc_webhook_attempts_total{outcome="retried"}': "0+1x30",
        'flagsvc_polling_instances{flags="newest"}': "4x30",
        'flagsvc_polling_instances{flags="older"}': "0x30",
    },
}
"""The series of a healthy instance of each program, each with its values a minute."""

OWN_METRIC = {PROXY: "flagsvc_workers", SERVER: "flagsvc_database_writable"}
"""A metric that every instance of a program has, and no instance of the other program."""
EVENT = "flagsvc_upstream_answers_total"

ALERTS: tuple[Alert, ...] = (
    Alert(
        PROXY,
        "FlagsvcProxyNeverFetched",
        CRITICAL,
        'flagsvc_config_state{state=~"cold|restored|bootstrapped"} == 1',
        "5m",
        "A proxy has had no answer of its upstream since its start five minutes ago.",
        "It serves a stored or bootstrap configuration, or none at all (state `cold`, 503).",
        {'flagsvc_config_state{state="cold"}': "1x30"},
        (("state", "cold"),),
    ),
    Alert(
        PROXY,
        "FlagsvcProxyConfigurationOld",
        WARNING,
        "flagsvc_config_age_seconds > 600",
        "2m",
        "The flags of a proxy have not been checked against its upstream for ten minutes.",
        "Callers get the last flags that the proxy knows. Changes do not arrive.",
        {"flagsvc_config_age_seconds": "900x30"},
    ),
    Alert(
        PROXY,
        "FlagsvcProxyConfigurationRejected",
        WARNING,
        f'increase({EVENT}{{event="unusable"}}[10m]) > 0',
        "0m",
        "The upstream sends a document that the proxy cannot use.",
        "The proxy goes on with the flags before. Changes do not arrive.",
        {f'{EVENT}{{event="unusable"}}': "0+1x30"},
        (("event", "unusable"),),
    ),
    Alert(
        PROXY,
        "FlagsvcProxyTokenRefused",
        CRITICAL,
        'flagsvc_config_state{state="refused"} == 1',
        "2m",
        "The upstream refuses the token of a proxy.",
        "The proxy serves the last flags that it knows. A person must give it a token that counts.",
        {'flagsvc_config_state{state="refused"}': "1x30"},
        (("state", "refused"),),
    ),
    Alert(
        PROXY,
        "FlagsvcProxyUpstreamFailing",
        WARNING,
        "flagsvc_upstream_consecutive_failures >= 3"
        ' unless on (job, instance, environment) flagsvc_config_state{state="refused"} == 1',
        "5m",
        "The upstream of a proxy has given no usable answer for five minutes.",
        "Callers get the last flags that the proxy knows. Changes do not arrive.",
        {"flagsvc_upstream_consecutive_failures": "5x30"},
    ),
    Alert(
        PROXY,
        "FlagsvcProxyRevisionsDiffer",
        WARNING,
        "count by (job, environment) (count by (job, environment, revision) (flagsvc_config_info)) > 1",
        "5m",
        "Proxies of the same job have served different revisions for five minutes.",
        "Callers get other flags from one replica than from another.",
        {'flagsvc_config_info{revision="other"}': "1x30"},
        (("job", PROXY),),
    ),
    Alert(
        PROXY,
        "FlagsvcProxyUsageDropped",
        WARNING,
        'sum by (job, reason) (increase(flagsvc_usage_dropped_total{reason=~"full|refused"}[15m])) > 0',
        "0m",
        "A proxy drops usage metrics.",
        "The flag server shows too little use of flags, so a person may take a flag in use for unused.",
        {'flagsvc_usage_dropped_total{reason="full"}': "0+1x30"},
        (("job", PROXY), ("reason", "full")),
    ),
    Alert(
        PROXY,
        "FlagsvcProxyWorkerRestarts",
        WARNING,
        "increase(flagsvc_worker_restarts_total[15m]) > 0",
        "0m",
        "A worker process of a proxy has ended or hung, and was replaced.",
        "Requests that it was answering were lost.",
        {"flagsvc_worker_restarts_total": "0+1x30"},
    ),
    Alert(
        PROXY,
        "FlagsvcProxyStorageErrors",
        WARNING,
        "increase(flagsvc_storage_errors_total[15m]) > 0",
        "0m",
        "A proxy cannot read or write its storage.",
        "Callers notice nothing now. After a restart during an outage of the upstream the proxy has no flags.",
        {"flagsvc_storage_errors_total": "0+1x30"},
    ),
    *both(PROXY, 0.25),
    Alert(
        SERVER,
        "FlagsvcServerDatabaseAway",
        CRITICAL,
        "flagsvc_database_reachable == 0",
        "1m",
        "A flag server cannot read its database.",
        "Proxies and SDKs get flags from memory. Pages and the admin API answer 503.",
        {"flagsvc_database_reachable": "0x30"},
    ),
    Alert(
        SERVER,
        "FlagsvcServerReadOnly",
        CRITICAL,
        "flagsvc_database_writable == 0",
        "2m",
        "The database of a flag server takes no changes.",
        "Flags are served, but no change of a flag is possible.",
        {"flagsvc_database_writable": "0x30"},
    ),
    Alert(
        SERVER,
        "FlagsvcServerDatabaseErrors",
        WARNING,
        "increase(flagsvc_database_errors_total[10m]) > 5",
        "0m",
        "The database fails transactions of a flag server.",
        "Some changes and reports are lost with an error.",
        {"flagsvc_database_errors_total": "0+6x30"},
    ),
    Alert(
        SERVER,
        "FlagsvcServerWritersWait",
        WARNING,
        "histogram_quantile(0.9, sum by (job, le) (rate(flagsvc_database_turn_seconds_bucket[5m]))) > 1"
        " or max by (job) (flagsvc_database_connections_waiting) > 0",
        "5m",
        "Changes of flags wait longer than a second for the changes before them, or for a connection to the database.",
        "A click on a switch takes seconds.",
        {'flagsvc_database_turn_seconds_bucket{le="1.0"}': "0x30"},
        (("job", SERVER),),
    ),
    Alert(
        SERVER,
        "FlagsvcServerWebhooksFail",
        WARNING,
        'sum by (job) (increase(flagsvc_webhook_attempts_total{outcome="failed"}[15m])) > 0',
        "0m",
        "A flag server has given up sending an event to a webhook.",
        "The receiver does not hear of changes.",
        {'flagsvc_webhook_attempts_total{outcome="failed"}': "0+1x30"},
        (("job", SERVER),),
    ),
    Alert(
        SERVER,
        "FlagsvcServerInstancesBehind",
        WARNING,
        'max by (job) (flagsvc_polling_instances{flags="older"}) > 0',
        "10m",
        "A proxy or SDK polls the flag server, and has had older flags for ten minutes.",
        "Its callers do not see the last changes.",
        {'flagsvc_polling_instances{flags="older"}': "1x30"},
        (("job", SERVER),),
    ),
    *both(SERVER, 1.0),
)


def rate(name: str, by: str = "", of: str = "") -> str:
    """Return the query of what a counter grows by in a second, summed by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({name}_total{of}[$__rate_interval]))"


def quantiles(name: str, by: str = "") -> tuple[tuple[str, str], ...]:
    """Return the queries of the half and the slowest hundredth of a histogram, by labels."""
    labels, legend = ", ".join(filter(None, ("le", by))), f" {{{{{by}}}}}" if by else ""
    rates = f"sum by ({labels}) (rate({name}_bucket[$__rate_interval]))"
    return tuple((f"histogram_quantile({q}, {rates})", f"p{q * 100:g}{legend}") for q in (0.5, 0.99))


REQUESTS, DURATIONS = "flagsvc_http_requests", "flagsvc_http_request_duration_seconds"
HITS = "flagsvc_answer_cache_hits"
FAILED = '{status=~"5.."}'
COMMON: tuple[Panel, ...] = (
    Panel(
        "Ready instances",
        "short",
        "Instances that /readyz calls ready, and all.",
        (("sum(flagsvc_ready)", "ready"), ("count(flagsvc_ready)", "all")),
    ),
    Panel("Requests by status", "reqps", "Answers in a second.", ((rate(REQUESTS, "status"), "{{status}}"),)),
    Panel("Requests by route", "reqps", "Answers in a second.", ((rate(REQUESTS, "route, method"), "{{method}} {{route}}"),)),
    Panel(
        "Durations",
        "s",
        "Time from the head of a request until its answer was ready: the median, and one of a hundred.",
        quantiles(DURATIONS),
    ),
    Panel(
        "Durations by route",
        "s",
        "Time that one of a hundred requests takes longer than, by route.",
        quantiles(DURATIONS, "route")[1:],
    ),
    Panel(
        "Failed requests",
        "percentunit",
        "The part of all answers with a status of 5xx.",
        ((f"({rate(REQUESTS, of=FAILED)} or vector(0)) / {rate(REQUESTS)}", "5xx"),),
    ),
    Panel(
        "Connections and event streams",
        "short",
        "Connections of callers that are open, and event streams, which are among them.",
        (("sum(flagsvc_http_connections_open)", "connections"), ("sum(flagsvc_streams_open)", "streams")),
    ),
    Panel("Bytes sent", "Bps", "Bytes sent to callers in a second.", ((rate("flagsvc_http_sent_bytes"), "sent"),)),
    Panel(
        "Limits reached",
        "ops",
        "Requests and connections turned away in a second, by limit.",
        ((rate("flagsvc_limits_reached", "limit"), "{{limit}}"),),
    ),
    Panel(
        "Telemetry dropped",
        "ops",
        "Spans and readings of metrics in a second that the collector of OpenTelemetry did not take; nothing without a collector.",
        ((rate("flagsvc_telemetry_dropped", "signal"), "{{signal}}"),),
    ),
    Panel("Lag of the event loop", "s", "How late a timer runs.", quantiles("flagsvc_event_loop_lag_seconds")),
    Panel("Processor", "short", "Processor cores in use.", ((rate("process_cpu_seconds", "instance"), "{{instance}}"),)),
    Panel(
        "Memory", "bytes", "Resident memory of all processes of an instance.", (("process_resident_memory_bytes", "{{instance}}"),)
    ),
)
PANELS: dict[str, tuple[Panel, ...]] = {
    PROXY: (
        *COMMON,
        Panel(
            "Age of the flags",
            "s",
            "Time since the last check of the upstream that went well.",
            (("flagsvc_config_age_seconds", "{{instance}} {{environment}}"),),
        ),
        Panel("State", "short", "How many instances are in each state.", (("sum by (state) (flagsvc_config_state)", "{{state}}"),)),
        Panel(
            "Revisions",
            "short",
            "How many instances serve each revision.",
            (("count by (environment, revision) (flagsvc_config_info)", "{{environment}} {{revision}}"),),
        ),
        Panel(
            "Polls of the upstream",
            "ops",
            "Polls in a second by their result.",
            ((rate("flagsvc_upstream_answers", "event"), "{{event}}"),),
        ),
        Panel(
            "Requests to the upstream",
            "ops",
            "Requests in a second by what they do and how they end.",
            (
                (
                    "sum by (request, outcome) (rate(flagsvc_upstream_request_duration_seconds_count[$__rate_interval]))",
                    "{{request}} {{outcome}}",
                ),
            ),
        ),
        Panel(
            "Durations of requests to the upstream",
            "s",
            "Time until the answer has come.",
            quantiles("flagsvc_upstream_request_duration_seconds", "request"),
        ),
        Panel(
            "Bytes from the upstream",
            "Bps",
            "Bytes received in a second, compressed.",
            ((rate("flagsvc_upstream_received_bytes"), "received"),),
        ),
        Panel("Refreshes", "s", "Time of the phases of a refresh.", quantiles("flagsvc_config_refresh_duration_seconds", "phase")),
        Panel(
            "Streams of the upstream",
            "short",
            "Environments that hear of changes by a stream of the upstream.",
            (("sum(flagsvc_upstream_streaming)", "streaming"),),
        ),
        Panel(
            "Answer cache",
            "percentunit",
            "The part of answers that comes from the cache.",
            (
                (
                    f"{rate(HITS)} / ({rate(HITS)} + {rate('flagsvc_answer_cache_misses')})",
                    "hits",
                ),
            ),
        ),
        Panel(
            "Usage dropped",
            "ops",
            "Usage counts left out in a second, by reason.",
            ((rate("flagsvc_usage_dropped", "reason"), "{{reason}}"),),
        ),
        Panel(
            "Workers",
            "short",
            "Processes that answer requests, and those replaced in an hour.",
            (("sum(flagsvc_workers)", "workers"), ("sum(increase(flagsvc_worker_restarts_total[1h]))", "replaced")),
        ),
        Panel(
            "Storage errors",
            "ops",
            "Times in a second that the storage did not do what it was asked.",
            ((rate("flagsvc_storage_errors"), "errors"),),
        ),
    ),
    SERVER: (
        *COMMON,
        Panel(
            "Database",
            "short",
            "Instances that can read the database, and that can change it.",
            (("sum(flagsvc_database_reachable)", "reachable"), ("sum(flagsvc_database_writable)", "writable")),
        ),
        Panel(
            "Commits",
            "ops",
            "Transactions committed in a second: changes of flags, and records of usage.",
            ((rate("flagsvc_database_commits", "kind"), "{{kind}}"),),
        ),
        Panel(
            "Wait for the writers' turn",
            "s",
            "Time that a change of flags waits for the changes before it.",
            quantiles("flagsvc_database_turn_seconds"),
        ),
        Panel(
            "Database errors",
            "ops",
            "Transactions in a second that the database failed.",
            ((rate("flagsvc_database_errors"), "errors"),),
        ),
        Panel(
            "Connections to the database",
            "short",
            "Connections in use and idle, the most there can be, and threads that wait for one.",
            (
                ("sum by (state) (flagsvc_database_connections)", "{{state}}"),
                ("sum(flagsvc_database_connections_max)", "most"),
                ("sum(flagsvc_database_connections_waiting)", "waiting"),
            ),
        ),
        Panel(
            "Polling instances",
            "short",
            "Proxies and SDKs that poll, with the newest flags or older flags.",
            (("sum by (flags) (flagsvc_polling_instances)", "{{flags}}"),),
        ),
        Panel("Flags", "short", "Feature flags that are not archived.", (("max(flagsvc_features)", "flags"),)),
        Panel("Revision", "short", "Changes of flags that were committed.", (("max(flagsvc_revision)", "revision"),)),
        Panel(
            "Webhooks",
            "ops",
            "Requests to receivers of webhooks in a second, by outcome.",
            ((rate("flagsvc_webhook_attempts", "outcome"), "{{outcome}}"),),
        ),
        Panel(
            "Changes told in event streams",
            "ops",
            "Changes in a second that callers were told.",
            ((rate("flagsvc_streams_told"), "told"),),
        ),
    ),
}

METRIC = re.compile(r"\b((?:flagsvc|process)_[a-z_]+)(?:\{([^}]*)\})?")
CHOSEN = 'job=~"$job", instance=~"$instance"'
"""What the variables of a dashboard choose."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, COLUMNS = 8, 8, 3


def chosen(expr: str) -> str:
    """Return a query of the instances that the variables of the dashboard choose."""
    return METRIC.sub(lambda found: f"{found[1]}{{{CHOSEN}{f', {found[2]}' if found[2] else ''}}}", expr)


def variable(name: str, query: str) -> dict[str, Any]:
    """Return a variable of a dashboard whose values a query finds; at first all."""
    everything = {"includeAll": True, "multi": True, "current": {"text": "All", "value": "$__all"}}
    return {"name": name, "type": "query", "datasource": SOURCE, "query": query, "refresh": 2, "sort": 1, **everything}


def panel(number: int, row: Panel) -> dict[str, Any]:
    """Return a panel as Grafana has it, at its place."""
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": row.title,
        "description": row.description,
        "datasource": SOURCE,
        "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": row.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": chosen(expr), "legendFormat": legend, "datasource": SOURCE}
            for at, (expr, legend) in enumerate(row.queries)
        ],
    }


def dashboard(program: str) -> str:
    """Return the dashboard of a program as JSON."""
    own = OWN_METRIC[program]
    found = {
        "uid": program,
        "title": program,
        "tags": ["flagsvc"],
        "schemaVersion": 38,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
                variable("job", f"label_values({own}, job)"),
                variable("instance", f'label_values({own}{{job=~"$job"}}, instance)'),
            ]
        },
        "panels": [panel(number, row) for number, row in enumerate(PANELS[program])],
    }
    return json.dumps(found, indent=2) + "\n"


def rule(row: Alert) -> dict[str, Any]:
    """Return an alert as Prometheus has it."""
    return {
        "alert": row.name,
        "expr": row.expr,
        "for": row.hold,
        "labels": {"severity": row.severity},
        "annotations": notes(row),
    }


def notes(row: Alert) -> dict[str, str]:
    return {"summary": row.summary, "description": row.description, "runbook_url": f"{RUNBOOK}#{row.name.lower()}"}


def rules(program: str) -> str:
    """Return the alerts of a program as a file of rules."""
    group = {"name": program, "rules": [rule(row) for row in ALERTS if row.program == program]}
    return WRITTEN + yaml.safe_dump({"groups": [group]}, sort_keys=False, width=1000)


def files() -> dict[str, str]:
    """Return every file below deploy/observe/ with its text."""
    alerts = {f"alerts/{program}.yaml": rules(program) for program in PROGRAMS}
    return alerts | {f"dashboards/{program}.json": dashboard(program) for program in PROGRAMS}


def write(root: Path) -> None:
    """Write the files below the folder of the repository."""
    for name, text in files().items():
        (root / "deploy" / "observe" / name).write_text(text)
