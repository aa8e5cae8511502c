"""The talk's pieces on this machine: transformer, predictor, explainer, canary, scale to zero, and what KServe gets.

    pip install 'alipes[examples,explain,deploy,plots]'
    python examples/kserve/run.py

A tokenizer stands in front of a small network of BERT's shape, an explainer in front of the tokenizer; each is a server
of its own. Then a new version of the network gets more and more of the requests, is judged, and is promoted; another
one, which is broken, is taken back. At last the predictor runs only while somebody asks for it. One picture shows the
run. Nothing is fetched: the example makes the network.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from alipes import Client, Server
from alipes.errors import Unsupported
from alipes.rollout import Look, RolloutEnd, RolloutPlan, run_rollout
from alipes.rollout.verdict import Tolerance
from network import write
from picture import draw
from record import Record
from scaling import from_zero, replay
from traffic import Traffic

FOLDER = Path(__file__).parent
ASKED = (
    "The delivery was quick and the bread was very tasty",
    "This lamp was not sturdy",
    "My chair was not really noisy but the staff was rude",
)
TOLERANCE = Tolerance(errors=0.05, latency=5.0, drift=0.45)
"""Version 2 answers otherwise than version 1 on purpose; version 3 says the same to everything."""


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("kserve"), help="folder for what is written; a new one")
    parser.add_argument("--step", type=float, default=3.0, help="seconds of a step of the canary (3)")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True)
    models = asked.output / "models"

    begun_s = time.monotonic()
    for version, share in write(models).items():
        print(f"version {version} of the network tells {100 * share:.0f} % of held-out reviews right")
    with predictor(models) as bert, transformer(bert) as tokenizer:
        ask(tokenizer)
        explain(tokenizer)
        with Record(bert.url) as record, Traffic(tokenizer.grpc_url, record) as traffic:
            for version, before in ((2, 1), (3, 2)):
                add(models, version, bert)
                end = canary(bert, before, version, asked.step, record)
                decided = f"version {version} is {'promoted' if end.promoted else 'taken back'}"
                record.mark(decided)
                print(f"{decided}: {end.reason}")
            time.sleep(asked.step)  # so that the picture shows what follows
        failed = sum(traffic.failed.values())
        print(f"meanwhile {traffic.answered} requests were answered, and {failed} failed")
        for text, count in traffic.failed.items():
            print(f"  {count} x {text}")
        lose(bert, tokenizer, models)
    scale(models, record, asked.output / "kserve.png")
    deploy(asked.output)
    print(f"done in {time.monotonic() - begun_s:.0f} s")
    if failed:
        sys.exit("requests failed while versions changed")


def predictor(models: Path, grpc_port: int = 0) -> Server:
    """The server of the network."""
    ports = {"http_port": 0, "grpc_port": grpc_port, "metrics_port": 0}
    return Server(str(models), host="127.0.0.1", model_control_mode="explicit", load_model=["*"], **ports)


def transformer(bert: Server) -> Server:
    """The server of the tokenizer, as KServe starts it: it learns by flags where the predictor is."""
    return Server(
        str(FOLDER / "tokenizer.py"),
        host="127.0.0.1",
        port=0,
        server_args=[*behind(bert), "--enable_predictor_health_check"],
    )


def behind(server: Server) -> list[str]:
    """The flags by which an app knows what it stands in front of, in KServe's words."""
    return [f"--predictor_host={server.grpc}", "--predictor_protocol=grpc-v2"]


def post(server: Server, path: str, body: object) -> tuple[int, dict[str, object]]:
    """The status and the document of an answer."""
    try:
        with urlopen(Request(f"{server.url}{path}", json.dumps(body).encode()), timeout=60) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def ask(tokenizer: Server) -> None:
    """Reviews go to the transformer as texts, and come back as classes."""
    _, answer = post(tokenizer, "/v1/models/reviews:predict", {"instances": list(ASKED)})
    for text, (_, good) in zip(ASKED, answer["predictions"], strict=True):
        print(f"{100 * good:3.0f} % good: {text}")


