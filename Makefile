# Every command a person types. Each does all its own set-up and is fast the second time.
#
#   make quickstart    a model served and asked, in one command
#   make gravitational-waves   inspirals in the noise of two detectors, streamed, found and drawn
#   make fleet         throughput and cost, latency, quality: a talk's three figures, measured and drawn
#   make kserve        transformer, predictor, explainer, canary and scale to zero of a talk, drawn, and what KServe gets
#   make serving-lab   a food classifier behind FastAPI and in each way that alipes has, measured and drawn
#
#   make test          what a person waits for: the crates, then Python on one interpreter
#   make gate          lints, tests, every interpreter, every extra: what has to pass before a change lands
#   make proof         all of it on the wheel that users get, with the long forms and the peers (an hour)
#   make lint          formatting, lints, types, licences
#
#   make dev           alipes as it stands here, in .venv-dev, quick to build
#   make t T=tests/e2e/test_serving.py   one test on the code as it stands
#   make check         the lints and tests of what changed since the last commit on main
#   make fix           formats, and mends what lints can mend
#   make new ARGS="route v2/foo"   a skeleton of a new backend, flag, route or metric, which passes its tests as it is
#   make cov           the lines that tests reach, in both languages
#
#   make soak FOR=7200  a server under load and faults for so many seconds, its slopes drawn; long forms of tests
#   make fuzz FOR=600  searches for bytes that break a decoder, for so many seconds each; goes on where it was
#   make sanitize      the tests of the crates and of the binding under the address sanitizer
#   make audit         known weaknesses of dependencies, where their databases can be reached
#   make under-attack  what attacks cost a client that behaves well, here and at a real Triton (half an hour)
#   make bench         ratios against the floors and the peers (see docs/benchmarks.md)
#   make bench-queue   what one request costs a model's queue, in nanoseconds
#   make clients       fetches perf_analyzer, Model Analyzer, the KServe SDK, hermes, a real Triton and Azurite
#   make kube          builds Kubernetes' own programs, KServe's and Knative's, with Go, for tests of what deploys (half an hour, once)
#   make docs          the generated reference pages
#   make site          the documentation as a site, with the Python API, in build/site
#   make wheel         the wheel that `pip install .` makes, in dist/
#   make guided        that wheel compiled with a profile of the bench, in dist/guided (half an hour)
#   make distributions the wheels for an index, in dist/index: alipes-core, and alipes, which adds the engine; guided

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Every path here is relative to this file's folder, so a space in the path above it does no harm.
PYTHON ?= $(shell tools/find-python 3.11 3.12 3.13 3.14)
VENV := .venv
BIN := $(VENV)/bin
DEV := .venv-dev/bin
ENVIRONMENT = "$(PYTHON)" tools/environment
RUST := Cargo.toml Cargo.lock $(shell find crates proto -type f -not -path '*/target/*' -not -path '*/tests/*' | sed 's/ /\\ /g')
SOURCES := $(RUST) pyproject.toml $(shell find python -type f -not -name '*.pyc' -not -name '*.so' | sed 's/ /\\ /g')

.PHONY: help quickstart gravitational-waves fleet kserve serving-lab test gate proof lint dev t check fix new cov soak fuzz sanitize audit under-attack clients kube docs site wheel guided distributions tools clean

help:
	@sed -n 's/^#   //p; s/^#$$//p' Makefile

# ---------------------------------------------------------------------------------------------------------- set-up

