"""The configuration that auto_complete_config may fill in."""

from __future__ import annotations

import json
from typing import Any, Optional

_INPUT_PROPERTIES = ("name", "data_type", "dims", "optional")
_OUTPUT_PROPERTIES = ("name", "data_type", "dims")
_WHERE = "auto-complete-config function for model"


class ModelConfig:
    """A model's configuration with the operations that auto-complete allows."""

    __slots__ = ("_config",)

    def __init__(self, model_config: str) -> None:
        self._config: dict[str, Any] = json.loads(model_config)
        for name in ("input", "output"):
            self._config.setdefault(name, [])
        self._config.setdefault("max_batch_size", 0)

    def as_dict(self) -> dict[str, Any]:
        """The configuration itself, not a copy."""
        return self._config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Sets the batch limit; raises ValueError if the configuration asks for more."""
        configured = self._config["max_batch_size"]
        if configured > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {configured}, but in {_WHERE} '{self._name}' specified "
                f"max_batch_size {max_batch_size}"
            )
        self._config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Turns on dynamic batching; raises ValueError where another scheduler is configured."""
        for other in ("sequence_batching", "ensemble_scheduling"):
            if self._config.get(other) is not None:
                raise ValueError(
                    f"Configuration specified {other}, but in {_WHERE} '{self._name}' tried to set dynamic_batching"
                )
        if self._config.get("dynamic_batching") is None:
            self._config["dynamic_batching"] = {}

    def set_model_transaction_policy(self, transaction_policy_dict: dict[str, Any]) -> None:
        """Sets the transaction policy, `{"decoupled": bool}`; raises ValueError if the configuration differs."""
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(
                    f"model transaction property in {_WHERE} '{self._name}' contains property other than 'decoupled'"
                )
        wanted = transaction_policy_dict.get("decoupled", False)
        policy = self._config.get("model_transaction_policy")
        if policy is None:
            self._config["model_transaction_policy"] = dict(transaction_policy_dict)
        elif policy.get("decoupled", False) and not wanted:
            raise ValueError(
                f"trying to change decoupled property in {_WHERE} '{self._name}', which is already set to "
                f"'{policy['decoupled']}'."
            )
        else:
            policy["decoupled"] = wanted

    def add_input(self, input: dict[str, Any]) -> None:
        """Adds an input, or fills in the one of its name."""
        self._add("input", input, _INPUT_PROPERTIES, "'name', 'data_type', 'dims' and 'optional'")

    def add_output(self, output: dict[str, Any]) -> None:
        """Adds an output, or fills in the one of its name."""
        self._add("output", output, _OUTPUT_PROPERTIES, "'name', 'data_type' and 'dims'")

    @property
    def _name(self) -> str:
        return str(self._config.get("name", ""))

    def _add(self, kind: str, tensor: dict[str, Any], allowed: tuple[str, ...], allowed_text: str) -> None:
        where = f"{_WHERE} '{self._name}'"
        name = tensor.get("name")
        for key in tensor:
            if key not in allowed:
                raise ValueError(f"{kind} '{name or ''}' in {where} contains property other than {allowed_text}.")
        if "name" not in tensor:
            raise ValueError(f"{kind} in {where} is missing 'name' property.")
        for key in ("data_type", "dims"):
            if key not in tensor:
                raise ValueError(f"{kind} '{name}' in {where} is missing '{key}' property.")
        existing = self._find(kind, name)
        if existing is None:
            self._config[kind].append(dict(tensor))
            return
        self._fill(existing, tensor, kind)

    def _find(self, kind: str, name: Any) -> Optional[dict[str, Any]]:
        return next((entry for entry in self._config[kind] if entry.get("name") == name), None)

    def _fill(self, existing: dict[str, Any], tensor: dict[str, Any], kind: str) -> None:
        name, configured = tensor["name"], existing.get("data_type", "TYPE_INVALID")
        if configured not in ("TYPE_INVALID", "", tensor["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype {configured} for {kind} "
                f"'{name}', model provides {tensor['data_type']}"
            )
        if existing.get("dims") and list(existing["dims"]) != list(tensor["dims"]):
            raise ValueError(
                f"model '{self._name}', tensor '{name}': the model expects dims {list(tensor['dims'])} but the model "
                f"configuration specifies dims {list(existing['dims'])}"
            )
        if "optional" in tensor:
            if existing.get("optional") and not tensor["optional"]:
                raise ValueError(
                    f"unable to load model '{self._name}', configuration expects 'optional' of input '{name}' to be "
                    f"{existing['optional']}, model provides {tensor['optional']}"
                )
            existing["optional"] = tensor["optional"]
        existing["data_type"] = tensor["data_type"]
        existing["dims"] = list(tensor["dims"])
