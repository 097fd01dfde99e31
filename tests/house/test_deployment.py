"""Helm chart and compose file name options, paths, ports and versions that the programs have. tests/long renders the chart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import yaml

from flagsvc.core.version import VERSION
from flagsvc.proxy.api.operations import ADMIN, OPERATIONS
from flagsvc.server.api.operations import ADMIN as SERVER_ADMIN
from flagsvc.server.api.operations import METRICS
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
from support.processes import ROOT

CHART = ROOT / "deploy" / "helm" / "flagsvc"
TEMPLATES = "".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VARIABLES = {each.name: row for row in (*OPTIONS, *SERVER_OPTIONS) for each in row.variables}
PORTS = [str(row.default) for row in (*OPTIONS, *SERVER_OPTIONS) if row.name == "port"]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def accepts(values: Any) -> bool:
    return bool(jsonschema_rs.is_valid(SCHEMA, values))


def shapes(schema: Any) -> Iterator[dict[str, Any]]:
    """Give each shape with properties of a schema."""
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield schema
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from shapes(each)


def changed(part: str, section: str, **more: Any) -> dict[str, Any]:
    """Return the values with others in a section of a component."""
    return {**VALUES, part: {**VALUES[part], section: {**VALUES[part][section], **more}}}


def test_the_chart_is_of_this_version() -> None:
    """Chart and program have the same version, and the chart names the image of that version."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == VERSION and VALUES["image"]["tag"] == ""


def test_the_schema_knows_each_value() -> None:
    """The default values are accepted. Each level refuses an unknown name and a missing name."""
    jsonschema_rs.validate(SCHEMA, VALUES)
    found = list(shapes(SCHEMA))
    assert len(found) > 15
    for each in found:
        assert each["additionalProperties"] is False
        assert set(each["required"]) == each["properties"].keys() - {"global"}
    assert not accepts(changed("proxy", "ingress", host="example.com")) and not accepts(changed("proxy", "options", PORT=3000))


def test_secrets_are_no_plain_options() -> None:
    """The schema refuses a secret among the options, and takes every other option."""
    refused = {name for name in VARIABLES if name.isupper() and not accepts(changed("proxy", "options", **{name: "x"}))}
    assert refused == {name for name, row in VARIABLES.items() if row.secret and not name.endswith("_FILE")}


def test_the_variables_of_the_chart_are_options() -> None:
    """Each variable that the chart sets, or its default values name, is one of an option. Secrets have variables for a file."""
    named = set(re.findall(r"\b(?:FLAGSVC_\w+|PORT|JSON_LOGGER)\b", TEMPLATES)) | {*VALUES["proxy"]["options"]}
    secrets = {*VALUES["proxy"]["secret"]["variables"]}
    assert len(named) >= 8 and len(secrets) == 2
    assert named | secrets | {f"{each}_FILE" for each in secrets} <= VARIABLES.keys()


def test_the_chart_asks_where_both_programs_answer() -> None:
    """Probes and metrics are asked at the operators' address of both programs, at the port that it listens on."""
    paths = set(re.findall(r"httpGet: { path: (\S+), port: admin }|admin, path: (\S+),", TEMPLATES))
    assert {one or two for one, two in paths} == {"/livez", "/readyz", "/metrics"}
    for routes in (ADMIN, SERVER_ADMIN):
        assert {one or two for one, two in paths} <= {row.path for row in routes}
    assert re.findall(r"ternary (\d+) (\d+)", TEMPLATES) == [tuple(PORTS)]
    assert re.findall(r'ADMIN_ADDRESS" ":(\d+)"', TEMPLATES) == [*re.findall(r"name: admin, containerPort: (\d+)", TEMPLATES) * 2]


def test_prometheus_asks_where_the_programs_answer() -> None:
    """The compose file has each target as a service, with its port and path, and mounts what its configuration names."""
    services, configs = COMPOSE["services"], {name: yaml.safe_load(each["content"]) for name, each in COMPOSE["configs"].items()}
    jobs = {job["static_configs"][0]["targets"][0]: job["metrics_path"] for job in configs["prometheus"]["scrape_configs"]}
    [scraped] = [row.path for row in OPERATIONS if row.handler == "prometheus"]
    assert jobs == {"proxy:3000": scraped, "flag-server:4242": METRICS[0].path}
    assert services["proxy"]["ports"] == ["3000:3000"] and services["flag-server"]["environment"]["FLAGSVC_SERVER_PORT"] == "4242"
    [source] = configs["grafana-source"]["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [rules], [provider] = configs["prometheus"]["rule_files"], configs["grafana-dashboards"]["providers"]
    assert f"./deploy/observe/alerts:{rules.removesuffix('/*.yaml')}:ro" in services["prometheus"]["volumes"]
    assert any((ROOT / "deploy/observe/alerts").glob("*.yaml")) and any((ROOT / "deploy/observe/dashboards").glob("*.json"))
    assert services["grafana"]["volumes"] == [f"./deploy/observe/dashboards:{provider['options']['path']}:ro"]


def test_what_observes_is_not_started_unless_asked() -> None:
    """Both services have a profile, a version, and a port on this machine alone; no variable of theirs is a secret."""
    for name in ("prometheus", "grafana"):
        service = COMPOSE["services"][name]
        assert service["profiles"] == ["observe"] and re.fullmatch(r".+:v?\d+\.\d+\.\d+", service["image"])
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert not re.search("PASSWORD|SECRET|TOKEN", str(service.get("environment")))
