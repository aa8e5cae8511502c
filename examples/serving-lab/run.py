"""Runs the whole lab: every variant is started, checked and measured in turn with the others, in one command.

    pip install 'alipes[examples,plots]'
    python examples/serving-lab/run.py

It prints the table that the lab has people fill in by hand, and the requests by batch size as the servers count them,
and draws both. Variants whose packages are not installed, such as PyTorch, are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import make_weights
import onnxruntime
from results import Batches, Measured, Results
from rich.console import Console
from senders import Load, ask
from served import Served
from tables import show
from variants import VARIANTS, Answer, Variant, best, pixels

HERE = Path(__file__).parent
# Native steps read JPEG within a bound of Pillow, and other engines add up in another order.
TOLERANCE = 0.02
# The first requests pay for what is allocated once.
_WARM_UP_S = 0.2


class WrongAnswer(Exception):
    """A variant says something else of the picture than the network does."""


class Running:
    """A variant that runs, with its request and the answer that it must repeat."""

    def __init__(self, variant: Variant, served: Served, folder: Path, expected: Answer) -> None:
        """Asks it once.

        Raises:
            WrongAnswer: If it says something else than it must.
        """
        self.variant, self.served = variant, served
        request = variant.request((folder / "test_image.jpeg").read_bytes())
        body = ask(served.port, request)
        self.answer = variant.answer(body)
        far = abs(self.answer.probability - expected.probability) > TOLERANCE
        if self.answer.label != expected.label or far:
            raise WrongAnswer(f"{variant.name} says {self.answer}, and the network {expected}")
        self._request, self._expected = folder / f"{variant.name}.request", folder / f"{variant.name}.answer"
        self._request.write_bytes(request)
        self._expected.write_bytes(body)

    def measure(self, senders: int, seconds: float) -> Measured:
        """Loads it for so long.

        Raises:
            subprocess.CalledProcessError: If the senders fail; they say why.
        """
        before_s = self.served.cpu_s()
        files = [str(self._request), str(self._expected)]
        options = [f"--port={self.served.port}", f"--senders={senders}", f"--seconds={seconds}"]
        command = [sys.executable, str(HERE / "senders.py"), *files, *options]
        load = Load(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
        cpu_ms = (self.served.cpu_s() - before_s) / load.requests * 1e3
        return Measured(self.variant.name, senders, load.rate, load.median_ms, load.p99_ms, cpu_ms)

    def batches(self) -> list[Batches]:
        """Executions by batch size of each of its models, as the server counts them."""
        return [
            Batches.of(self.variant.name, model, batch)
            for model in self.variant.models
            for batch in self.served.statistics(model)["batch_stats"]
        ]


def prepare(folder: Path, layers: int, with_torch: bool) -> None:
    """Copies the lab into a folder, which no others are in, and writes its networks there."""
    if folder.exists() and not (folder / "food.py").exists():
        sys.exit(f"{folder} is no copy of the lab, and would be replaced by one: name another --output")
    shutil.rmtree(folder, ignore_errors=True)
    kept = shutil.ignore_patterns(".*", "__pycache__", "serving-lab")
    shutil.copytree(HERE, folder, ignore=kept)
    make_weights.write(folder, layers, with_torch)


def expected(folder: Path, sigmoid: bool) -> Answer:
    """What the network says of the picture, without any server."""
    session = onnxruntime.InferenceSession(folder / "food11.onnx", providers=["CPUExecutionProvider"])
    scores = session.run(["output"], {"input": pixels((folder / "test_image.jpeg").read_bytes())})[0][0]
    return best(scores, sigmoid)


def run(chosen: Sequence[Variant], folder: Path, asked: argparse.Namespace) -> Results:
    """Starts the variants one after the other, and measures them in rounds, each once in a round."""
    samples: list[list[Measured]] = []
    with ExitStack() as stack:
        running = []
        for variant in chosen:
            print(f"starting {variant.title}", flush=True)
            served = stack.enter_context(Served(variant.command, folder, folder / f"{variant.name}.log"))
            running.append(Running(variant, served, folder, expected(folder, variant.sigmoid)))
        for one in running:
            one.measure(max(asked.senders), _WARM_UP_S)
        for round_ in range(asked.rounds):
            print(f"round {round_ + 1} of {asked.rounds}", flush=True)
            seconds = asked.seconds / asked.rounds
            samples.append([one.measure(senders, seconds) for senders in asked.senders for one in running])
        answers = {one.variant.name: one.answer for one in running}
        batches = [batch for one in running for batch in one.batches()]
    return Results.of(samples, batches, {name: (said.label, said.probability) for name, said in answers.items()})


def main() -> None:
    """Does it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each number of senders sends (3)")
    parser.add_argument("--rounds", type=int, default=3, help="in how many parts, variants in turn (3)")
    parser.add_argument("--senders", type=int, nargs="+", default=[1, 8, 16], help="how many send at a time (1 8 16)")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="which (all)")
    parser.add_argument("--layers", type=int, default=0, help="layers of convolutions in the network (none)")
    parser.add_argument("--output", type=Path, default=Path("serving-lab"), help="folder for what is written")
    parser.add_argument("--no-picture", action="store_true", help="only the text, which needs no matplotlib")
    asked = parser.parse_args()

    chosen = []
    for name in asked.variants:
        variant = VARIANTS[name]
        if missing := [package for package in variant.needs if importlib.util.find_spec(package) is None]:
            print(f"{variant.title} is left out: not installed: {', '.join(missing)}")
        else:
            chosen.append(variant)
    if not chosen:
        parser.error("no variant is left")
    folder = asked.output.resolve() / "lab"
    prepare(folder, asked.layers, with_torch=any("torch" in variant.needs for variant in chosen))
    results = run(chosen, folder, asked)
    (asked.output / "results.json").write_text(json.dumps(asdict(results), indent=1) + "\n")
    show(results, Console())
    if not asked.no_picture:
        from picture import draw

        print(draw(results, asked.output / "lab.png", asked.layers))


if __name__ == "__main__":
    main()
