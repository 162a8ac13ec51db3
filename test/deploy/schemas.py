"""Writes JSON schemas for kubeconform -strict: of Kubernetes, from kubernetes-validate, and of custom resources, from
their definitions.

usage: schemas.py DEFINITIONS OUT, where DEFINITIONS has files of CustomResourceDefinitions
"""

import json
import pathlib
import sys

import kubernetes_validate
import yaml

KINDS = [
    "configmap-v1",
    "deployment-apps-v1",
    "horizontalpodautoscaler-autoscaling-v2",
    "networkpolicy-networking-v1",
    "persistentvolumeclaim-v1",
    "poddisruptionbudget-policy-v1",
    "service-v1",
]
VERSION = "v1.37.0"


def local(text: str) -> str:
    """References into the same file."""
    return text.replace("/api/_definitions.json#/", "#/").replace("_definitions.json#/", "#/")


def strict(schema):
    """A schema of a definition, as JSON schema that knows no other fields."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: strict(value) for name, value in schema.items() if not name.startswith("x-kubernetes-")}
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    # A property may have the name `properties`.
    if schema.get("type") == "object" and "properties" in schema and not keeps:
        result.setdefault("additionalProperties", False)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        result["type"] = [schema["type"], "null"]
    return result


def defined(folder: pathlib.Path):
    """Schemas of the versions of each definition, by the names that kubeconform looks for."""
    for file in folder.glob("*.yaml"):
        for definition in yaml.safe_load_all(file.read_text()):
            spec = definition["spec"]
            group = spec["group"].split(".")[0]
            for version in spec["versions"]:
                name = f"{spec['names']['kind'].lower()}-{group}-{version['name']}"
                yield name, strict(version["schema"]["openAPIV3Schema"])


def main() -> None:
    custom, out = (pathlib.Path(argument) for argument in sys.argv[1:3])
    source = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"{VERSION}-local-strict"
    definitions = json.loads(local((source / "_definitions.json").read_text()))["$defs"]
    out.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        schema = json.loads(local((source / f"{kind}.json").read_text()))
        (out / f"{kind}.json").write_text(json.dumps({**schema, "$defs": definitions}))
    for name, schema in defined(custom):
        (out / f"{name}.json").write_text(json.dumps(schema))


main()
