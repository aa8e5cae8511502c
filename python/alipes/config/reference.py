"""Writes the reference pages from the tables: `python -m alipes.config.reference` in the project's folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from alipes.config.fields import FIELDS, Field, find_field
from alipes.config.flags import OWN_GROUP, SERVE_FLAGS, Flag, Value, environment_name
from alipes.config.framework_parameters import MLFLOW_PARAMETERS, OPENVINO_PARAMETERS, TENSORFLOW_PARAMETERS
from alipes.config.parameters import PARAMETERS, Parameter
from alipes.config.pytorch_parameters import PYTORCH_PARAMETERS
from alipes.config.settings import SETTINGS
from alipes.config.step_parameters import (
    DETOKENIZER_PARAMETERS,
    MEAN_POOLING_PARAMETERS,
    PICTURE_PARAMETERS,
    TOKENIZER_PARAMETERS,
    TOP_K_PARAMETERS,
)
from alipes.config.streaming_parameters import AVERAGER_PARAMETERS, SNAPSHOTTER_PARAMETERS
from alipes.config.tuning import TUNING_PARAMETERS
from alipes.config.worker_parameters import WORKER_PARAMETERS

__all__ = ["main", "pages"]

_FOLDER: Final = "docs/reference"

_HEAD: Final = """\
# {title}

<!-- Written by `make docs`; change the tables in python/alipes/config, not this page. -->

{text}

**works**: does what it says. **ignored**: accepted, does nothing here, and gives one notice that says so.
**refused**: an error that names it, unless the value is the default. Nothing is ignored silently.
"""

_FLAGS: Final = """\
`alipes serve [FLAG ...] REPOSITORY ...` serves the models of one or more repositories. `alipes serve --help` shows the
flags that most people use, `alipes serve --help-all` every flag.

