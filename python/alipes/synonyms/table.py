"""The table of synonyms: what Docker, BentoML, FastAPI, uvicorn, TorchServe, hey, wrk and others call it."""

from __future__ import annotations

from typing import Final

from alipes.synonyms.synonym import Place, Synonym

__all__ = ["SYNONYMS"]

_COMMANDS: Final = (
    Synonym("serving start run up server dev host app tritonserve", meant="alipes serve"),
    Synonym(
        "build containerize containerise docker dockerize dockerise container image oci podman package pack bundle",
        meant="alipes deploy image",
    ),
    Synonym("dockerfile", meant="alipes deploy image --dockerfile"),
    Synonym("k8s kubernetes kubectl", meant="alipes deploy kubernetes"),
    Synonym("docker-compose compose", meant="alipes deploy compose"),
    Synonym("service unit systemctl systemd", meant="alipes deploy systemd"),
    Synonym("kserve", meant="alipes deploy kserve"),
    Synonym("proxy gateway envoy load-balancer", meant="alipes deploy envoy"),
    Synonym("chart helm", meant="alipes deploy helm"),
    Synonym("grafana dashboards", meant="alipes deploy dashboards"),
    Synonym(
        "doctor diagnose debug why slow profile troubleshoot",
        says="alipes explain MODEL says why its requests wait, alipes advise what limits a server",
    ),
    Synonym("top htop watch follow dashboard nvidia-smi", meant="alipes monitor"),
    Synonym(
        "ui gui web webui open browse browser swagger openapi docs playground",
        says="open http://localhost:8000/ of a running server in a browser; functions can be tried out at /docs",
    ),
    Synonym("health healthcheck health-check healthz ping ready live alive info ps", meant="alipes status"),
    Synonym(
        "list ls show describe inspect model",
        says="alipes models list shows what a server has, alipes repo list FOLDER what a folder holds",
    ),
    Synonym(
        "logs log tail",
        says="alipes serve writes its log to the terminal; of a launched server alipes status names the file, and of "
        "one in a cluster alipes deploy logs prints it",
    ),
    Synonym(
        "validate check lint verify",
        says="alipes repo list FOLDER --check says what is wrong in a folder of models, alipes config explain FOLDER "
        "what is read from one model's folder",
    ),
    Synonym("load", says="alipes models load MODEL loads a model, alipes loadtest MODEL measures a server"),
    Synonym("unload", meant="alipes models unload"),
    Synonym(
        "bench benchmark benchmarks perf perf-test load-test loadtesting stress stress-test throughput latency measure "
        "wrk hey ab k6 locust",
        meant="alipes loadtest",
    ),
    Synonym("perf-analyzer perfanalyzer genai-perf", meant="alipes perf_analyzer"),
    Synonym("model-analyzer analyze analyzer", meant="alipes model_analyzer"),
    Synonym("optimize optimise autotune auto-tune search sweep", meant="alipes tune"),
    Synonym(
        "predict call query request invoke inference test try",
        says="alipes ask NAME calls a function, alipes infer MODEL asks a model",
    ),
    Synonym("new create scaffold template project bootstrap startproject", meant="alipes init"),
    Synonym("demo tour tutorial example examples hello getting-started", meant="alipes quickstart"),
    Synonym("add import register archive", meant="alipes repo add"),
    Synonym("push upload publish", says="alipes deploy image --push HOST/NAME:TAG pushes an image to a registry"),
    Synonym(
        "pull download fetch",
        says="alipes serve takes addresses too: s3://bucket/models, gs://, az://, hf://, oci:// and https://",
    ),
    Synonym(
        "export convert compile onnx",
        says="a script exports models: alipes.ModelRepository(FOLDER).add(NAME, PLATFORM).export_version(MODEL)",
    ),
    Synonym("daemon background detach", meant="alipes launch"),
    Synonym("kill down shutdown terminate quit", meant="alipes stop"),
    Synonym(
        "restart reload",
        says="alipes stop and alipes launch start a server again; alipes serve app.py --reload follows changes",
    ),
    Synonym("metrics prometheus statistics", says="alipes stats shows counters; curl localhost:8002/metrics has all"),
    Synonym("sdk codegen generate", meant="alipes client generate"),
    Synonym("upgrade update self-update", says="pip install --upgrade alipes brings the newest release"),
)

