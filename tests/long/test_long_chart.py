"""The Helm chart, rendered for every combination of its switches and checked against the schemas of three versions of Kubernetes.

`go` fetches helm, the schemas of Kubernetes, and those of the resources that the Prometheus operator and the Gateway API add.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from support import needs
from support.fake_upstream import fake_upstream
from support.processes import KEY, ROOT, UPSTREAM_TOKEN, answers, ask, flagsvc, free_port, running
from support.worker_pools import document

HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
KUBERNETES = ("v1.35.4", "v1.36.3", "v1.37.2")
OPERATOR, GATEWAY = "github.com/prometheus-operator/prometheus-operator@v0.85.0", "sigs.k8s.io/gateway-api@v1.6.3"
ADDED = (
    (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"),
    (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"),
    (GATEWAY, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"),
)
"""Modules, and where they have the definition of a resource."""
PAGE = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text()
BATCH = 512
"""Combinations that one call of helm renders."""
SECRET = {"api-token": UPSTREAM_TOKEN, "client-keys": KEY, "database-url": "postgresql://flags@database/flags"}
PEER = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]


def both(**values: Any) -> dict[str, Any]:
    return {"proxy": values, "server": values}


GIVEN: dict[str, Any] = {
    "proxy": {"secret": {"name": "flags"}},
    "server": {"secret": {"name": "flags", "variables": {"FLAGSVC_DATABASE_URL": "database-url"}}},
}
"""Values of every combination."""
SWITCHES: dict[str, dict[str, Any]] = {
    "no proxy": {"proxy": {"enabled": False}},
    "server": {"server": {"enabled": True}},
    "account": {"serviceAccount": {"create": False}},
    "spread": both(spread=False),
    "budget": both(disruptionBudget={"enabled": False}),
    "made secret": both(secret={"name": "", "create": SECRET}),
    "volume": both(persistence={"enabled": True}, replicas=1),
    "autoscaling": both(autoscaling={"enabled": True}),
    "policy": both(networkPolicy={"enabled": True, "from": PEER, "adminFrom": PEER, "egress": [{"to": PEER}]}),
    "ingress": both(ingress={"enabled": True, "hosts": ["flags.example"], "tlsSecret": "tls", "className": "nginx"}),
    "route": both(httpRoute={"enabled": True, "parentRefs": [{"name": "gate"}], "hostnames": ["flags.example"]}),
    "monitor": {"metrics": {"serviceMonitor": {"enabled": True}}},
    "rules": {"metrics": {"rules": {"enabled": True}}},
    "dashboards": {"metrics": {"dashboards": {"enabled": True}}},
}
"""Switch → the values that turn it."""
REFUSED = {"volume", "autoscaling"}
"""Switches that do not go together."""
TUNED = {
    "image": {"digest": f"sha256:{'a' * 64}", "pullSecrets": ["registry"]},
    **both(
        podLabels={"team": "a"},
        podAnnotations={"note": "b"},
        nodeSelector={"disk": "fast"},
        tolerations=[{"key": "flags", "operator": "Exists"}],
        affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        priorityClassName="high",
        service={"type": "LoadBalancer", "annotations": {"a": "b"}},
        volumes=[{"name": "seed", "configMap": {"name": "seed"}}],
        volumeMounts=[{"name": "seed", "mountPath": "/etc/flagsvc"}],
    ),
}
"""What is no switch."""


def run(*command: object, **env: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=900, check=False, env={**os.environ, **env})


@cache
def module(name: str) -> Path:
    done = run(needs.program("go"), "mod", "download", "-json", name)
    return (
        Path(json.loads(done.stdout)["Dir"]) if done.returncode == 0 else needs.missing(f"{name} cannot be fetched: {done.stderr}")
    )


@cache
def helm() -> Path:
    """Return helm, built by go."""
    made = ROOT / ".cache" / "go" / HELM.rpartition("@")[2] / "helm"
    if not made.exists():
        done = run(needs.program("go"), "install", HELM, GOBIN=str(made.parent))
        if done.returncode != 0:
            needs.missing(f"helm cannot be built: {done.stderr[-500:]}")
    return made


def strict(schema: Any) -> Any:
    """Return a schema of Kubernetes that refuses members that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(each) for name, each in schema.items()}
    if schema.get("format") == "int-or-string":
        return {"type": ["integer", "string"]}
    if isinstance(schema.get("properties"), dict) and "x-kubernetes-preserve-unknown-fields" not in schema:
        made.setdefault("additionalProperties", False)
    return made