Flags are written `--flag=value` or `--flag value`, with dashes or underscores. Yes and no are `true`, `1`, `on` and
`false`, `0`, `off`; a flag of this kind alone means yes. A flag that may be repeated says so. Each flag can be given as
an environment variable too, with words separated by white space where it may be repeated, and as a key of
[a file](#configuration-file). The command line wins over the environment, the environment over the file, and the file
over the default; `alipes config explain` shows each value with its origin. A wrong command line is answered with what
to type instead, and exit code 2.

`alipes tritonserver`, or a link to `alipes` of the name `tritonserver`, takes Triton's command line as Triton takes it:
the repository is `--model-repository`, every flag but `--disable-auto-complete-config` has a value, the beginning of a
name is enough, `--exit-on-error` is true unless told otherwise, and what is wrong is told in Triton's words, with exit
code 1. Our own flags work there too, but for those under *Everyday*, and `alipes.toml` is read where `ALIPES_CONFIG`
names it."""

_EVERYDAY: Final = """\
Short names for several flags at a time. A longer name wins over a short one: `--port 9000 --grpc-port 7` leaves 7 to
gRPC. `-v` and `-q` stand alone.
"""

_FILE: Final = """\
`alipes serve` reads `alipes.toml` in the current folder, or the file that `--config` or `ALIPES_CONFIG` names;
`--config=` reads none. Every flag is a key, with dashes or underscores, and `repository` stands for what is named by
itself on the command line. A table's name and a key in it are one name. Paths are relative to the file. An unknown key
ends the start, with its line and the nearest key.

```toml alipes.toml
repository = ["models"]
port = 9000
log-format = "JSON"

[model]
control-mode = "poll"     # --model-control-mode

[http]
max-input-size = 1048576  # --http-max-input-size
```

```console
$ alipes config explain --grpc-port 7 | grep -e '--[a-z]*-port '
│ --http-port ... 9000 ... file alipes.toml │
│ --grpc-port ... 7 ... flag ...│
│ --metrics-port ... 9002 ... file alipes.toml │
```

Servers that Python starts (`alipes.serve`, `alipes launch`) read no file unless their flags name one.
"""

_COMPLETION: Final = """\
`alipes completion bash`, `zsh` and `fish` print a script that completes commands, flags, their choices and files;
`alipes completion --help` says where each shell looks for it.
"""

_FIELDS: Final = """\
A model's `config.pbtxt` is the message `inference.ModelConfig` of `proto/model_config.proto` in protobuf's text
format. The file may be absent or partial: name, backend and model file follow from the folder; inputs, outputs,
largest batch and dynamic batching follow from the model, unless `--disable-auto-complete-config` is given: an ONNX file
names its inputs and outputs, a Python model has `auto_complete_config`."""

_PARAMETERS: Final = """\
Written `parameters { key: "intra_op_thread_count" value: { string_value: "2" } }`. A key that is not listed is ignored
with a notice."""

_WORKER_PARAMETERS: Final = """\
Written in the same way. All parameters, these and your own, reach the model in `args["model_config"]`. Times are
seconds, such as `30` or `0.5`; 0 sets no limit. `--backend-config=python,<key>=<value>` sets a limit for all models:
see [the flags](cli-serve.md#settings-inside-flags)."""


_TUNING: Final = """\
Any model with `dynamic_batching` may have them, whatever its backend: [A model that tunes
itself](../how-to/self-tuning.md). What stands behind the semicolon holds where the key is not given."""

_FRAMEWORKS: Final = (
    ("PyTorch", PYTORCH_PARAMETERS),
    ("OpenVINO", OPENVINO_PARAMETERS),
    ("TensorFlow", TENSORFLOW_PARAMETERS),
    ("MLflow", MLFLOW_PARAMETERS),
)

_FRAMEWORK: Final = """\
Written in the same way; those of the Python backend hold for it, too. Any other key is ignored."""

_WITHOUT_FILE: Final = (
    (
        "snapshotter",
        "Sizes are samples. Tensors that are not listed follow from them; where both are given, they must agree.",
        SNAPSHOTTER_PARAMETERS,
    ),
    ("averager", "The same holds here.", AVERAGER_PARAMETERS),
    (
        "picture",
        "Files of pictures become tensors: [Pictures in, labels out](../how-to/pictures.md) shows it. A key that is "
        "not listed is refused, here and below.",
        PICTURE_PARAMETERS,
    ),
    ("top_k", "The best classes of each row. The backend `softmax` has no parameters.", TOP_K_PARAMETERS),
    ("mean_pooling", "The mean of the vectors that a mask leaves.", MEAN_POOLING_PARAMETERS),
    ("tokenizer", "Texts become tokens, by the `tokenizer.json` in the version's folder.", TOKENIZER_PARAMETERS),
    ("detokenizer", "Tokens become texts, by such a file.", DETOKENIZER_PARAMETERS),
)


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {"cli-serve.md": _flags_page(), "model-config.md": _fields_page()}


def main(arguments: Sequence[str]) -> int:
    """Write the pages into a folder, `docs/reference` where none is given.

    Returns:
        The exit code: 2 where more than one folder is given.
    """
    if len(arguments) > 1:
        print("usage: python -m alipes.config.reference [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[0] if arguments else _FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


def _flags_page() -> str:
    parts = [_HEAD.format(title="alipes serve", text=_FLAGS)]
    for group, flags in groupby(SERVE_FLAGS, key=lambda flag: flag.group):
        rows = [_flag_row(flag) for flag in flags]
        parts += [
            f"## {group}\n",
            *([_EVERYDAY] if group == OWN_GROUP else []),
            _table(("Flag", "Values", "Default", "Status", "What it does"), rows),
        ]
    settings = [
        (f"`--{row.flag}={_scoped(row.scope)}{row.key}=…`", _default(row.default), row.status, _text(row.help, row))
        for row in SETTINGS
    ]
    names = [(f"`--{flag.name}`", f"`{environment_name(flag)}`") for flag in SERVE_FLAGS if flag.status == "works"]
    parts += ["## Settings inside flags\n", _table(("Setting", "Default", "Status", "What it does"), settings)]
    parts += ["## Configuration file\n", _FILE, "## Completion in shells\n", _COMPLETION]
    parts += ["## Environment\n", _table(("Flag", "Variable"), names)]
    return "\n".join(parts)


def _fields_page() -> str:
    fields = [(f"`{row.path}`", row.status, _field_text(row)) for row in FIELDS]
    parts = [_HEAD.format(title="Model configuration", text=_FIELDS)]
    parts += ["## Fields\n", _table(("Field", "Status", "What it says"), fields)]
    parts += ["## Parameters of the ONNX Runtime backend\n", f"{_PARAMETERS}\n", _parameters_table(PARAMETERS)]
    parts += ["## Parameters of the Python backend\n", f"{_WORKER_PARAMETERS}\n", _parameters_table(WORKER_PARAMETERS)]
    parts += ["## Parameters of models that tune themselves\n", f"{_TUNING}\n", _parameters_table(TUNING_PARAMETERS)]
    for title, rows in _FRAMEWORKS:
        parts += [f"## Parameters of the {title} backend\n", f"{_FRAMEWORK}\n", _parameters_table(rows)]
    for title, text, rows in _WITHOUT_FILE:
        parts += [f"## Parameters of the {title} backend\n", f"{text}\n", _parameters_table(rows)]
    return "\n".join(parts)


def _parameters_table(parameters: Sequence[Parameter]) -> str:
    rows = [(f"`{row.key}`", row.status, _text(row.help, row)) for row in parameters]
    return _table(("Key", "Status", "What it does"), rows)


def _field_text(row: Field) -> str:
    """What a field says; the reason against it stands once, at the outermost field that it holds for."""
    parent, _, _ = row.path.rpartition(".")
    return row.help if parent and find_field(parent).note == row.note else _text(row.help, row)


def _flag_row(flag: Flag) -> tuple[str, str, str, str, str]:
    values = {
        "bool": "true, false",
        "level": "integer",
        "int": "integer",
        "seconds": "seconds",
        "str": "text",
        "list": "text, repeatable",
        "choice": ", ".join(flag.choices),
    }[flag.kind]
    name = f"`-{flag.short}`, `--{flag.name}`" if flag.short else f"`--{flag.name}`"
    return name, values, _default(flag.default), flag.status, _text(flag.help, flag)


def _text(help: str, row: object) -> str:
    """The help with the reason behind it where the row does not work."""
    reason = getattr(row, "ignored", "") or getattr(row, "refused", "") or getattr(row, "note", "")
    status = getattr(row, "status", "works")
    return help if status == "works" else f"{help} *{reason[0].upper()}{reason[1:]}.*"


def _default(value: Value) -> str:
    if value in (None, "", ()):
        return ""
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _scoped(scope: str) -> str:
    return f"{scope}," if scope else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    escaped = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {row} |" for row in escaped)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