_DEPLOY: Final = (
    Synonym("docker build container containerize oci podman", meant="alipes deploy image"),
    Synonym("dockerfile", meant="alipes deploy image --dockerfile"),
    Synonym("push publish", meant="alipes deploy image --push"),
    Synonym("k8s kubectl kube", meant="alipes deploy kubernetes"),
    Synonym("docker-compose", meant="alipes deploy compose"),
    Synonym("service unit systemctl", meant="alipes deploy systemd"),
    Synonym("chart charts", meant="alipes deploy helm"),
    Synonym("up start run create install", meant="alipes deploy apply"),
    Synonym("down delete destroy uninstall stop", meant="alipes deploy remove"),
    Synonym("list ls ps get", meant="alipes deploy status"),
    Synonym("undo revert", meant="alipes deploy rollback"),
    Synonym("grafana prometheus alerts", meant="alipes deploy dashboards"),
    Synonym("proxy gateway load-balancer", meant="alipes deploy envoy"),
    Synonym("gke gcp google", says="a script makes clusters of Google Cloud: alipes.cloud.google"),
)

_MODELS: Final = (
    Synonym("ls show get index status", meant="alipes models list"),
    Synonym("reload", meant="alipes models load"),
    Synonym("remove rm delete stop", meant="alipes models unload"),
    Synonym("add push register", says="alipes repo add FOLDER FILE puts a model into a folder"),
)

_REPO: Final = (
    Synonym("ls show", meant="alipes repo list"),
    Synonym("check validate lint verify", meant="alipes repo list --check"),
    Synonym("push register import upload", meant="alipes repo add"),
    Synonym("init create new", says="a repository is a folder: alipes repo add FOLDER FILE makes it"),
)

_REPOSITORY: Final = "name the folder of models by itself: alipes serve FOLDER"
_INSTANCES: Final = (
    "a function says @alipes.model(instances=4), and a folder's config.pbtxt instance_group { count: 4 }"
)
_DEVICE: Final = (
    'a function says @alipes.model(device="gpu"), and a folder\'s config.pbtxt instance_group { kind: KIND_GPU }'
)
_BATCH: Final = "a function says @alipes.model(max_batch_size=8), and a folder's config.pbtxt max_batch_size: 8"
_DELAY: Final = (
    "a function says @alipes.model(max_batch_size=8, max_delay=0.005), and a folder's config.pbtxt "
    "dynamic_batching { max_queue_delay_microseconds: 5000 }"
)
_OPEN: Final = "/docs and /openapi.json are there for functions; --enable-docs-url has them for all models"

