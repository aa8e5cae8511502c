"""The server's configuration for the data plane: one JSON document, whose unknown fields the data plane refuses."""

from __future__ import annotations

import json
from dataclasses import asdict

from alipes import _core
from alipes.config.listener_options import ApiKeyOptions, Endpoint, TlsOptions
from alipes.config.options import ModelOptions, ServerOptions
from alipes.config.record_options import LogOptions, PayloadOptions, TraceOptions
from alipes.server.key_file import all_keys
from alipes.server.memory_shares import MemoryShares
from alipes.server.payloads.exchange import headers_to_copy

# Version of the documents; the data plane refuses any other.
SCHEMA = 1


def server_config(options: ServerOptions) -> str:
    """The data plane's configuration, as JSON."""
    shares = MemoryShares.now(options)
    return json.dumps(
        {
            "schema": SCHEMA,
            "id": options.id,
            "triton_release": options.triton_release,
            "http": _endpoint(options.http),
            "grpc": _endpoint(options.grpc),
            "metrics": _endpoint(options.metrics),
            "network_threads": options.network_threads,
            "paths": asdict(options.paths),
            "http_max_input_bytes": options.http_max_input_bytes,
            "inflight_bytes": shares.inflight_bytes,
            "http_header_forward_pattern": options.http_header_forward_pattern,
            "grpc_header_forward_pattern": options.grpc_header_forward_pattern,
            "grpc_max_request_bytes": options.grpc_max_request_bytes,
            "grpc_max_expanded_bytes": options.grpc_max_expanded_bytes,
            "grpc_compression_level": options.grpc_compression_level,
            "connections": asdict(options.connections) | {"memory_bytes": shares.connection_bytes},
            "ends_idle": options.idle_exit_s > 0,
            "keepalive": asdict(options.keepalive),
            "api_keys": _api_keys(options.api_keys),
            "http_restricted": [asdict(restriction) for restriction in options.http_restricted],
            "grpc_restricted": [asdict(restriction) for restriction in options.grpc_restricted],
            "http_cors_origins": options.http_cors_origins,
            "http_allowed_hosts": options.http_allowed_hosts,
            "live_at_root": bool(options.repository.stores or options.repository.model_list),
            "graph": options.graph.document,
            "control_mode": options.repository.control_mode,
            "strict_readiness": options.repository.strict_readiness,
            "allow_client_shm": options.allow_client_shm,
            "shared_memory_max_regions": options.shared_memory_max_regions,
            "rate_limit": _rate_limit(options.model),
            "response_cache_bytes": options.response_cache_bytes,
            "log": _log(options.log),
            "trace": _trace(options.trace),
            "payload_log": _payload_log(options.payloads),
            "cloud_events": asdict(options.cloud_events),
            "counter_latencies": options.counter_latencies,
            "histogram_latencies": options.histogram_latencies,
            "summary_quantiles": options.summary_quantiles,
            "request_histograms": options.request_histograms,
            "cpu_metrics": options.cpu_metrics,
            "gpu_metrics": _gpu_metrics(options),
            "turn_clock": options.turn_clock,
        }
    )


def _api_keys(options: ApiKeyOptions | None) -> dict[str, object] | None:
    """The keys that clients show, those of the file among them; None where the server asks for none."""
    return None if options is None else {"keys": all_keys(options), "open": options.open_groups}


def _gpu_metrics(options: ServerOptions) -> dict[str, object]:
    """The GPUs that are watched, those that CUDA lets this process see; none where nobody could look."""
    wanted = options.gpu_metrics.enabled and options.metrics.enabled
    uuids = [gpu.uuid for gpu in _core.gpus()] if wanted else []
    return {"uuids": uuids, "interval_ms": options.gpu_metrics.interval_ms}


def _rate_limit(model: ModelOptions) -> list[dict[str, object]] | None:
    """How much there is of each resource that was given a limit; None where nothing is limited."""
    if model.rate_limit == "off":
        return None
    return [{"name": name, "count": count} for name, count in model.limits().items()]


def _log(log: LogOptions) -> dict[str, object]:
    """The settings by the names that clients know them by."""
    return {
        "log_file": log.file,
        "log_info": log.info,
        "log_warning": log.warning,
        "log_error": log.error,
        "log_verbose_level": log.verbose_level,
        "log_format": log.format,
    }


def _trace(trace: TraceOptions) -> dict[str, object]:
    destination: dict[str, object] = {"mode": "triton", "path": trace.file}
    if trace.mode == "opentelemetry":
        destination = {
            "mode": "opentelemetry",
            "url": trace.url,
            "resource": trace.resource,
            "certificate": trace.certificate or None,
            "max_queue_size": trace.max_queue_size,
            "schedule_delay_ms": trace.schedule_delay_ms,
            "max_export_batch_size": trace.max_export_batch_size,
        }
    values = {
        "level": trace.level,
        "rate": trace.rate,
        "count": trace.count,
        "log_frequency": trace.log_frequency,
    }
    return {"values": values, "destination": destination}


def _payload_log(payloads: PayloadOptions) -> dict[str, object] | None:
    """What the data plane copies; None where nobody takes it."""
    if not payloads.url:
        return None
    return {
        "requests": payloads.mode != "response",
        "responses": payloads.mode != "request",
        "sample": payloads.sample,
        "headers": headers_to_copy(payloads.headers, payloads.redacted),
        "redacted": payloads.redacted,
        "max_bytes": payloads.max_bytes,
    }


def _endpoint(endpoint: Endpoint) -> dict[str, object]:
    return {
        "enabled": endpoint.enabled,
        "address": endpoint.address,
        "port": endpoint.port,
        "reuse_port": endpoint.reuse_port,
        "tls": _tls(endpoint.tls),
    }


def _tls(tls: TlsOptions) -> dict[str, object] | None:
    """The files that encrypt connections; None where they are not encrypted."""
    if not tls.enabled and not tls.mutual:
        return None
    return {"certificate": tls.certificate, "key": tls.key, "client_roots": tls.roots if tls.mutual else None}
