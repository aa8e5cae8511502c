"""The configuration as `auto_complete_config` gets it: it may add what is missing, and contradict nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

__all__ = ["ModelConfig"]

# Properties that a tensor may have, and their names in the refusal of others.
_OF_INPUT: Final = (("name", "data_type", "dims", "optional"), "'name', 'data_type', 'dims' and 'optional'")
_OF_OUTPUT: Final = (("name", "data_type", "dims"), "'name', 'data_type' and 'dims'")
_NEEDED: Final = ("name", "data_type", "dims")


class ModelConfig:
    """A model's configuration, to be completed by the model itself."""

    def __init__(self, model_config: str) -> None:
        """Takes the configuration as JSON."""
        self._model_config: dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        """All of it, to be read."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Sets the largest batch.

        Raises:
            ValueError: If the configuration has a larger one.
        """
        found = self._model_config.get("max_batch_size", 0)
        if found > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {found}, but in auto-complete-config function for model "
                f"'{self._name}' specified max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = int(max_batch_size)

    def set_dynamic_batching(self) -> None:
        """Chooses dynamic batching; settings of it that are there stay.

        Raises:
            ValueError: If the configuration chose another scheduler.
        """
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{other}', but auto-complete-config function for "
                    f"model '{self._name}' tries to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: Mapping[str, Any]) -> None:
        """Adds an input, or completes the one of that name.

        Args:
            input: ``name``, ``data_type`` such as ``TYPE_FP32``, ``dims``; and ``optional`` if need be.

        Raises:
            ValueError: If it has other properties, lacks one, or contradicts the configuration.
        """
        self._add("input", input, *_OF_INPUT)

    def add_output(self, output: Mapping[str, Any]) -> None:
        """Adds an output, or completes the one of that name.

        Args:
            output: ``name``, ``data_type`` such as ``TYPE_FP32``, ``dims``.

        Raises:
            ValueError: If it has other properties, lacks one, or contradicts the configuration.
        """
        self._add("output", output, *_OF_OUTPUT)

    def set_model_transaction_policy(self, transaction_policy_dict: Mapping[str, Any]) -> None:
        """Says whether a request may have any number of responses: ``{"decoupled": True}``.

        Raises:
            ValueError: If it says something else too, or the configuration says the opposite.
        """
        if any(key != "decoupled" for key in transaction_policy_dict):
            raise ValueError(
                f"model transaction property in auto-complete-config function for model '{self._name}' contains "
                "property other than 'decoupled'."
            )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        wanted = bool(transaction_policy_dict["decoupled"])
        if policy.setdefault("decoupled", wanted) != wanted:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model '{self._name}', which is "
                f"already set to '{policy['decoupled']}'."
            )

    @property
    def _name(self) -> str:
        return str(self._model_config.get("name", ""))

    def _add(self, kind: str, tensor: Mapping[str, Any], properties: tuple[str, ...], named: str) -> None:
        place = f"in auto-complete-config function for model '{self._name}'"
        called = f"{kind} '{tensor['name']}'" if "name" in tensor else kind
        if any(key not in properties for key in tensor):
            raise ValueError(f"{called} {place} contains property other than {named}.")
        for needed in _NEEDED:
            if needed not in tensor:
                raise ValueError(f"{called} {place} is missing '{needed}' property.")
        added = {**tensor, "dims": [int(size) for size in tensor["dims"]]}
        declared: list[dict[str, Any]] = self._model_config.setdefault(kind, [])
        for found in declared:
            if found["name"] == added["name"]:
                return self._complete(kind, found, added)
        declared.append(added)

    def _complete(self, kind: str, found: dict[str, Any], added: dict[str, Any]) -> None:
        expected = found.get("data_type", "TYPE_INVALID")
        if expected not in ("TYPE_INVALID", added["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype {expected} for {kind} "
                f"'{added['name']}', model provides {added['data_type']}"
            )
        if found.get("dims") and found["dims"] != added["dims"]:
            self._contradict("dims", found, added)
        if "optional" in added and found.get("optional", added["optional"]) != added["optional"]:
            self._contradict("optional", found, added)
        found.update(added)

    def _contradict(self, key: str, found: Mapping[str, Any], added: Mapping[str, Any]) -> NoReturn:
        raise ValueError(
            f"model '{self._name}', tensor '{added['name']}': the model expects {key} {added[key]} but the model "
            f"configuration specifies {key} {found[key]}"
        )