_SERVE: Final = (
    Synonym("bind ip", meant="--host"),
    Synonym("listen address addr", meant="--host / --port"),
    Synonym("p", meant="--port"),
    Synonym("c f config-file", meant="--config"),
    Synonym("name", meant="--id"),
    Synonym("grpc", meant="--allow-grpc / --grpc-port"),
    Synonym("http", meant="--allow-http / --http-port"),
    Synonym("metrics prometheus", meant="--allow-metrics / --metrics-port"),
    Synonym("json log-json", meant="--log-format=JSON"),
    Synonym("timeout", meant="--exit-timeout-secs / --idle-timeout-secs"),
    Synonym("graceful-timeout shutdown-timeout timeout-graceful-shutdown", meant="--exit-timeout-secs"),
    Synonym("keep-alive keepalive timeout-keep-alive", meant="--idle-timeout-secs"),
    Synonym(
        "watch autoreload auto-reload hot-reload live-reload dev development",
        says="--reload follows the source of an app, --model-control-mode=poll a folder of models",
    ),
    Synonym("cache response-cache", meant="--cache-config=local,size=BYTES"),
    Synonym("max-body-size max-request-size limit-request-body max-content-length", meant="--http-max-input-size"),
    Synonym("shm shared-memory", meant="--allow-client-shm"),
    Synonym("tls ssl https use-ssl use-tls", meant="--http-use-ssl"),
    Synonym("tls-cert ssl-cert ssl-certfile cert certfile certificate", meant="--http-server-cert"),
    Synonym("tls-key ssl-key ssl-keyfile key keyfile private-key", meant="--http-server-key"),
    Synonym("tls-ca ssl-ca ssl-ca-certs ca cacert ca-cert", meant="--http-root-cert"),
    Synonym(
        "cors cors-origin allow-cors enable-cors allow-origin allow-origins allowed-origins cors-allow-origins",
        meant="--cors-origins",
    ),
    Synonym("proxy-headers forwarded-allow-ips trusted-hosts", meant="--trusted-proxies"),
    Synonym("docs ui swagger openapi", says=_OPEN),
    Synonym(
        "model models m repo repository path folder dir directory model-path models-dir model-repo app f-app",
        says=_REPOSITORY,
    ),
    Synonym(
        "workers w n-workers replicas instances num-workers workers-per-device processes nproc instance-count",
        says=_INSTANCES,
    ),
    Synonym("device devices gpu gpus cuda accelerator", says=_DEVICE),
    Synonym("max-batch-size batch-size max-batch batch batching enable-batching", says=_BATCH),
    Synonym(
        "batch-timeout max-batch-delay max-latency max-latency-ms max-delay max-queue-delay batch-delay", says=_DELAY
    ),
    Synonym("threads num-threads concurrency", says="--http-thread-count counts network threads; " + _INSTANCES),
    Synonym("debug log-level loglevel d", says="-v says more, -vv still more, -q less"),
    Synonym("silent s", meant="--quiet"),
    Synonym("output out log logfile access-log o", meant="--log-file"),
    Synonym("daemon daemonize background detach", says="alipes launch FOLDER starts a server that goes on"),
    Synonym("trace tracing otel otlp", meant="--trace-config"),
    Synonym("url", says="alipes serve starts a server; --host and --port say where"),
)

_LOADTEST: Final = (
    Synonym("requests num-requests total-requests number request-count iterations", meant="--count"),
    Synonym("time seconds z d test-time run-time", meant="--duration"),
    Synonym("t", says="--threads counts threads that send, --duration seconds"),
    Synonym("qps rps r request-rate throughput arrival-rate", meant="--rate"),
    Synonym("users vus clients connections parallel workers concurrency-range", meant="--callers"),
    Synonym("output out o f report results export", says="--save FILE writes the results: .json, .csv, .html, .png …"),
    Synonym("batch-size b max-batch-size rows", meant="--batch"),
    Synonym("input input-data inputs", meant="--data"),
    Synonym("shapes input-shape", meant="--shape"),
    Synonym("model model-name m name", says="name the model by itself: alipes loadtest MODEL"),
    Synonym("version x", meant="--model-version"),
    Synonym("warmup warm-up-time warmup-time", meant="--warm-up"),
    Synonym("protocol i grpc", says="--url grpc://localhost:8001 measures gRPC, --url http://localhost:8000 HTTP"),
    Synonym("streaming", meant="--stream"),
    Synonym("post endpoint route", meant="--path"),
    Synonym("payload request-body json-body", meant="--body"),
    Synonym("max-threads", meant="--threads"),
    Synonym("timeout", meant="--silence"),
    Synonym("shm", meant="--shared-memory"),
    Synonym("measurement-interval interval", meant="--window"),
    Synonym("stability-percentage tolerance", meant="--within"),
    Synonym("seed random", says="values are random and the same each time; --zero sends zeros, --data FILE your own"),
)

