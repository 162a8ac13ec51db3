"""Writes JSON schemas for kubeconform -strict: of Kubernetes, from kubernetes-validate; of KServe, from its models; and
of custom resources, from their definitions. Writes definitions for an API server from the models of KServe, whose own
definitions are in no registry.

usage: schemas.py KSERVE DEFINITIONS OUT, where KSERVE is the folder that the package kserve is installed in, and
DEFINITIONS has files of CustomResourceDefinitions
"""

import ast
import json
import pathlib
import re
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


def kserve_models(folder: pathlib.Path):
    for file in folder.glob("kserve/models/v1*.py"):
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.ClassDef):
                continue
            values = {
                target.id: ast.literal_eval(statement.value)
                for statement in node.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
                if isinstance(target, ast.Name) and target.id in ("openapi_types", "attribute_map")
            }
            if len(values) == 2:
                yield node.name, values


def schema_of(name: str, core: dict) -> dict:
    simple = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    if name in simple:
        return {"type": simple[name]}
    items = re.fullmatch(r"list\[(.*)\]", name)
    if items:
        return {"type": "array", "items": schema_of(items[1], core)}
    values = re.fullmatch(r"dict\(str, (.*)\)", name)
    if values:
        return {"type": "object", "additionalProperties": schema_of(values[1], core)}
    for prefix in ("io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."):
        if name.startswith("V1") and prefix + name[2:] in core:
            return {"$ref": f"#/$defs/{prefix}{name[2:]}"}
    return {"$ref": f"#/$defs/{name}"} if name in core else {}


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


def structural(schema: dict, known: dict) -> dict:
    """A schema as definitions have it: without references, and with one type at each place."""
    if "$ref" in schema:
        return structural(known[schema["$ref"].removeprefix("#/$defs/")], known)
    if "oneOf" in schema:
        # A quantity, or the name or number of a port.
        return {"x-kubernetes-int-or-string": True}
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds == []:
        return {"x-kubernetes-preserve-unknown-fields": True}
    result = {"type": kinds[0], "nullable": "null" in kinds}
    for name in ("enum", "format", "required"):
        if name in schema:
            result[name] = [value for value in schema[name] if value is not None] if name == "enum" else schema[name]
    if kinds[0] == "array":
        result["items"] = structural(schema.get("items", {}), known)
    if "properties" in schema:
        result["properties"] = {name: structural(value, known) for name, value in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = structural(schema["additionalProperties"], known)
    elif kinds[0] == "object":
        result["x-kubernetes-preserve-unknown-fields"] = True
    return result


def definition(kind: str, version: str, schema: dict, known: dict) -> dict:
    group, plural = "serving.kserve.io", f"{kind.lower()}s"
    written = structural(schema, known)
    # The API server itself knows the metadata.
    written["properties"]["metadata"] = {"type": "object"}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": written}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Cluster" if kind.startswith("Cluster") else "Namespaced",
            "versions": [served],
        },
    }


def main() -> None:
    kserve, custom, out = (pathlib.Path(argument) for argument in sys.argv[1:4])
    source = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"{VERSION}-local-strict"
    definitions = json.loads(local((source / "_definitions.json").read_text()))["$defs"]
    out.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        schema = json.loads(local((source / f"{kind}.json").read_text()))
        (out / f"{kind}.json").write_text(json.dumps({**schema, "$defs": definitions}))
    models = dict(kserve_models(kserve))
    known = {**definitions, **dict.fromkeys(models)}
    for name, values in models.items():
        types, names = values["openapi_types"], values["attribute_map"]
        properties = {names[attribute]: schema_of(kind, known) for attribute, kind in types.items()}
        known[name] = {"type": "object", "properties": properties, "additionalProperties": False}
    for name in ("V1alpha1ClusterServingRuntime", "V1beta1InferenceService"):
        version, kind = re.fullmatch(r"(V1(?:alpha1|beta1))(.*)", name).groups()
        file = out / f"{kind.lower()}-serving-{version.lower()}.json"
        file.write_text(json.dumps({**known[name], "$defs": known}))
        written = definition(kind, version.lower(), known[name], known)
        (out / "kserve").mkdir(exist_ok=True)
        (out / f"kserve/{kind.lower()}.json").write_text(json.dumps(written))
    for name, schema in defined(custom):
        (out / f"{name}.json").write_text(json.dumps(schema))


main()
