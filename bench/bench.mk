# Measuring. Included by the project's Makefile, whose $(VENV)/tests is an environment with alipes and the test tools.
#
#   make bench [ROWS=http_json,grpc] [PEERS=none] [ROUNDS=5] [SECONDS=1.5] [SOAK=300000] [WRITE_DOCS=1]
#   make bench-queue     what one request costs the queue of a model, beside so many that wait
#   make bench-tools     installs the load tools where they are missing (Debian, Ubuntu)

.PHONY: bench bench-queue bench-tools

# SECONDS is also a variable that bash counts up, so only what make was told is looked at.
BENCH_OPTIONS = $(if $(ROWS),--rows $(ROWS)) $(if $(PEERS),--peers $(PEERS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	$(if $(filter command line,$(origin SECONDS)),--seconds $(SECONDS)) $(if $(SOAK),--soak $(SOAK)) \
	$(if $(WRITE_DOCS),--write-docs)

bench: $(VENV)/tests
	@$(BIN)/python -m bench $(BENCH_OPTIONS)

bench-queue:
	@cargo bench -p alipes-scheduler --bench queue --locked

bench-tools:
	@if command -v wrk && command -v h2load; then echo "both tools are there"; \
	else $(if $(filter 0,$(shell id -u)),,sudo) apt-get install --yes wrk nghttp2-client; fi
