"""The table of synonyms: what Docker, BentoML, FastAPI, uvicorn, TorchServe, hey, wrk and others call it."""

from __future__ import annotations

from typing import Final

from alipes.synonyms.deployment import APPLY, BY_DESCRIPTION, DEPLOY, IMAGE, SYSTEMD
from alipes.synonyms.in_python import CLIENT, CLIENT_KEYWORDS, KEYWORDS_OF_MODEL, KEYWORDS_OF_SERVE, PACKAGE, SERVER
from alipes.synonyms.synonym import Place, Synonym
from alipes.synonyms.topics import TOPICS

__all__ = ["SYNONYMS"]

_REPOSITORY: Final = "name the folder of models by itself: alipes serve FOLDER"
_OF_ONE_FILE: Final = "; alipes repo add models iris.onnx makes a folder of one file"
_INSTANCES: Final = (
    "a function says @alipes.model(instances=4), and a folder's config.pbtxt instance_group { count: 4 }" + _OF_ONE_FILE
)
_DEVICE: Final = (
    'a function says @alipes.model(device="gpu"), and a folder\'s config.pbtxt instance_group { kind: KIND_GPU }'
    + _OF_ONE_FILE
)
_EXPECTED: Final = "alipes infer MODEL without values says what a model expects"
_BATCH: Final = "a function says @alipes.model(max_batch_size=8), and a folder's config.pbtxt max_batch_size: 8"
_DELAY: Final = (
    "a function says @alipes.model(max_batch_size=8, max_delay=0.005), and a folder's config.pbtxt "
    "dynamic_batching { max_queue_delay_microseconds: 5000 }"
)
_OPEN: Final = "/docs and /openapi.json are there for functions; --enable-docs-url has them for all models"

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
        "describe inspect get show metadata schema signature", says=_EXPECTED + ", alipes models list what there is"
    ),
    Synonym(
        "chain chains pipeline pipelines ensemble ensembles transformer transformers dag",
        meant="alipes help chains",
    ),
    Synonym(
        "trace traces tracing",
        says="alipes serve FOLDER --trace-config triton,file=trace.json --trace-config level=TIMESTAMPS writes traces "
        "(alipes help monitoring)",
    ),
    Synonym(
        "list ls model",
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
        "delete rm rmi del remove uninstall",
        says="alipes models unload MODEL takes a model of a server out of service, rm -r FOLDER/MODEL removes its "
        "files, alipes deploy remove NAME what runs in a cluster",
    ),
    Synonym(
        "exec attach ssh",
        says="docker exec and kubectl exec run a program beside a server; alipes infer MODEL asks a model",
    ),
    Synonym(
        "port-forward expose forward tunnel",
        says="kubectl port-forward service/NAME 8000 reaches a server in a cluster; --url says where a server is",
    ),
    Synonym(
        "bench benchmark benchmarks perf perf-test load-test loadtesting stress stress-test throughput latency measure "
        "wrk hey ab k6 locust",
        meant="alipes loadtest",
    ),
    Synonym("perf-analyzer perfanalyzer genai-perf", meant="alipes perf_analyzer"),
    Synonym("model-analyzer analyze analyzer", meant="alipes model_analyzer"),
    Synonym("optimize optimise autotune auto-tune search sweep", meant="alipes tune"),
    Synonym(
        "predict call query request invoke inference test try curl http grpc shell repl console chat",
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
    Synonym(
        "v",
        says="-V prints the version; -v belongs behind alipes serve",
    ),
    Synonym("gpu gpus nvidia cuda device devices", says=_DEVICE),
    Synonym("env environment variables settings", meant="alipes config explain"),
    Synonym("cache", says="alipes serve FOLDER --cache-config=local,size=BYTES keeps responses"),
    Synonym(
        "login logout auth",
        says="alipes deploy image --push takes the logins of docker and podman; alipes serve --api-key asks for a key",
    ),
    Synonym(
        "notebook jupyter ipython colab",
        says="in a notebook, alipes.Server(function) serves a function, and alipes.Server('FOLDER') models",
    ),
    Synonym(
        "backend backends platform platforms framework frameworks formats",
        says="alipes repo list FOLDER shows what serves each model, alipes help files which files are served",
    ),
    Synonym("plugin plugins extension extensions", meant="alipes help"),
    Synonym("upgrade update self-update", says="pip install --upgrade alipes brings the newest release"),
)

_ASK: Final = (
    Synonym(
        "data d input inputs i body payload file f args arguments values",
        says="write values behind the name: alipes ask NAME sound=[1,2], alipes ask NAME @FILE, or a JSON object",
    ),
    Synonym("model m model-name", says="name it by itself: alipes ask NAME, alipes infer MODEL"),
)

_BATCH_RUN: Final = (
    Synonym("input inputs i data", says="name the inputs by themselves: alipes batch run MODEL INPUTS --output FOLDER"),
    Synonym("model m", says="name the model by itself: alipes batch run MODEL INPUTS --output FOLDER"),
)

