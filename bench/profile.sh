#!/usr/bin/env bash
# Records where alipes spends its time while a row is measured: bench/profile.sh ROW [SECONDS]
# Leaves bench/results/profile_ROW.data for `perf report` and prints its head. Needs perf, and for names of our own
# functions an extension that is not stripped.
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
# All processors, for the server's threads come and go; the report keeps the server alone.
perf record --quiet -g --all-cpus --output "$data" -- tail --pid="$bench" -f /dev/null
wait "$bench"
trap - EXIT
report=(perf report --input "$data" --pid "$server" --no-children --percentage relative --sort comm,dso,symbol)
# `head` ends the pipe early, which is no failure.
{ "${report[@]}" --call-graph none --stdio 2>/dev/null || true; } | grep -v '^$' | head -40 || true
echo "more: ${report[*]}"
