"""An HTTP route: its variant and restricted group, its handler, its verb, its line in the reference, its tests."""

from __future__ import annotations

import argparse
import re
import textwrap
from dataclasses import dataclass

from names import arm, camel, template, word
from plan import Plan, Refused

ROUTES, DISPATCH = "crates/http/src/route", "crates/http/src/dispatch.rs"
KIND, GROUP, SERVER, MODEL = (f"{ROUTES}/{name}.rs" for name in ("kind", "group", "mod", "model"))
GROUPS = "crates/net/src/restricted.rs"
PAGE = "docs/reference/http.md"

_MODEL = ("v2", "models", "{model}")
_LONGEST, _MOST_SEGMENTS = 24, 2
_OF = ("impl<'a> Route<'a> {", "pub fn of(method: &Method, path: &'a str) -> Route<'a> {", "match path {")
_OF_MODEL = ("pub fn of_model<'a>(method: &Method, rest: &'a str) -> Route<'a> {", "match action {")
_GROUP = ("impl<'a> Route<'a> {", "pub fn group(&self, path: &'a str) -> Option<Group> {", "Some(match self {")
_NAME = ("impl Route<'_> {", "pub fn name(&self) -> &'static str {", "match self {")
_ITS_MODEL = ("impl Route<'_> {", "pub fn model(&self) -> &str {", "match self {")
_ANSWER = (
    "async fn answer_head(service: &Arc<Service>, head: &Parts) -> Response<ResponseBody> {",
    "match Route::of(method, path) {",
)
_UNKNOWN = ("fn unknown_group(path: &str) -> Option<Group> {", "Some(match segments[..] {")
_UNKNOWN_MODEL = '["models", _, "versions", _, ref action @ ..] | ["models", _, ref action @ ..] => match action {'
_NAMED_GROUP = r'Group::(\w+) => "([^"]+)"'
_TESTS = "mod tests {"
_KNOWN = ("fn no_spelling_of_a_path_and_no_method_avoids_its_group() {", "let known = [")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the recipe's arguments."""
    parser.add_argument("path", help="such as v2/uptime, or v2/models/{model}/age for models and their versions")
    parser.add_argument("--group", help="restricted group; where not given that of the paths beside it, else metadata")


@dataclass(frozen=True)
class Route:
    """A route that is read with GET.

    Attributes:
        name: Name of its files and functions.
        segments: Its own segments: behind `/v2/`, or behind the model and version.
        of_model: Whether a model is named before them.
    """

    name: str
    segments: tuple[str, ...]
    of_model: bool

    @classmethod
    def parse(cls, path: str) -> Route:
        """Reads a path.

        Raises:
            Refused: If it is none that a route can have.
        """
        parts = tuple(path.strip("/").split("/"))
        of_model = parts[:3] == _MODEL
        segments = parts[3:] if of_model else parts[1:]
        fits = parts[0] == "v2" and all(re.fullmatch(r"[a-z][a-z0-9_-]*", part) for part in segments)
        if not fits or not 0 < len(segments) <= _MOST_SEGMENTS or (not of_model and segments[0] == "models"):
            raise Refused(f"'{path}' is no path of a new route: v2/… or v2/models/{{model}}/… with one or two words")
        return cls(word("_".join(segments).replace("-", "_"), "route", _LONGEST), segments, of_model)

    @property
    def pattern(self) -> str:
        """What its arm matches."""
        if not self.of_model:
            return f'"{self.path}"'
        strings = ", ".join(f'"{segment}"' for segment in self.segments)
        return f"[{strings}]"

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        """The file with the arms beside its own, and where they stand there."""
        return (MODEL, _OF_MODEL) if self.of_model else (SERVER, _OF)

    @property
    def path(self) -> str:
        """The path as clients ask for it; the model is `m`."""
        return "/".join(["/v2", *(["models", "m"] if self.of_model else []), *self.segments])

    @property
    def pages_paths(self) -> list[str]:
        """The paths as the reference spells them."""
        tail = "/".join(self.segments)
        if not self.of_model:
            return [f"/v2/{tail}"]
        return [f"/v2/models/{{model}}/{tail}", f"/v2/models/{{model}}/versions/{{version}}/{tail}"]


