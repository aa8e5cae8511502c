"""Flags on what models run with: backends, devices, memory, the response cache."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import MAX_BYTES, NO_GPU, Flag

__all__ = ["BACKENDS", "DEVICES", "PATHS", "RESPONSE_CACHE"]

BACKENDS: Final[tuple[Flag, ...]] = (
    Flag(
        "backend-config",
        "list",
        (),
        "Setting of a backend, `<backend>,<key>=<value>`, or of all, `<key>=<value>`; see the table of settings.",
        common=True,
    ),
    Flag(
        "backend-directory",
        "str",
        "",
        "Folder of backend libraries.",
        ignored="backends are Python packages, found by name",
    ),
    Flag(
        "repoagent-directory", "str", "", "Folder of repository agents.", ignored="the one agent, checksum, is built in"
    ),
)

DEVICES: Final[tuple[Flag, ...]] = (
    Flag(
        "rate-limit",
        "choice",
        "off",
        "`execution_count` lets executions in as there is of the resources that instance groups take.",
        choices=("off", "execution_count"),
        option="model.rate_limit",
    ),
    Flag("rate-limit-resource", "list", (), "Resource of the rate limiter, `<name>:<count>[:<device>]`."),
    Flag(
        "host-policy",
        "list",
        (),
        "Placement of instances, `<name>,<key>=<value>`.",
        ignored="instances run where the system puts them",
    ),
    Flag("pinned-memory-pool-byte-size", "int", 1 << 28, "Bytes of pinned memory.", ignored=NO_GPU, high=MAX_BYTES),
    Flag("cuda-memory-pool-byte-size", "list", (), "Bytes of GPU memory, `<device>:<bytes>`.", ignored=NO_GPU),
    Flag("cuda-virtual-address-size", "list", (), "Bytes of GPU address space, `<device>:<bytes>`.", ignored=NO_GPU),
    Flag("min-supported-compute-capability", "str", "6.0", "Oldest GPU to use.", ignored="GPUs from 6.0 on are used"),
    Flag(
        "buffer-manager-thread-count",
        "int",
        0,
        "Threads that copy tensors.",
        ignored="tensors are copied once, by the thread that runs the batch",
    ),
    Flag("enable-peer-access", "bool", True, "Let GPUs read each other's memory.", ignored=NO_GPU),
    Flag(
        "allow-client-shm",
        "bool",
        False,
        "Let clients register shared memory, for tensors that need not travel. They are trusted with "
        "it: a client may read what the server's user has there.",
        option="allow_client_shm",
    ),
    Flag(
        "shared-memory-max-regions",
        "int",
        4096,
        "Regions of shared memory that clients may have registered at a time.",
        option="shared_memory_max_regions",
        low=1,
        high=65_536,
    ),
)

_OURS: Final = "Not a flag of Triton."

PATHS: Final[tuple[Flag, ...]] = (
    Flag(
        "execution-threads",
        "choice",
        "measured",
        "Threads on which models of the server's own process execute: `measured` runs those that take less than "
        "0.3 ms on the network thread that took the request, others in a pool; `network` and `pool` always do the one. "
        f"A slow model on a network thread holds up the thread's other connections. {_OURS}",
        choices=("measured", "network", "pool"),
        option="paths.execution_threads",
    ),
    Flag(
        "ensemble-steps",
        "choice",
        "measured",
        "How ensembles execute: `measured` takes a batch through all steps at once where all models are quick; "
        f"`single` takes each request step by step. {_OURS}",
        choices=("measured", "single"),
        option="paths.ensemble_steps",
    ),
    Flag(
        "worker-memory",
        "choice",
        "full",
        "Shared memory between the server and the workers of Python models: `full` reserves 16 GiB of addresses for "
        "the requests of a model and 8 GiB for the responses of each worker, which cost nothing until they are used; "
        f"`small` reserves 64 MiB for either, and workers get few requests ahead. {_OURS}",
        choices=("full", "small"),
        option="paths.worker_memory",
    ),
)

RESPONSE_CACHE: Final[tuple[Flag, ...]] = (
    Flag(
        "cache-config",
        "list",
        (),
        "Setting of a cache, `<cache>,<key>=<value>`; `local,size=<bytes>` keeps answers for models that want it.",
    ),
    Flag("cache-directory", "str", "", "Folder of cache libraries.", ignored="the only cache is the server's own"),
    Flag(
        "response-cache-byte-size",
        "int",
        0,
        "Bytes of the response cache; older form of --cache-config.",
        high=MAX_BYTES,
        option="response_cache_bytes",
    ),
)
