"""Writes JSON schemas for kubeconform -strict: of Kubernetes, from kubernetes-validate, and of KServe, from its models.

usage: schemas.py KSERVE OUT, where KSERVE is the folder that the package kserve is installed in
"""

import ast
import json
import pathlib
import re
import sys

import kubernetes_validate

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


def main() -> None:
    kserve, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
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


main()
