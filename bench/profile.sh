#!/usr/bin/env bash
# Records where alipes spends its time while a row is measured: bench/profile.sh ROW [SECONDS]
# Leaves bench/results/profile_ROW.data for `perf report` and prints its head, first of the server, then of its worker
# processes where the row has Python models. Needs perf, and for names of our own functions an extension that is not
# stripped. Where py-spy is installed, the Python functions of the busiest worker are left in profile_ROW.svg.
set -euo pipefail

row=${1:?usage: bench/profile.sh ROW [SECONDS]}
seconds=${2:-4}
cd "$(dirname "$0")/.."
results=bench/results
data=$results/profile_$row.data
mkdir -p "$results"

.venv/bin/python -m bench --rows "$row" --peers none --rounds 1 --seconds "$seconds" &
bench=$!
# The bench stops what it started when it is told to end.
trap 'kill "$bench" 2>/dev/null || true' EXIT

until server=$(pgrep --parent "$bench" --full 'alipes serve'); do
  kill -0 "$bench" 2>/dev/null || { echo "the bench ended before alipes started" >&2; exit 1; }
  sleep 0.1
done
# Where a load tool follows, the start is no part of the record.
if [[ $row != start && $row != killed* ]]; then
  until pgrep --parent "$bench" 'wrk|h2load|stream-load' > /dev/null || ! kill -0 "$bench" 2>/dev/null; do sleep 0.1; done
fi
# All processors, for the server's threads come and go; the reports keep the server and its workers alone.
perf record --quiet -g --all-cpus --output "$data" -- tail --pid="$bench" -f /dev/null &
perf=$!

# Workers that die are followed by others, so they are looked for again and again.
declare -A workers=()
spy=
while kill -0 "$bench" 2>/dev/null; do
  for worker in $(pgrep --parent "$server" || true); do workers[$worker]=1; done
  busiest=$(ps --ppid "$server" -o pid=,pcpu= --sort=-pcpu | awk '$2 > 5 { print $1; exit }' || true)
  if [[ -z $spy && -n $busiest ]] && command -v py-spy > /dev/null; then
    py-spy record --duration "$seconds" --output "$results/profile_$row.svg" --pid "$busiest" > /dev/null 2>&1 &
    spy=$!
  fi
  sleep 0.2
done
wait "$bench"
trap - EXIT
wait "$perf" ${spy:+"$spy"} || true

report() {
  local title=$1 pids=$2
  local command=(perf report --input "$data" --pid "$pids" --no-children --percentage relative --sort comm,dso,symbol)
  echo "== $title"
  # `head` ends the pipe early, which is no failure.
  { "${command[@]}" --call-graph none --stdio 2>/dev/null || true; } | grep -v '^$' | head -40 || true
  echo "more: ${command[*]}"
}

report "the server" "$server"
if [[ ${#workers[@]} -gt 0 ]]; then
  report "its workers" "$(IFS=,; echo "${!workers[*]}")"
fi
if [[ -n $spy ]]; then echo "Python functions of the busiest worker: $results/profile_$row.svg"; fi
