"""From the configuration of a model to the specification of one version.

This is the second of the two stages in which Triton reports errors. An error here makes the version unavailable, with
the error's `reason`; the first stage is `alipes.config.poll`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from alipes.backends.base import Backend, Draft
from alipes.backends.ensemble.backend import EnsembleBackend
from alipes.config.gpus import Gpu, Gpus, GpuUse, usable_gpus
from alipes.config.normalize import normalize_instance_groups
from alipes.config.options import ServerOptions
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig, copy_config
from alipes.config.spec import Held, to_spec
from alipes.config.support import check_support, missing_servants, unknown_families
from alipes.config.validate import check_declared, check_instances
from alipes.config.validate.graph_steps import check_graph_step
from alipes.config.validate.identity import check_runtime
from alipes.config.validate.instance_groups import check_instance_groups, check_resources

__all__ = ["BackendOf", "LoadPlan", "Machine", "adapt_version", "prepare_version"]

BackendOf = Callable[[str], Callable[[Draft], Backend]]
"""Finds a backend by the name that configurations give it; raises ModelLoadError where there is none."""

Machine = Callable[[], Iterable[Gpu]]
"""Lists the GPUs that this process may use."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What is needed to load one version.

    Attributes:
        version: The version.
        config: The configuration as it is answered, complete.
        config_json: The same as the HTTP answer's text.
        spec: The specification for the data plane, to be written as JSON.
        notices: One line for each field that is set and does nothing here.
        private: Parts of error texts that clients do not see, each with what stands for it.
    """

    version: int
    config: ModelConfig
    config_json: str
    spec: dict[str, Any]
    notices: tuple[str, ...]
    private: Mapping[str, str] = field(default_factory=dict)


def prepare_version(draft: Draft, *, backend_of: BackendOf, machine: Machine = tuple) -> LoadPlan:
    """Complete and check a model's configuration for one version.

    Args:
        draft: The version; its configuration is what `poll_model` returned, and is not changed.
        backend_of: Finds the backend that the configuration names.
        machine: Lists the GPUs that this process may use; called where an instance may run on one. None by default.

    Raises:
        ConfigError: If the configuration is wrong or does not fit the model.
        ModelLoadError: If the backend or what it needs is missing, the model cannot be read, or the load is cancelled.
    """
    made, options = copy_config(draft.config), draft.options
    composed = made.platform == ENSEMBLE
    moved: list[str] = []
    make_backend: Callable[[Draft], Backend] = EnsembleBackend
    if not composed:
        check_runtime(made, draft.folder, draft.version)
        make_backend = backend_of(made.backend)
        moved = _settle_instances(made, options, _gpus_for(made, make_backend, machine))
    backend = make_backend(replace(draft, config=made, folder=draft.folder.absolute()))
    if not options.model.strict_config:
        backend.complete()
    check_declared(made)
    check_graph_step(made, options.graph)
    unsupported = check_support(made) + unknown_families(made) + missing_servants(made, options)
    engine = backend.engine()
    check_instances(made, draft.folder, options.model)
    held = Held(options.model.delay_scheduler, options.model.backlog_delay_scheduler)
    namespace = draft.neighbours.namespace
    # A configuration that came with a load request names the inputs, whatever lies in the store.
    spec = to_spec(made, draft.version, draft.folder, engine.spec, namespace=namespace, held=held)
    spec["is_bare"] = draft.is_bare and not draft.config.input
    notices = (*moved, *unsupported, *engine.notices)
    return LoadPlan(draft.version, made, spec["config_json"], spec, notices, engine.private)


def adapt_version(
    plan: LoadPlan,
    config: ModelConfig,
    folder: Path,
    options: ServerOptions,
    *,
    backend_of: BackendOf,
    machine: Machine = tuple,
) -> LoadPlan:
    """The plan of a loaded version whose model has other instance groups, or another version policy, than before.

    Args:
        plan: What the version was loaded by.
        config: What `poll_model` returned now; in all else it is as it was.
        folder: The model's folder.
        options: The server's options.
        backend_of: Finds the backend that the configuration names.
        machine: Lists the GPUs that this process may use; called where an instance may run on one. None by default.

    Raises:
        ConfigError: If the instances cannot be had.
        ModelLoadError: If the backend or what it needs is missing.
    """
    made = copy_config(plan.config)
    made.ClearField("instance_group")
    made.instance_group.extend(config.instance_group)
    made.version_policy.CopyFrom(config.version_policy)
    make_backend = backend_of(made.backend)
    moved = _settle_instances(made, options, _gpus_for(made, make_backend, machine))
    check_resources(made, options.model)
    unsupported = check_support(made)
    backend = make_backend(Draft(made, folder.absolute(), plan.version, options))
    engine = backend.adapt(plan.spec["engine"])
    spec = to_spec(made, plan.version, folder, engine, namespace=plan.spec["namespace"])
    spec["is_bare"] = plan.spec["is_bare"]
    return LoadPlan(plan.version, made, spec["config_json"], spec, (*moved, *unsupported), plan.private)


def _gpus_for(config: ModelConfig, make_backend: Callable[[Draft], Backend], machine: Machine) -> Gpus:
    """The GPUs that a backend can run the instances of a model on; none where none of them would be on one."""
    use = GpuUse.EXPLICIT
    if isinstance(make_backend, type) and issubclass(make_backend, Backend):
        use = make_backend.gpu_use()
    names_one = any(group.kind == group.KIND_GPU or group.gpus for group in config.instance_group)
    # Listing them loads the driver of the GPUs.
    lists = use is GpuUse.PREFERRED or (names_one and use is not GpuUse.NEVER)
    return usable_gpus(machine() if lists else (), use)


def _settle_instances(config: ModelConfig, options: ServerOptions, gpus: Gpus) -> list[str]:
    """Settle the instance groups, in place; a notice for each that was moved to the CPU."""
    moved = normalize_instance_groups(config, options.model.gpu_fallback, gpus)
    check_instance_groups(config, gpus)
    return moved