tools:
	@test -n "$(PYTHON)" || { echo "alipes needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" tools/settings
	@$(ENVIRONMENT) .venv-tools --group lint

dist/made: $(SOURCES) | tools
	@tools/say "building the wheel (some minutes the first time, seconds after a change in Python)"
	@tools/build-wheel release
	@touch $@

wheel: dist/made

dist/profile.profdata: $(RUST) | tools
	@PYTHON="$(PYTHON)" tools/profile $@

guided: dist/profile.profdata
	@tools/say "building the wheel with the profile"
	@tools/build-wheel release dist/profile.profdata

distributions: dist/profile.profdata
	@$(ENVIRONMENT) .venv-tools --group lint --group manylinux
	@tools/say "building the wheel for systems with glibc 2.17 and newer"
	@tools/build-wheel manylinux dist/profile.profdata
	@.venv-tools/bin/python tools/distributions dist/manylinux/guided/*.whl dist/index

$(VENV)/installed: dist/made constraints.txt
	@$(ENVIRONMENT) $(VENV) --wheel dist
	@touch $@

# The wheel that users get, with what tests and the bench need beside it.
$(VENV)/tests: $(VENV)/installed
	@$(ENVIRONMENT) $(VENV) --group test --wheel dist
	@touch $@

# ------------------------------------------------------------------------------------------------------ for people

quickstart: $(VENV)/installed
	@$(BIN)/alipes quickstart $(ARGS)

gravitational-waves: dist/made
	@$(ENVIRONMENT) $(VENV) --extra examples --extra plots --wheel dist
	@$(BIN)/python examples/gravitational-waves/run.py $(ARGS)

fleet: dist/made
	@$(ENVIRONMENT) $(VENV) --extra examples --extra plots --wheel dist
	@$(BIN)/python examples/fleet/run.py $(ARGS)

kserve: dist/made
	@$(ENVIRONMENT) $(VENV) --extra examples --extra explain --extra deploy --extra plots --wheel dist
	@$(BIN)/python examples/kserve/run.py $(ARGS)

serving-lab: dist/made
	@$(ENVIRONMENT) $(VENV) --extra examples --extra plots --wheel dist
	@$(BIN)/python examples/serving-lab/run.py $(ARGS)

# ---------------------------------------------------------------------------------------------------------- proofs

test gate proof lint: tools
	@"$(PYTHON)" tools/gate $@ $(ARGS)

# ------------------------------------------------------------------------------------------------------ development

# Editable: Python is used as it stands here, and the extension is built again where Rust changed.
dev: .venv-dev/built

.venv-dev/built: $(RUST) pyproject.toml constraints.txt | tools
	@$(ENVIRONMENT) .venv-dev --group dev
	@tools/say "building the extension for development"
	@VIRTUAL_ENV="$$PWD/.venv-dev" .venv-tools/bin/maturin develop --quiet --locked --profile dev
	@touch $@

t: dev
	@$(DEV)/python -m pytest -q -p no:cacheprovider $(if $(T),$(T),$(error say which: make t T=tests/e2e/test_serving.py)) $(ARGS)

check: dev
	@.venv-dev/bin/python tools/changes $(ARGS)

fix: tools
	@tools/lint fix

new:
	@test -n "$(PYTHON)" || { echo "alipes needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" tools/new $(if $(ARGS),$(ARGS),--help)

cov: dev
	@tools/coverage $(ARGS)

# -------------------------------------------------------------------------------------------------- as long as you say

soak: dev
	@tools/soak $(or $(FOR),210) .venv-dev/bin/python $(INTO)

fuzz: dev
	@"$(PYTHON)" tools/fuzz $(or $(FOR),60) $(ARGS)

sanitize: dev
	@tools/sanitize $(ARGS)

audit: tools
	@tools/audit

under-attack: $(VENV)/tests clients
	@$(BIN)/python tools/under-attack $(ARGS)

# What cannot be fetched is named and holds nothing up: the tests that need it say why they are skipped.
clients: tools
	@tools/say "fetching clients of others (two minutes the first time)"
	@tools/fetch-clients "$(PYTHON)" || true

kube:
	@test -n "$(PYTHON)" || { echo "alipes needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" tools/kube $(ARGS)

docs: dev
	@$(DEV)/python -m alipes.config.reference
	@$(DEV)/python -m alipes.deploy.reference
	@$(DEV)/python -m alipes.compat.perf_analyzer.reference
	@$(DEV)/python tools/limits-page
	@$(DEV)/python tools/backends-page
	@"$(PYTHON)" tools/gate table
	@"$(PYTHON)" tools/sort-index

site: tools
	@$(ENVIRONMENT) .venv-docs --group docs
	@.venv-docs/bin/python tools/site

clean:
	rm -rf .venv .venv-* dist build

-include bench/bench.mk