def explain(tokenizer: Server) -> None:
    """The explainer says on which words that rests; it asks the transformer."""
    if find_spec("shap") is None:
        print("no explanations: pip install 'alipes[explain]'")
        return
    with Server(str(FOLDER / "explainer.py"), host="127.0.0.1", port=0, server_args=behind(tokenizer)) as explainer:
        _, answer = post(explainer, "/v1/models/reviews:explain", {"instances": [ASKED[0]]})
        (found,) = answer["explanations"]
        words = sorted(zip(found["attributions"], found["parts"], strict=True), key=lambda one: -abs(one[0]))
        print("it rests on " + ", ".join(f"{word.strip()} ({share:+.2f})" for share, word in words[:3]))


def add(models: Path, version: int, bert: Server) -> None:
    """A further version comes into the repository and is loaded; the weights give it nothing yet."""
    with Client(bert.url) as client:
        client.set_traffic("bert", {version - 1: 1})
        shutil.copytree(models.parent / "next" / str(version), models / "bert" / str(version))
        client.load("bert")


def canary(bert: Server, stable: int, candidate: int, step_s: float, record: Record) -> RolloutEnd:
    """The candidate gets more and more of the requests, while its outcomes are compared with those of the other."""
    plan = RolloutPlan(
        "bert",
        stable=stable,
        candidate=candidate,
        steps=(10, 50),
        step_s=step_s,
        last_step_s=20 * step_s,
        look_s=step_s / 6,
        tolerance=TOLERANCE,
    )
    shares: list[float] = []

    def watch(look: Look) -> None:
        if look.share not in shares:
            begin(look.share)

    def begin(share: float) -> None:
        shares.append(share)
        record.mark(f"version {candidate}: {share:g} %")
        print(f"version {candidate} gets {share:g} % of the requests")

    with Client(bert.url) as client:
        begin(plan.steps[0])
        return run_rollout(client, plan, watch=watch)


def lose(bert: Server, tokenizer: Server, models: Path) -> None:
    """The predictor goes away behind its transformer, and comes back at the same port."""
    port = int(bert.grpc.rpartition(":")[2])
    bert.stop()
    status, answer = post(tokenizer, "/v1/models/reviews:predict", {"instances": [ASKED[0]]})
    print(f"without its predictor the transformer answers {status}: {answer['error']}")
    with predictor(models, port):
        status, _ = post(tokenizer, "/v1/models/reviews:predict", {"instances": [ASKED[0]]})
        print(f"with it again: {status}")


def scale(models: Path, record: Record, path: Path) -> None:
    """The predictor comes with the first request and goes when nobody asks; then the run is drawn."""
    came = from_zero(models)
    print(
        f"without a server the first request takes {came.start_s:.1f} s, the next ones {1e3 * came.service_s:.0f} ms; "
        f"{len(came.requests)} requests over {len(came.runs)} starts, and none failed"
    )
    day = replay(came.start_s, came.service_s)
    print(
        f"Knative would order up to {day.replicas.max()} such servers for {day.arrived.max():.0f} requests per second"
    )
    try:
        print(f"{draw(record, came, day, path)}: the run in one picture")
    except Unsupported as error:
        print(f"no picture: {error}")


def deploy(output: Path) -> None:
    """The objects by which KServe runs the same, with a predictor that scales on one request at a time, and to zero."""
    if find_spec("yaml") is None:
        print("no objects for KServe: pip install 'alipes[deploy]'")
        return
    file = output / "reviews.yaml"
    command = [sys.executable, "-m", "alipes", "deploy", "kserve", "--values", FOLDER / "values.yaml", "--output", file]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"{file} is what KServe gets: alipes deploy apply {file}")


if __name__ == "__main__":
    main()