_CLIENTS: Final = (
    Synonym("host address addr server endpoint u port http-port grpc-port", meant="--url"),
    Synonym("headers H", meant="--header"),
    Synonym("token auth bearer", meant="--api-key"),
    Synonym("ca cacert ca-cert ca-certs tls-ca ssl-ca root-cert roots cafile", meant="--tls-roots"),
    Synonym("cert certfile client-cert ssl-cert ssl-certfile", meant="--tls-cert"),
    Synonym("client-key keyfile ssl-key ssl-keyfile", meant="--tls-key"),
    Synonym("tls ssl https use-tls use-ssl", says="--url https://HOST:PORT is encrypted, and grpcs:// for gRPC"),
    Synonym(
        "insecure k no-verify skip-verify",
        says="--tls-roots FILE trusts a certificate that the system does not; nothing turns the check off",
    ),
    Synonym("grpc", says="--url grpc://localhost:8001 asks over gRPC"),
    Synonym("format", meant="--json"),
    Synonym("version", meant="--model-version"),
)

_KEYWORDS_OF_SERVE: Final = (
    Synonym("address bind ip", meant="host="),
    Synonym(
        "workers replicas instances num_workers processes",
        says="@alipes.model(instances=4) above the function, or instance_group in the model's config.pbtxt",
    ),
    Synonym(
        "batch_size max_batch_size batch max_batch batching",
        says="@alipes.model(max_batch_size=8) above the function, or max_batch_size in the model's config.pbtxt",
    ),
    Synonym("models model repository folder path model_repository", says="it is the first argument, without a name"),
    Synonym("log logfile output", meant="log_file="),
    Synonym("background daemon blocking block", says="`alipes.launch` starts a server that outlives the script"),
    Synonym("env environment", says="the server has the environment of this script"),
)

_KEYWORDS_OF_MODEL: Final = (
    Synonym("batch-size max-batch batch-max-size batchsize", meant="max_batch_size="),
    Synonym("workers num-workers replicas processes num-replicas workers-per-device count", meant="instances="),
    Synonym("batching dynamic-batching batchable", meant="batch="),
    Synonym(
        "max-latency max-latency-ms batch-timeout batch-delay max-wait max-queue-delay max-delay-ms max-delay-s "
        "max-batch-delay batch-max-delay",
        says="did you mean max_delay=? It takes seconds: max_delay=0.005",
    ),
    Synonym("gpu gpus cuda accelerator", says='did you mean device="gpu"?'),
    Synonym("model-name route path endpoint url id", meant="name="),
    Synonym("max-concurrency concurrent-requests concurrent threads max-concurrent", meant="concurrency="),
    Synonym("preprocess pre preprocessor before-call", meant="before="),
    Synonym("postprocess post postprocessor", meant="after="),
    Synonym("setup on-startup startup on-start init lifespan load", meant="start="),
    Synonym("teardown on-shutdown shutdown on-stop cleanup close", meant="stop="),
    Synonym("timeout-s timeout-secs max-time deadline request-timeout", says="did you mean timeout=? It takes seconds"),
    Synonym("examples sample", meant="example="),
    Synonym("max-delay-secs", meant="max_delay="),
)

SYNONYMS: Final[dict[Place, tuple[Synonym, ...]]] = {
    "alipes": _COMMANDS,
    "alipes deploy": _DEPLOY,
    "alipes models": _MODELS,
    "alipes repo": _REPO,
    "alipes serve": _SERVE,
    "alipes loadtest": _LOADTEST,
    "clients": _CLIENTS,
    "alipes.serve": _KEYWORDS_OF_SERVE,
    "@alipes.model": _KEYWORDS_OF_MODEL,
}
"""Rows by the place where the words are typed. No word is twice in a place, nor is one that the place has itself."""
