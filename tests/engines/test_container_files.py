"""The files for containers, read by Docker Compose and by Helm, and checked by the schemas of Kubernetes."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

import pytest
from pydantic import BaseModel

from compose_stack import CHECKERS, DATABASE, MISSING, composed, needed
from kg_server.settings import FIELDS, variable
from pages import ROOT
from patience import PATIENCE_S

CHART: Final = ROOT / "packaging" / "helm" / "kg-sextant"
OLDEST, NEWEST = "1.25", "1.37"
"""Of Kubernetes: as Chart.yaml names it, and as the schemas go."""
# In a separate process, as Helm's library brings a runtime along that handles signals.
RENDER: Final = """
import json, sys
import helm_python, kubernetes_validate, yaml

chart, values, versions = json.load(sys.stdin)
if isinstance(values, str):
    values = helm_python.parse_set_string(values)
answer = {"findings": [], "refusal": "", "notes": "", "objects": []}
answer["findings"] = [each for each in helm_python.lint(chart, values)["messages"] if each["severity"] > 1]
try:
    with helm_python.Chart.load(chart) as loaded:
        texts = loaded.render(values, name="team", namespace="prod")
except (helm_python.HelmRenderError, helm_python.HelmValuesError) as error:
    answer["refusal"] = str(error)
else:
    for name, text in texts.items():
        if name.endswith("NOTES.txt"):
            answer["notes"] = text
        else:
            answer["objects"] += [each for each in yaml.safe_load_all(text) if each]
for each in answer["objects"]:
    if each["kind"] != "ServiceMonitor":
        for version in versions:
            kubernetes_validate.validate(each, version, strict=True)
print(json.dumps(answer))
"""
TOKENS: Final = {"tokens": {"secret": "kg"}}
EVERYTHING: Final[Mapping[str, object]] = {
    **TOKENS,
    "replicas": 2,
    "url": "https://kg.example.org/mcp",
    "graph": "/graph/store",
    "graphVolume": {"persistentVolumeClaim": {"claimName": "books"}},
    "database": {"secret": "kg"},
    "settings": {"max_tokens": 3_000_000, "sparql.timeout_s": 0.5, "languages": ["en", "de"], "learn": True},
    "settingSecrets": ["more"],
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a": "b"}},
    "metrics": {"enabled": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "image": {"pullSecrets": ["registry"]},
    "podAnnotations": {"c": "d"},
    "nodeSelector": {"e": "f"},
    "tolerations": [{"key": "g", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
}


class _Metadata(BaseModel):
    name: str


class _Object(BaseModel):
    kind: str
    metadata: _Metadata
    data: dict[str, str] = {}
    spec: dict[str, object] = {}


class _Rendered(BaseModel):
    findings: list[object]
    refusal: str
    notes: str
    objects: list[_Object]

    def one(self, kind: str) -> _Object:
        (found,) = (each for each in self.objects if each.kind == kind)
        return found


def rendered(values: Mapping[str, object] | str) -> _Rendered:
    """Return what the chart makes of values, given as such or as `--set` takes them."""
    needed(CHECKERS.is_dir(), MISSING)
    done = subprocess.run(
        [sys.executable, "-c", RENDER],
        input=json.dumps([str(CHART), values, [OLDEST, NEWEST]]),
        env={**os.environ, "PYTHONPATH": str(CHECKERS)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return _Rendered.model_validate_json(done.stdout)


@pytest.mark.parametrize("values", [TOKENS, {"insecure": True}, EVERYTHING], ids=["tokens", "insecure", "everything"])
def test_the_chart_makes_objects_that_kubernetes_accepts(values: Mapping[str, object]) -> None:
    made = rendered(values)
    assert (made.findings, made.refusal) == ([], "")
    kinds = sorted(each.kind for each in made.objects)
    usual = ["ConfigMap", "Deployment", "Service"]
    more = ["Ingress", "PodDisruptionBudget", "Service", "ServiceMonitor"] if values is EVERYTHING else []
    assert kinds == sorted(usual + more)
    pod = json.dumps(made.one("Deployment").spec)
    for guard in (
        *('"runAsNonRoot": true', '"runAsUser": 10001', '"readOnlyRootFilesystem": true', '"drop": ["ALL"]'),
        *('"allowPrivilegeEscalation": false', '"automountServiceAccountToken": false', '"type": "RuntimeDefault"'),
        *('"path": "/healthz"', '"path": "/readyz"', f'"image": "kg-sextant:{version("kg-sextant")}"'),
    ):
        assert guard in pod
    assert ("--insecure" in pod) == ("insecure" in values)
    assert ("Memories are lost" in made.notes) == ("database" not in values)


def test_the_chart_writes_settings_by_their_names_and_keeps_secrets_elsewhere() -> None:
    made = rendered(EVERYTHING)
    settings = made.one("ConfigMap").data
    assert set(settings) < {variable(name) for name in FIELDS}
    assert {name: settings[variable(name)] for name in ("max_tokens", "sparql.timeout_s", "languages", "learn")} == {
        "max_tokens": "3000000",
        "sparql.timeout_s": "0.5",
        "languages": "en,de",
        "learn": "true",
    }
    assert settings[variable("hosting.hosts")].startswith("team-kg-sextant,team-kg-sextant.prod,")
    assert variable("memory.database") not in settings
    assert f'"name": "{variable("memory.database")}", "valueFrom": {{"secretKeyRef"' in json.dumps(
        made.one("Deployment").spec
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "Nobody could log in"),
        ({**TOKENS, "replicas": 2}, "needs a database"),
        ({**TOKENS, "ingress": {"enabled": True}}, "An ingress needs url"),
        ({**TOKENS, "url": "kg.example.org"}, "'/url'"),
        ({**TOKENS, "replica": 2}, "additional properties 'replica' not allowed"),
    ],
)
def test_the_chart_refuses_values_that_would_not_work(values: Mapping[str, object], reason: str) -> None:
    assert reason in rendered(values).refusal


def test_the_chart_can_be_installed_as_the_page_shows() -> None:
    page = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("helm install "))
    words = shlex.split(line)
    assert ROOT / words[3] == CHART
    pod = json.dumps(rendered(words[words.index("--set") + 1]).one("Deployment").spec)
    assert '"image": "registry.example.org/kg-sextant:' in pod
    assert '"replicas": 2' in pod


def test_the_services_of_the_stack_have_no_rights_beyond_their_work() -> None:
    services = composed({"DATABASE_PASSWORD": "secret"})
    assert set(services) == {"server-1", "server-2", "proxy", "database", "token"}
    for name, service in services.items():
        assert service.read_only, name
        assert (service.cap_drop, service.cap_add) == (["ALL"], []), name
        assert service.security_opt == ["no-new-privileges:true"], name
    # Only the proxy is reached from outside, and by default from this machine alone.
    assert [(name, [port.host_ip for port in each.ports]) for name, each in services.items() if each.ports] == [
        ("proxy", ["127.0.0.1"])
    ]
    for server in (services["server-1"], services["server-2"]):
        writable = {volume.target for volume in server.volumes if not volume.read_only}
        assert writable == {"/cache"}
        assert set(server.environment) <= {variable(name) for name in FIELDS}
        assert server.environment[variable("memory.database")] == DATABASE


def test_the_stack_does_not_start_without_a_password_for_its_database() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        composed({})
    assert "DATABASE_PASSWORD" in str(refused.value.stderr)