@cache
def validators(version: str) -> Mapping[tuple[str, str], Any]:
    """Return what checks a resource of a version of Kubernetes, or an added resource, by apiVersion and kind."""
    found: dict[tuple[str, str], Any] = {}
    swagger = json.loads((module(f"k8s.io/kubernetes@{version}") / "api" / "openapi-spec" / "swagger.json").read_text())
    definitions = strict(swagger["definitions"])
    for name, each in definitions.items():
        for kind in each.get("x-kubernetes-group-version-kind", []):
            api = "/".join(filter(None, (kind["group"], kind["version"])))
            found[api, kind["kind"]] = {"$ref": f"#/definitions/{name}", "definitions": definitions}
    for name, path in ADDED:
        about = yaml.load((module(name) / path).read_text(), yaml.CSafeLoader)["spec"]
        for each in about["versions"]:
            found[f"{about['group']}/{each['name']}", about["names"]["kind"]] = strict(each["schema"]["openAPIV3Schema"])
    return found


@cache
def validator(version: str, api: str, kind: str) -> Any:
    return jsonschema_rs.Draft202012Validator(validators(version)[api, kind])


def over(base: Mapping[str, Any], *more: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with others on top, member by member."""
    made = dict(base)
    for each in more:
        for name, value in each.items():
            made[name] = over(made.get(name, {}), value) if isinstance(value, dict) else value
    return made


def combinations() -> Iterator[dict[str, Any]]:
    """Give the values of every combination of switches that is not refused."""
    for picked in itertools.chain.from_iterable(itertools.combinations(SWITCHES, number) for number in range(len(SWITCHES) + 1)):
        if not set(picked) >= REFUSED:
            yield over(GIVEN, *(SWITCHES[name] for name in picked))
    yield over(GIVEN, TUNED, SWITCHES["server"])


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the chart as `make chart` makes it."""
    made = run("make", "-C", ROOT, "chart", f"CHART={tmp_path_factory.mktemp('chart')}")
    assert made.returncode == 0, made.stderr
    return next(tmp_path_factory.getbasetemp().glob("chart*/flagsvc"))


def template(folder: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return run(helm(), "template", "flagsvc", folder, "--kube-version", KUBERNETES[-1], *more)


def rendered(chart: Path, values: Mapping[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "values.json").write_text(json.dumps(values))
    return template(chart, "--values", folder / "values.json")


def all_rendered(chart: Path, many: list[dict[str, Any]], folder: Path) -> Iterator[list[str]]:
    """Give the resources of each of many values as texts: as charts within one chart, because helm takes long to start."""
    shutil.copytree(chart, folder / "charts" / "flagsvc", dirs_exist_ok=True)
    names = [f"c{number}" for number in range(len(many))]
    version = yaml.safe_load((chart / "Chart.yaml").read_text())["version"]
    parts = [{"name": "flagsvc", "alias": name, "version": version} for name in names]
    about = {"apiVersion": "v2", "name": "all", "version": "0.0.0", "dependencies": parts}
    (folder / "Chart.yaml").write_text(json.dumps(about))
    (folder / "values.yaml").write_text(json.dumps(dict(zip(names, many, strict=True))))
    done = template(folder)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[str]] = {name: [] for name in names}
    for text in re.split(r"^---\n", done.stdout, flags=re.MULTILINE)[1:]:
        head, _, body = text.partition("\n")
        name = head.split("/")[2]
        found[name].append(body.replace(f"helm.sh/chart: {name}-", "helm.sh/chart: flagsvc-"))
    yield from found.values()


def dangling(made: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return kind and name of what resources name and is not among them. Selectors count as the name of a pod."""
    there = {(each["kind"], each["metadata"]["name"]) for each in made}
    assert len(there) == len(made)
    pods = [each["spec"]["template"] for each in made if each["kind"] == "Deployment"]
    labels = [{name: value for name, value in pod["metadata"]["labels"].items() if name.startswith("app.")} for pod in pods]
    there |= {("Pod", str(each)) for each in labels} | {("Secret", "flags"), ("ServiceAccount", "default")}
    wanted: set[tuple[str, str]] = set()
    for each in made:
        spec = each.get("spec", {})
        if each["kind"] in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
            selector = spec.get("selector") or spec["podSelector"]
            wanted.add(("Pod", str(selector.get("matchLabels", selector))))
        if each["kind"] == "HorizontalPodAutoscaler":
            wanted.add(("Deployment", spec["scaleTargetRef"]["name"]))
        if each["kind"] == "Ingress":
            wanted |= {("Service", path["backend"]["service"]["name"]) for rule in spec["rules"] for path in rule["http"]["paths"]}
        if each["kind"] == "HTTPRoute":
            wanted |= {("Service", reference["name"]) for rule in spec["rules"] for reference in rule["backendRefs"]}
    for pod in (pod["spec"] for pod in pods):
        wanted.add(("ServiceAccount", pod["serviceAccountName"]))
        claims = [volume["persistentVolumeClaim"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
        wanted |= {("PersistentVolumeClaim", claim["claimName"]) for claim in claims}
        wanted |= {("Secret", volume["secret"]["secretName"]) for volume in pod["volumes"] if "secret" in volume}
    return wanted - there


def batches(values: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while many := list(itertools.islice(values, BATCH)):
        yield many


@pytest.mark.long
def test_every_combination(chart: Path, tmp_path: Path) -> None:
    """Each resource is valid in each version of Kubernetes, and what it names is there. Each template is rendered."""
    parsed: dict[str, dict[str, Any]] = {}
    count = 0
    for texts in itertools.chain.from_iterable(all_rendered(chart, many, tmp_path) for many in batches(combinations())):
        parsed |= {text: yaml.load(text, yaml.CSafeLoader) for text in texts if text not in parsed}
        assert not dangling([parsed[text] for text in texts])
        count += 1
    assert count == 2 ** len(SWITCHES) * 3 // 4 + 1
    assert len({each["kind"] for each in parsed.values()}) == 13
    for version, each in itertools.product(KUBERNETES, parsed.values()):
        problems = [str(error) for error in validator(version, each["apiVersion"], each["kind"]).iter_errors(each)]
        assert not problems, (version, each["kind"], problems)
    assert "Kubernetes {} to {}".format(*(".".join(each[1:].split(".")[:2]) for each in (KUBERNETES[0], KUBERNETES[-1]))) in PAGE
    print(f"{count} combinations, {len(parsed)} different resources, valid in {', '.join(KUBERNETES)}")


@pytest.mark.long
def test_the_schemas_refuse_what_is_wrong() -> None:
    """A misspelt member, also of an added resource, and a value of another type are found in each version."""
    port = {"name": "http", "port": 1}
    wrong: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{**port, "targetport": "http"}]}},
        {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{**port, "port": "1"}]}},
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "spec": {"selector": {}, "endpoints": [{"prot": "x"}]},
        },
    ]
    for version, each in itertools.product(KUBERNETES, wrong):
        assert not validator(version, each["apiVersion"], each["kind"]).is_valid(each)


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"proxy": {"secret": {"name": ""}}}, "proxy.secret: give the name of a Secret with the keys api-token, client-keys"),
        ({"proxy": {"secret": {"create": SECRET}}}, "give either `name` or `create`"),
        ({"proxy": {"secret": {"name": "", "create": {"api-token": "x"}}}}, "proxy.secret.create has no key `client-keys`"),
        ({"proxy": {"persistence": {"enabled": True}}}, "proxy.persistence is for one replica"),
        ({"server": {"enabled": True}}, "server: it needs a database"),
        ({"proxy": {"options": {"FLAGSVC_API_TOKEN": "x"}}}, "FLAGSVC_API_TOKEN"),
        ({"prxoy": {}}, "prxoy"),
    ],
)
def test_values_that_are_refused(chart: Path, tmp_path: Path, values: dict[str, Any], message: str) -> None:
    """The message says where the mistake is and what is expected."""
    done = rendered(chart, over({"proxy": GIVEN["proxy"]}, values), tmp_path)
    assert done.returncode != 0 and message in done.stderr, done.stderr


@pytest.mark.long
def test_the_values_of_the_guide(chart: Path, tmp_path: Path) -> None:
    """Each example of the guide is rendered. The proxy asks the flag server where there is one."""
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    done = [rendered(chart, block, tmp_path) for block in blocks]
    assert [each.returncode for each in done] == [0, 0], [each.stderr for each in done]
    assert ["flagsvc-server:4242" in each.stdout for each in done] == [False, True]


@contextlib.contextmanager
def container(made: list[dict[str, Any]], name: str, folder: Path) -> Iterator[dict[str, int]]:
    """Run the container of a component, with folders and ports of the test, until it passes its probes. Gives its ports."""
    [deployment] = [each for each in made if each["kind"] == "Deployment" and each["metadata"]["name"] == f"flagsvc-{name}"]
    [box] = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: free_port() for port in box["ports"]}
    moved = {rf"^(:?){port['containerPort']}$": rf"\g<1>{ports[port['name']]}" for port in box["ports"]}
    moved |= {f"^{mount['mountPath']}/": f"{folder / mount['name']}/" for mount in box["volumeMounts"]}
    for mount in box["volumeMounts"]:
        (folder / mount["name"]).mkdir(parents=True)
    for key, value in SECRET.items():
        if (folder / "secrets").exists():
            (folder / "secrets" / key).write_text(value)
    env = {each["name"]: each["value"] for each in box["env"]}
    for pattern, place in moved.items():
        env = {variable: re.sub(pattern, place, value) for variable, value in env.items()}
    with running(name, [*flagsvc(), *box["args"]], env=env, folder=folder) as program:
        for asked in (box[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")):
            url = f"http://127.0.0.1:{ports[asked['port']]}{asked['path']}"
            program.wait(partial(answers, url), "passing its probes")
        yield ports
        assert "no option reads" not in program.output(), "each variable is one of an option"


@pytest.mark.long
def test_the_containers_run(chart: Path, tmp_path: Path) -> None:
    """Both programs start with the arguments and variables of the chart, pass its probes, and answer where it scrapes."""
    server = {"enabled": True, "secret": {"name": "", "variables": {}}, "persistence": {"enabled": True}}
    with fake_upstream(document("first")) as upstream:
        proxy = {"secret": {"name": "flags"}, "options": {"FLAGSVC_URL": upstream.url}}
        done = rendered(chart, {"proxy": proxy, "server": server, **SWITCHES["monitor"]}, tmp_path)
        made = [each for each in yaml.safe_load_all(done.stdout) if each]
        [path] = {end["path"] for each in made if each["kind"] == "ServiceMonitor" for end in each["spec"]["endpoints"]}
        for name, asked in (("proxy", "/proxy"), ("server", "/health")):
            with container(made, name, tmp_path / name) as ports:
                assert "flagsvc_" in ask(f"http://127.0.0.1:{ports['admin']}{path}").text
                assert ask(f"http://127.0.0.1:{ports['http']}{asked}", headers={"Authorization": KEY}).status == 200
                assert not answers(f"http://127.0.0.1:{ports['http']}{path}")
    assert (tmp_path / "server" / "state" / "flags.db").exists()