_CLIENT: Final = (
    Synonym("new create write init python module sdk codegen", meant="alipes client generate"),
    Synonym("ask call predict", meant="alipes ask"),
    Synonym("infer query", meant="alipes infer"),
)

_CONFIGURED: Final = (
    "alipes config explain prints the server's values, alipes config explain FOLDER/MODEL a model's; "
    "alipes infer MODEL without values says what it expects"
)
_CONFIG: Final = (
    Synonym("show get print dump view cat list ls describe", says=_CONFIGURED),
    Synonym("validate check lint verify test", meant="alipes repo list --check"),
    Synonym("set edit init create new", says="flags go into alipes.toml, what is a model's own into its config.pbtxt"),
)

_MODELS: Final = (
    Synonym("ls get index status", meant="alipes models list"),
    Synonym("describe info metadata show inspect config signature schema inputs", says=_EXPECTED),
    Synonym("reload", meant="alipes models load"),
    Synonym("remove rm delete stop", meant="alipes models unload"),
    Synonym("add push register import", says="alipes repo add FOLDER FILE puts a model into a folder"),
)

_REPO: Final = (
    Synonym("ls", meant="alipes repo list"),
    Synonym(
        "show describe info inspect metadata",
        says="alipes repo list FOLDER shows the models of a folder; of a running server, " + _EXPECTED,
    ),
    Synonym("check validate lint verify", meant="alipes repo list --check"),
    Synonym("push register import upload", meant="alipes repo add"),
    Synonym("init create new", says="a repository is a folder: alipes repo add FOLDER FILE makes it"),
    Synonym("remove rm delete del", says="a model is a folder: rm -r FOLDER/MODEL removes it"),
    Synonym("serve", meant="alipes serve"),
)

_ROLLOUT: Final = (
    Synonym(
        "status history undo pause resume restart abort promote",
        says="alipes models traffic MODEL shows and sets the versions' shares; of a cluster, alipes deploy status NAME "
        "and alipes deploy rollback NAME",
    ),
)

