"""A flag of `alipes serve`: its row, its option, its lines in the reference, its tests; with the data plane's field."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from names import template, word
from plan import Plan, Refused

TABLES = "python/alipes/config/flags"
OPTIONS = "python/alipes/config/options.py"
BOUNDARY = "python/alipes/server/boundary.py"
SPEC = "crates/spec/src/server.rs"
PAGE = "docs/reference/cli-serve.md"
LISTED = "tests/unit/config/test_config_flags.py"
_HELP = "todo: say what it does."


@dataclass(frozen=True)
class Kind:
    """A kind of value: how each place spells it, and a value that is not the default."""

    python: str
    rust: str
    default: str
    shown: str
    values: str
    given: str
    read: str
    json: str


KINDS = {
    "bool": Kind("bool", "bool", "False", "`false`", "true, false", "true", "True", "true"),
    "int": Kind("int", "u64", "0", "`0`", "integer", "7", "7", "7"),
    "seconds": Kind("float", "f64", "0.0", "`0`", "seconds", "0.25", "0.25", "0.25"),
    "str": Kind("str", "String", '""', "", "text", "some", '"some"', '"some"'),
}

# Table -> the file of its rows, the line that opens it, its heading in the reference.
GROUPS = {
    "server": (f"{TABLES}/__init__.py", "_SERVER: Final[tuple[Flag, ...]] = (", "Server"),
    "models": (f"{TABLES}/models.py", "MODELS: Final[tuple[Flag, ...]] = (", "Models"),
    "connections": (f"{TABLES}/connections.py", "CONNECTIONS: Final[tuple[Flag, ...]] = (", "Connections"),
    "metrics": (f"{TABLES}/observation.py", "METRICS: Final[tuple[Flag, ...]] = (", "Metrics"),
    "log": (f"{TABLES}/observation.py", "LOG: Final[tuple[Flag, ...]] = (", "Log"),
    "devices": (f"{TABLES}/resources.py", "DEVICES: Final[tuple[Flag, ...]] = (", "Devices and memory"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the recipe's arguments."""
    parser.add_argument("name", help="without dashes in front, such as drain-timeout-secs")
    parser.add_argument("--kind", choices=KINDS, default="bool", help="how its value is read (default: bool)")
    parser.add_argument("--group", choices=GROUPS, default="server", help="table of the reference (default: server)")
    parser.add_argument("--data-plane", action="store_true", help="write the field that crosses to the data plane too")


def plan(plan: Plan, options: argparse.Namespace) -> None:
    """Plans the files."""
    field = word(options.name.replace("-", "_"), "flag")
    name, kind = field.replace("_", "-"), KINDS[options.kind]
    if f"| `--{name}` |" in plan.text(PAGE):
        raise Refused(f"there is a flag --{name} already")
    if re.search(rf"^    {field}: ", plan.text(OPTIONS), re.MULTILINE):
        raise Refused(f"{OPTIONS} has an option '{field}' already")
    file, opening, heading = GROUPS[options.group]
    plan.insert(file, _row(name, options.kind, field), inside=[opening])
    # The first field of another class: those before it are plain values.
    plan.insert(OPTIONS, f"    {field}: todo: what it says.", before="http: The HTTP endpoint.")
    plan.insert(OPTIONS, f"{field}: {kind.python}", before="http: Endpoint")
    plan.insert_sorted(LISTED, f'"{name}",', like=r'"([\w-]+)",', inside=["OURS = {"])
    _insert_lines_of_the_page(plan, name, kind, heading)
    test = f"tests/unit/config/test_flag_{field}.py"
    values = {"name": name, "field": field, "default": kind.default, "given": kind.given, "read": kind.read}
    values |= {"variable": _variable(name), "same": "is" if kind.python == "bool" else "=="}
    if options.data_plane:
        _insert_field(plan, field, kind)
        plan.then("use `config." + field + "` of the service's context where it counts; cargo test -p alipes-spec")
    plan.create(test, template("flag_data_plane_test.txt" if options.data_plane else "flag_test.txt", **values))
    plan.then("make docs, once the help is written")
    plan.then(f"make t T='{test} tests/unit/config tests/meta/test_boundary.py'")


def _variable(name: str) -> str:
    return "ALIPES_" + name.upper().replace("-", "_")


def _row(name: str, kind: str, field: str) -> str:
    arguments = [f'"{name}"', f'"{kind}"', KINDS[kind].default, f'"{_HELP}"', f'option="{field}"']
    line = f"Flag({', '.join(arguments)}),"
    if len(line) + 4 <= 120:
        return line
    return "Flag(\n" + "".join(f"    {argument},\n" for argument in arguments) + "),"


def _insert_lines_of_the_page(plan: Plan, name: str, kind: Kind, heading: str) -> None:
    """The rows that `make docs` would write: of the flag, and of its variable behind that of the flag before it."""
    section = plan.text(PAGE).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    works = re.findall(r"^\| `--([\w-]+)` \|.*\| works \|", section, re.MULTILINE)
    last = works[-1] if works else ""
    row = f"| `--{name}` | {kind.values} | {kind.shown} | works | {_HELP} |"
    plan.insert_row(PAGE, row, heading=f"## {heading}")
    plan.insert_row(PAGE, f"| `--{name}` | `{_variable(name)}` |", heading="## Environment", after=f"| `--{last}` |")


def _insert_field(plan: Plan, field: str, kind: Kind) -> None:
    plan.insert(BOUNDARY, f'"{field}": options.{field},', inside=["return json.dumps(", "{"])
    declared = f"/// todo: what it says.\n#[serde(default)]\npub {field}: {kind.rust},"
    plan.insert(SPEC, declared, inside=["pub struct ServerConfig {"])
    json, value = kind.json.replace('"', '\\"'), f"read(CONFIG).{field}"
    unset = {"bool": f"assert!(!{value});", "String": f'assert_eq!({value}, "");'}.get(
        kind.rust, f"assert_eq!({value}, {kind.default});"
    )
    is_set = f"assert!(read(&set).{field});" if kind.rust == "bool" else f"assert_eq!(read(&set).{field}, {kind.json});"
    test = f"""

        #[test]
        fn {field}_may_be_missing() {{
            let read = |text: &str| serde_json::from_str::<ServerConfig>(text).unwrap();
            {unset}
            let set = CONFIG.replace("\\"id\\"", "\\"{field}\\":{json},\\"id\\"");
            {is_set}
        }}
    """
    plan.insert(SPEC, test, inside=["mod tests {"])
