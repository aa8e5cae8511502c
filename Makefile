# Every command a person types. Each does all its own set-up and is fast the second time.
#
#   make quickstart   a model served and asked, in one command
#   make gravitational-waves   inspirals in the noise of two detectors, streamed, found and drawn
#   make test         everything that `.ci/run` tests first: Rust, then Python on each interpreter found
#   make test-extras  the tests of what is installed on request
#   make clients      fetches perf_analyzer, the KServe SDK, a real Triton and Azurite, whose tests are skipped without
#   make chaos        two minutes of trouble for the workers of Python models, under load
#   make soak         the long forms of tests that `make test` runs short
#   make lint         formatting, lints, types
#   make bench        ratios against the floors and the peers (see docs/benchmarks.md)
#   make bench-queue  what one request costs a model's queue, in nanoseconds
#   make docs         the generated reference pages
#   make wheel        the wheel that users install, in dist/

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Every path here is relative to this file's folder, so a space in the path above it does no harm.
PYTHON ?= $(shell tools/find-python 3.11 3.12 3.13 3.14)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates proto python -type f \
	-not -name '*.pyc' -not -name '*.so' -not -path '*/target/*' 2>/dev/null | sed 's/ /\\ /g')

.PHONY: help quickstart gravitational-waves test test-rust test-python test-extras clients chaos soak lint docs wheel venv clean

help:
	@sed -n 's/^#   //p' Makefile

# ---------------------------------------------------------------------------------------------------------- set-up

$(VENV)/made:
	@tools/say "making a Python environment in $(VENV) with $(PYTHON)"
	@test -n "$(PYTHON)" || { echo "alipes needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@touch $@

dist/made: $(VENV)/made $(SOURCES)
	@tools/say "building the wheel (some minutes the first time, seconds after a change in Python)"
	@tools/build-wheel $(BIN)/python
	@touch $@

$(VENV)/installed: dist/made
	@tools/say "installing alipes into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$$(ls dist/*.whl)[quickstart]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	@touch $@

$(VENV)/tests: $(VENV)/installed constraints.txt
	@tools/say "installing what the tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$$(ls dist/*.whl)[test,lint]"
	@touch $@

wheel: dist/made

# ------------------------------------------------------------------------------------------------------ for people

quickstart: $(VENV)/installed
	@$(BIN)/alipes quickstart $(ARGS)

gravitational-waves: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		"$$(ls dist/*.whl)[plots]" "onnx>=1.16,<2"
	@$(BIN)/python examples/gravitational-waves/run.py $(ARGS)

# ---------------------------------------------------------------------------------------------------------- proofs

test: test-rust test-python

test-rust: $(VENV)/tests
	@tools/say "testing the Rust crates"
	@library=$$(tools/onnxruntime-library $(BIN)/python) && \
		ALIPES_ONNXRUNTIME_LIBRARY="$$library" ORT_DISABLE_TELEMETRY=1 \
		cargo test --workspace --exclude alipes-core --locked

test-python: $(VENV)/tests
	@tools/say "testing on $$($(BIN)/python --version)"
	@$(BIN)/python -m pytest -n auto $(ARGS)
	@tools/test-interpreters 3.11 3.12 3.13

# Each extra in an environment of its own, so that what the base install lacks is noticed.
test-extras: $(VENV)/tests
	@tools/test-extra examples tests/e2e/test_digits_example.py tests/e2e/test_serving_lab.py
	@tools/test-extra sklearn tests/e2e/test_export_sklearn.py
	@tools/test-extra keras tests/e2e/test_export_keras.py
	@tools/test-extra plots tests/unit/plots tests/e2e/test_gravitational_waves.py
	@tools/test-extra buckets tests/e2e/test_export_buckets.py tests/e2e/test_serve_buckets.py \
		tests/unit/progress/test_progress_uploads.py
	@tools/test-torch

# What cannot be fetched is told and holds nothing up: the tests that need it say why they are skipped.
clients: $(VENV)/made
	@tools/say "fetching clients of others (two minutes the first time)"
	@tools/fetch-clients $(BIN)/python || true

# The same test as among the others, for longer. FOR=600 makes it ten minutes.
chaos: $(VENV)/tests
	@tools/say "troubling workers"
	@ALIPES_CHAOS_SECONDS=$(or $(FOR),120) $(BIN)/python -m pytest -q tests/e2e/workers/test_chaos.py $(ARGS)

# Those that need PyTorch are left out where it is not at hand.
soak: $(VENV)/tests
	@tools/say "streaming for long"
	@ALIPES_SOAK=1 $(BIN)/python -m pytest -q tests/e2e/streaming/test_many_sequences.py $(ARGS)
	@ALIPES_SOAK=1 tools/test-torch tests/e2e/notebooks

lint: $(VENV)/tests
	@tools/say "formatting and lints"
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check python tests bench examples tools
	$(BIN)/ruff check python tests bench examples tools
	$(BIN)/mypy

docs: $(VENV)/installed
	$(BIN)/python -m alipes.config.reference
	$(BIN)/python tools/limits-page

clean:
	rm -rf $(VENV) dist target

-include bench/bench.mk
