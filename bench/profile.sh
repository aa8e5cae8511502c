#!/usr/bin/env bash
# Records where alipes spends its time while a row is measured: bench/profile.sh ROW [SECONDS]
# Leaves bench/results/profile_ROW.data for `perf report` and prints its head. Needs perf.
set -euo pipefail

row=${1:?usage: bench/profile.sh ROW [SECONDS]}
seconds=${2:-4}
cd "$(dirname "$0")/.."
data=bench/results/profile_$row.data
mkdir -p bench/results

.venv/bin/python -m bench --rows "$row" --peers none --rounds 1 --seconds "$seconds" &
bench=$!
# The bench stops what it started when it is told to end.
trap 'kill "$bench" 2>/dev/null || true' EXIT

until server=$(pgrep --parent "$bench" --full 'alipes serve'); do
  kill -0 "$bench" 2>/dev/null || { echo "the bench ended before alipes started" >&2; exit 1; }
  sleep 0.1
done
# Ends with the server; while a floor has its turn the server sleeps and nothing is sampled.
perf record --quiet -g --pid "$server" --output "$data" || true
wait "$bench"
trap - EXIT
# `head` ends the pipe early, which is no failure.
{ perf report --input "$data" --no-children --call-graph none --stdio 2>/dev/null || true; } | grep -v '^$' | head -40 || true
echo "more: perf report --input $data"
