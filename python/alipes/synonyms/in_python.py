"""The rows of Python: keywords, names of the package, methods of its clients."""

from __future__ import annotations

from typing import Final

from alipes.synonyms.synonym import Synonym

__all__ = ["CLIENT", "CLIENT_KEYWORDS", "KEYWORDS_OF_MODEL", "KEYWORDS_OF_SERVE", "PACKAGE", "SERVER"]

KEYWORDS_OF_SERVE: Final = (
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

KEYWORDS_OF_MODEL: Final = (
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
    Synonym("next then pipeline chain depends requires", says="did you mean before= or after=? See alipes help chains"),
    Synonym("stream streaming decoupled generator", says="a function that yields its values streams them"),
    Synonym("description doc docs title summary help", says="the docstring of the function describes it at /docs"),
    Synonym(
        "cache cached response-cache ttl",
        says="alipes serve --cache-config=local,size=BYTES keeps responses of the models in folders; functools.cache "
        "keeps what a function returns",
    ),
    Synonym("version tag", says='a function has no version: put it into its name, as in name="score_v2"'),
)

PACKAGE: Final = (
    Synonym(
        "run start up host run-app run-server",
        says="alipes.Server(THING).run() serves until Ctrl-C, `with alipes.serve(THING) as server:` for a block",
    ),
    Synonym(
        "pipeline chain ensemble compose depends transformer step steps sequential graph dag before after",
        says="alipes help chains says how models are connected: before=, after=, alipes.call, alipes.Predictor, "
        "ensembles",
    ),
    Synonym(
        "load get-model load-onnx open from-pretrained read",
        says='alipes.Server("FOLDER") serves models, alipes.Client().infer("MODEL", inputs) asks one, '
        "@alipes.model above a function serves code that loads one",
    ),
    Synonym(
        "runner runners inference-session session",
        says='alipes.Client("localhost:8000") asks a model of a server, alipes.call("NAME", ...) one of the same '
        "server (alipes help chains)",
    ),
    Synonym(
        "testclient test-client",
        says="call the function itself, or in a test: with alipes.Server(function) as server: server.client()",
    ),
    Synonym("request-class stream-response streaming-response", says="a function that yields its values streams them"),
    Synonym(
        "app fastapi flask application api post get route endpoint service",
        says="@alipes.model above a function or a class serves it; `alipes serve app.py` starts the server",
    ),
    Synonym("bentoml deployment function task", meant="@alipes.model"),
    Synonym("connect http grpc tritonclient httpclient grpcclient inferenceserverclient", meant="alipes.Client"),
    Synonym(
        "predict infer ask invoke",
        says='alipes.Client().call("NAME", ...) calls a function, .infer("MODEL", ...) a model',
    ),
    Synonym(
        "load-model register add-model",
        says='alipes.Server("FOLDER") serves a folder, client.load("MODEL") loads a model of it',
    ),
    Synonym("version", meant="alipes.__version__"),
    Synonym(
        "save export save-model",
        says="alipes.ModelRepository(FOLDER).add(NAME, PLATFORM).export_version(MODEL) exports a model",
    ),
    Synonym("repository repo", meant="alipes.ModelRepository"),
    Synonym(
        "inferinput inferrequestedoutput infer-input infer-requested-output",
        says='alipes.Client().infer("MODEL", {"INPUT": array}) takes arrays by their names',
    ),
    Synonym(
        "io ndarray numpy-ndarray tensor",
        says="annotations say what a function takes and returns: def score(rows: numpy.ndarray) -> list[float]",
    ),
    Synonym("image picture", says="a function takes pictures as PIL.Image.Image: def label(picture: Image) -> str"),
    Synonym(
        "httpexception http-exception abort bentomlexception",
        says='a function raises alipes.NotFound("no such user") or another error of alipes, each with its status',
    ),
    Synonym(
        "basehandler base-handler handler predictor-class lit-api litapi",
        says="@alipes.model above a class serves it: its object is made once, and called for each request",
    ),
    Synonym(
        "router api-router apirouter include-router mount",
        says="@alipes.model above a function serves it at /NAME, so that an app has no routes to declare",
    ),
    Synonym(
        "batch batching batcher",
        says="@alipes.model(max_batch_size=8) puts requests together; import alipes.batch runs a model over files",
    ),
    Synonym("deploy", says="import alipes.deploy writes what runs a server elsewhere, as `alipes deploy` does"),
    Synonym(
        "sequence sequences",
        says='alipes.Client().infer("MODEL", inputs, sequence_id=1, sequence_start=True) begins a sequence',
    ),
)

CLIENT_KEYWORDS: Final = (
    Synonym(
        "host port url uri server endpoint base-url", says='the address is the first argument: Client("localhost:8000")'
    ),
    Synonym("token auth bearer password key apikey", meant="api_key="),
    Synonym(
        "ssl verify cert ca-cert ssl-context insecure ca cafile ca-file cacert root-certificates roots certificate "
        "private-key certificate-chain creds ssl-options",
        says='tls=alipes.client.Tls(roots="FILE") says which certificates count; the address begins with https:// or '
        "grpcs:// (alipes help tls)",
    ),
    Synonym("verbose concurrency", says="leave it out"),
    Synonym(
        "protocol scheme", says='the address says it: Client("http://localhost:8000"), Client("grpc://localhost:8001")'
    ),
    Synonym("retries max-retries", says="retry=alipes.client.Retry(times=3)"),
)

CLIENT: Final = (
    Synonym(
        "predict run invoke request query post generate",
        says='call("NAME", ...) calls a function, infer("MODEL", inputs) a model',
    ),
    Synonym("health ping status is-alive healthy", meant="is_ready()"),
    Synonym("list index list-functions functions get-models", meant="models()"),
    Synonym("get-statistics metrics", meant="statistics()"),
    Synonym("describe describe-model model-info info get-model inputs", meant='signature("MODEL")'),
    Synonym(
        "register-model register add-model upload-model",
        says='load("MODEL") loads a model of the repository; alipes repo add FOLDER FILE puts one there',
    ),
    Synonym(
        "scale-workers scale set-workers",
        says="@alipes.model(instances=4) above a function, or instance_group in config.pbtxt, says how many there are",
    ),
    Synonym("batch predict-batch infer-batch", says='infer("MODEL", inputs) takes any number of rows at once'),
    Synonym(
        "async-infer async-call infer-async call-async submit map future futures aio asynchronous acall apredict "
        "predict-async",
        says="alipes.AsyncClient has the same methods to await: await client.call(...), and asyncio.gather for many",
    ),
    Synonym(
        "infer-stream call-stream stream-infer stream-call async-stream-infer start-stream iterate",
        says='call("NAME", ...) of a function that yields is an iterator over its values; stream("MODEL", inputs) of a '
        "decoupled model. Both ask over gRPC",
    ),
    Synonym("model get", says='call("NAME", ...) calls a function, infer("MODEL", inputs) a model'),
    Synonym("connect open start", says="a client connects with its first call"),
    Synonym("disconnect stop shutdown", meant="close()"),
)

SERVER: Final = (
    Synonym("serve serve-forever run-forever join block listen loop", says="run() serves until Ctrl-C"),
    Synonym("start up", says="the server runs already; run() serves until Ctrl-C"),
    Synonym("shutdown terminate kill exit down", meant="stop()"),
    Synonym("port", meant="http_port or grpc_port"),
    Synonym("address host endpoint base-url uri", meant="url, http or grpc"),
    Synonym("is-ready healthy health is-alive", meant="ready()"),
    Synonym("logs output stdout stderr", meant="log"),
    Synonym("predict request post", says='client() asks it: server.client().call("NAME", ...)'),
)