def plan(plan: Plan, options: argparse.Namespace) -> None:
    """Plans the files."""
    route = Route.parse(options.path)
    _check_that_it_is_new(plan, route)
    group, is_known = _group(plan, route, options.group)
    variant = camel(route.name)
    fields = " { model, version }" if route.of_model else ""
    _insert_route(plan, route, f"Route::{variant}{fields}", group, is_known=is_known)
    _insert_tests(plan, route, group)
    _insert_answer(plan, route, f"Route::{variant}{fields}")
    for number, path in enumerate(route.pages_paths):
        answer = "the same of one version" if number else "todo: what it answers"
        plan.insert_row(PAGE, f"| GET | `{path}` | {answer} |", heading="## Routes")
    plan.then("cargo test -p alipes-http route")
    plan.then(f"make t T='tests/e2e/http/test_{route.name}_route.py tests/docs/test_reference.py'")
    plan.then("the same over gRPC: a method in proto, crates/grpc/src/methods.rs, and the same verb")


def _check_that_it_is_new(plan: Plan, route: Route) -> None:
    made, (file, arms) = camel(route.name), route.place
    named = any(line.strip().startswith(f"{route.pattern} ") for line in plan.block(file, arms))
    named = named or any(f'"{route.path}"' in text for text in plan.texts(f"{ROUTES}/*.rs"))
    if named or re.search(rf"^    {made}\b", plan.text(KIND), re.MULTILINE):
        raise Refused(f"{file} has a route {made} or '{route.path}' already")
    verb = re.compile(rf"\bfn {route.name}\b|\b(struct|enum) {made}\b")
    if any(verb.search(text) for text in plan.texts("crates/service/src/*.rs")):
        raise Refused(f"crates/service has a verb {route.name} or a type {made} already")


def _group(plan: Plan, route: Route, wanted: str | None) -> tuple[str, bool]:
    """The variant of the route's group, and whether every path that begins as it does is in it already."""
    variants = {name: variant for variant, name in re.findall(_NAMED_GROUP, plan.text(GROUPS))}
    if (wanted or "metadata") not in variants:
        raise Refused(f"{GROUPS} has no group '{wanted or 'metadata'}': {', '.join(variants)}")
    rows = plan.block(GROUP, [*_UNKNOWN, _UNKNOWN_MODEL] if route.of_model else _UNKNOWN)
    if not route.of_model and _UNKNOWN_MODEL in (lines := [row.strip() for row in rows]):
        rows = rows[: lines.index(_UNKNOWN_MODEL)]
    matches = [re.fullmatch(r" *\[(\".*), \.\.\] => Group::(\w+),", row) for row in rows]
    beside = next((match[2] for match in matches if match and f'"{route.segments[0]}"' in match[1]), None)
    group = variants[wanted] if wanted else beside or variants["metadata"]
    if beside not in {None, group}:
        raise Refused(f"every path that begins like {route.path} is in the restricted group {beside}, not {group}")
    return group, beside is not None