_SERVE: Final = (
    Synonym("bind ip", meant="--host"),
    Synonym("listen address addr", meant="--host / --port"),
    Synonym("p", meant="--port"),
    Synonym("c f config-file", meant="--config"),
    Synonym(
        "name", says='--id names the server; a function says @alipes.model(name="..."), a folder is named as its model'
    ),
    Synonym("grpc", meant="--allow-grpc / --grpc-port"),
    Synonym("http", meant="--allow-http / --http-port"),
    Synonym("metrics prometheus", meant="--allow-metrics / --metrics-port"),
    Synonym("json log-json", meant="--log-format=JSON"),
    Synonym(
        "timeout timeouts timeout-secs timeout-s request-timeout timeout-seconds inference-timeout max-time",
        says="a function says @alipes.model(timeout=30), and each client how long it waits; --idle-timeout-secs and "
        "--exit-timeout-secs are for connections and the end (alipes help timeouts)",
    ),
    Synonym("http-only no-http2", says="--allow-grpc=false leaves gRPC out, --allow-http=false HTTP"),
    Synonym("grpc-only", says="--allow-http=false leaves HTTP out"),
    Synonym("uds unix-socket socket unix", says="--http-address unix:PATH listens at a Unix socket"),
    Synonym(
        "token tokens auth auth-token enable-auth require-auth bearer bearer-token password basic-auth apikey secret",
        meant="--api-key",
    ),
    Synonym("username user", says="the server asks for keys, not for names: --api-key KEY"),
    Synonym(
        "prefix root-path base-path base-url url-prefix route route-prefix api-prefix",
        says='a function is at /NAME, which @alipes.model(name="...") names; a proxy adds a prefix',
    ),
    Synonym("title description", says="the first line of a function's docstring describes it at /docs"),
    Synonym("env e environment env-file", says="models have the variables of the shell: A=b alipes serve app.py"),
    Synonym(
        "production prod foreground no-reload interactive", says="it is what alipes serve does; leave the flag out"
    ),
    Synonym(
        "limit-concurrency max-concurrency max-concurrent-requests max-inflight max-queue queue-size max-queue-size "
        "backlog job-queue-size",
        says="config.pbtxt limits how many wait: dynamic_batching { default_queue_policy { max_queue_size: 16 } }",
    ),
    Synonym(
        "max-requests max-requests-jitter limit-max-requests worker-lifetime",
        says="processes of models are not replaced by age: leave the flag out",
    ),
    Synonym("warmup warm-up", says="a folder's config.pbtxt says model_warmup"),
    Synonym(
        "quantize quantization dtype precision half fp16 int8 trust-remote-code",
        says="a model is served with the numbers that its file has: convert the file",
    ),
    Synonym("dry-run check validate", says="alipes repo list FOLDER --check says what would not be served"),
    Synonym(
        "requirements requirement pip python venv conda virtualenv install packages",
        says="functions run in the Python that alipes is installed in: pip install what they import",
    ),
    Synonym(
        "backend runtime platform framework model-type model-format engine",
        says='a file says what serves it by its ending, and a folder\'s config.pbtxt as backend: "onnxruntime"',
    ),
    Synonym("color colour no-color no-colour colors", says="the variable NO_COLOR=1 leaves colours out"),
    Synonym(
        "access-log access-logs log-requests log-requests-level request-log", says="-v writes a line for each request"
    ),
    Synonym("health-path health health-check", says="GET /v2/health/ready and /v2/health/live are there"),
    Synonym(
        "cpus cpu num-cpus cores memory memory-limit mem",
        says="the system limits a server: taskset -c 0-3 alipes serve FOLDER, or systemd and containers",
    ),
    Synonym("open browser", says="open http://localhost:8000/docs in a browser once it is ready"),
    Synonym("graceful-timeout shutdown-timeout timeout-graceful-shutdown", meant="--exit-timeout-secs"),
    Synonym("keep-alive keepalive timeout-keep-alive", meant="--idle-timeout-secs"),
    Synonym(
        "watch autoreload auto-reload hot-reload live-reload dev development",
        says="--reload follows the source of an app, --model-control-mode=poll a folder of models",
    ),
    Synonym("cache response-cache", meant="--cache-config=local,size=BYTES"),
    Synonym("max-body-size max-request-size limit-request-body max-content-length", meant="--http-max-input-size"),
    Synonym("shm shared-memory", meant="--allow-client-shm"),
    Synonym(
        "tls ssl https use-ssl use-tls http-tls http-ssl enable-tls enable-ssl enable-https",
        says="--http-use-ssl --http-server-cert FILE --http-server-key FILE encrypts HTTP (alipes help tls)",
    ),
    Synonym(
        "grpc-tls grpc-ssl",
        says="--grpc-use-ssl --grpc-server-cert FILE --grpc-server-key FILE encrypts gRPC (alipes help tls)",
    ),
    Synonym(
        "no-docs disable-docs no-ui no-swagger no-openapi",
        says="--enable-docs-url=false, the default, leaves models of folders out of /docs; functions are always there",
    ),
    Synonym("tls-cert ssl-cert ssl-certfile cert certfile certificate", meant="--http-server-cert"),
    Synonym("key", meant="--api-key / --http-server-key"),
    Synonym("tls-key ssl-key ssl-keyfile keyfile private-key", meant="--http-server-key"),
    Synonym("tls-ca ssl-ca ssl-ca-certs ca cacert ca-cert", meant="--http-root-cert"),
    Synonym(
        "cors cors-origin allow-cors enable-cors allow-origin allow-origins allowed-origins cors-allow-origins",
        meant="--cors-origins",
    ),
    Synonym("proxy-headers forwarded-allow-ips trusted-hosts", meant="--trusted-proxies"),
    Synonym("docs ui swagger openapi docs-url", says=_OPEN),
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
    Synonym("debug log-level loglevel", says="-v says more, -vv still more, -q less"),
    Synonym("d", says="alipes launch FOLDER starts a server that goes on; alipes serve -v says more"),
    Synonym("silent s", meant="--quiet"),
    Synonym("output out log logfile o", meant="--log-file"),
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

_STOP: Final = (
    Synonym(
        "url port host address p u server http-port",
        says="alipes stop takes the handle that alipes launch wrote; Ctrl-C in its terminal ends alipes serve",
    ),
    Synonym(
        "all force f 9 kill name id pid",
        says="name the handle that alipes launch wrote: alipes stop HANDLE; Ctrl-C in its terminal ends alipes serve",
    ),
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

SYNONYMS: Final[dict[Place, tuple[Synonym, ...]]] = {
    "alipes": _COMMANDS,
    "alipes ask": _ASK,
    "alipes infer": _ASK,
    "alipes batch run": _BATCH_RUN,
    "alipes client": _CLIENT,
    "alipes config": _CONFIG,
    "alipes deploy": DEPLOY,
    "alipes deploy apply": APPLY,
    "alipes deploy image": IMAGE,
    "alipes deploy systemd": SYSTEMD,
    "alipes help": TOPICS,
    "deployments": BY_DESCRIPTION,
    "alipes models": _MODELS,
    "alipes repo": _REPO,
    "alipes rollout": _ROLLOUT,
    "alipes serve": _SERVE,
    "alipes stop": _STOP,
    "alipes loadtest": _LOADTEST,
    "clients": _CLIENTS,
    "alipes.serve": KEYWORDS_OF_SERVE,
    "@alipes.model": KEYWORDS_OF_MODEL,
    "import alipes": PACKAGE,
    "alipes.Client": CLIENT_KEYWORDS,
    "client.": CLIENT,
    "server.": SERVER,
}
"""Rows by the place where the words are typed. No word is twice in a place, nor is one that the place has itself."""