def _insert_route(plan: Plan, route: Route, variant: str, group: str, *, is_known: bool) -> None:
    answer = arm(route.pattern, f"get(method, false, {variant})", 12)
    if route.of_model:
        declared = f"{camel(route.name)} {{\n    model: Cow<'a, str>,\n    version: &'a str,\n}},"
        plan.insert(MODEL, answer, inside=_OF_MODEL, before="_ => Route::Unknown,")
    else:
        declared = f"{camel(route.name)},"
        plan.insert(SERVER, answer, inside=_OF, before="_ => Route::of_prefix(method, path),")
    plan.insert(KIND, f"/// todo: what it asks for.\n{declared}", inside=["pub enum Route<'a> {"])
    any_fields = variant.replace("{ model, version }", "{ .. }")
    plan.insert(GROUP, f"{any_fields} => Group::{group},", inside=_GROUP, before="Route::WrongMethod { .. } => {")
    named = f'{any_fields} => "{route.name.replace("_", " ")}",'
    plan.insert(KIND, named, inside=_NAME, before="// An endpoint's handler reports a call once it knows the model.")
    if route.of_model:
        its_model = variant.replace("{ model, version }", "{ model, .. } => model,")
        plan.insert(KIND, its_model, inside=_ITS_MODEL, before='_ => "",')
    beside = f'["{route.segments[0]}", ..] => Group::{group},'
    if route.of_model and not is_known and group != "Inference":
        plan.insert(GROUP, beside, inside=[*_UNKNOWN, _UNKNOWN_MODEL], before="_ => Group::Inference,")
    elif not route.of_model and not is_known:
        plan.insert(GROUP, beside, inside=_UNKNOWN, before=_UNKNOWN_MODEL)


def _insert_tests(plan: Plan, route: Route, group: str) -> None:
    for path in (route.path, f"{route.path}/x"):
        plan.insert(GROUP, f'("{path}", Some(Group::{group})),', inside=[_TESTS, *_KNOWN])
    fields = ' { model: "m".into(), version: "" }' if route.of_model else ""
    test = f"""

        #[test]
        fn {route.name}_is_read_with_get() {{
            let path = "{route.path}";
            assert_eq!(get_route(path), Route::{camel(route.name)}{fields});
            assert_eq!(Route::of(&Method::POST, path), Route::WrongMethod {{ plain: false }});
        }}
    """
    plan.insert(route.place[0], test, inside=[_TESTS])
    kind = "model_route_test.txt" if route.of_model else "route_test.txt"
    names = dict(re.findall(_NAMED_GROUP, plan.text(GROUPS)))
    path = route.path.replace("/models/m/", "/models/digits/")
    text = template(kind, name=route.name, path=path, group=names[group])
    plan.create(f"tests/e2e/http/test_{route.name}_route.py", text)


def _insert_answer(plan: Plan, route: Route, variant: str) -> None:
    name, kind = route.name, "model_route" if route.of_model else "route"
    values = {"name": name, "made": camel(name), "path": route.pages_paths[0]}
    for crate in ("http", "service"):
        plan.create(f"crates/{crate}/src/{name}.rs", template(f"{kind}_{crate}.txt", **values))
        plan.insert_sorted(f"crates/{crate}/src/lib.rs", f"mod {name};", like=r"(?:pub )?mod (\w+);")
    exported = r"(?:pub )?use ((?!std\b)\w+)::.*;"
    plan.insert_sorted("crates/service/src/lib.rs", f"pub use {name}::{camel(name)};", like=exported)
    arguments = "service, &model, version" if route.of_model else "service"
    answer = arm(variant, f"{name}::{name}({arguments})", 8)
    plan.insert(
        DISPATCH,
        answer,
        inside=_ANSWER,
        before="Route::WrongMethod { plain } => response::wrong_method(plain, &hints::of_method(service, path)),",
    )
    found = re.findall(r"^use super::\{[^}]*\};$", plan.text(DISPATCH), re.MULTILINE)
    old = found[0] if found else "use super::{"
    modules = sorted([name, *re.findall(r"\w+", old.partition("{")[2])])
    plan.replace(DISPATCH, old, _use(modules))


def _use(modules: list[str]) -> str:
    """The import of modules as rustfmt writes it."""
    line = f"use super::{{{', '.join(modules)}}};"
    if len(line) <= 120:
        return line
    rows = textwrap.fill(f"{', '.join(modules)},", 120, initial_indent="    ", subsequent_indent="    ")
    return f"use super::{{\n{rows}\n}};"
