#!/usr/bin/env bash
# Durable creations over REST beside bare durable INSERTs into PostgreSQL, one after the other on the same disk.
#
#   api/benches/postgres.sh [SECONDS [ROUNDS [CONNECTIONS...]]]      default: 8 3 1 16 64
#
# PostgreSQL gets a cluster of its own in a temporary folder: fsync and synchronous_commit on, all else as it comes.
# One INSERT a transaction, prepared, of 300 bytes, into a table without an index, over a Unix socket: the least it can do
# for a row that is kept. The gateway is `hivetill dev`: REST, five tables with their indexes, limits off. Needs
# `cargo build --profile dist` (HIVETILL names another program) and PostgreSQL's programs (PG_BIN names their folder). TMPDIR decides which disk.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-8} rounds=${2:-3}
connections=("${@:3}")
[ ${#connections[@]} -gt 0 ] || connections=(1 16 64)
hivetill=${HIVETILL:-target/dist/hivetill}
pg_bin=${PG_BIN:-$(find /usr/lib/postgresql -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -1)}
folder=$(mktemp -d "${TMPDIR:-/tmp}/hivetill-postgres.XXXXXX")
gateway=
as_owner=()
# PostgreSQL refuses to run as root.
[ "$(id -u)" != 0 ] || as_owner=(setpriv --reuid=postgres --regid=postgres --clear-groups)

end() {
    [ -z "$gateway" ] || kill "$gateway" 2>/dev/null || true
    "${as_owner[@]}" "$pg_bin/pg_ctl" -D "$folder/postgres" -m immediate stop >/dev/null 2>&1 || true
    [ -z "$gateway" ] || wait "$gateway" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT

chmod 755 "$folder"
mkdir "$folder/postgres"
[ "$(id -u)" != 0 ] || chown postgres "$folder/postgres"
export LC_ALL=C
"${as_owner[@]}" "$pg_bin/initdb" -D "$folder/postgres" -U bench -A trust >/dev/null
"${as_owner[@]}" "$pg_bin/pg_ctl" -D "$folder/postgres" -w -l "$folder/postgres/log" \
    -o "-k $folder/postgres -c listen_addresses= -c fsync=on -c synchronous_commit=on -c max_connections=200" start >/dev/null
at=(-h "$folder/postgres" -U bench postgres)
"$pg_bin/psql" -q "${at[@]}" -c 'CREATE TABLE bare (body text)'
printf "INSERT INTO bare VALUES ('%s');\n" "$(head -c 300 /dev/zero | tr '\0' x)" >"$folder/insert.sql"

"$hivetill" dev --json --data "$folder/gateway" --listen 127.0.0.1:0 --ledger-listen 127.0.0.1:0 \
    --grpc-listen 127.0.0.1:0 >"$folder/said" &
gateway=$!
until [ -s "$folder/said" ]; do kill -0 "$gateway"; sleep 0.1; done
url=$(sed 's/.*"api":"\([^"]*\)".*/\1/' "$folder/said")
HIVETILL_API_KEY=$(sed 's/.*"merchant":{[^}]*"apiKey":"\([^"]*\)".*/\1/' "$folder/said")
export HIVETILL_API_KEY

inserts() {
    "$pg_bin/pgbench" -n -M prepared -f "$folder/insert.sql" -c "$1" -j "$(($1 < 2 ? 1 : 2))" -T "$seconds" "${at[@]}" 2>/dev/null |
        sed -n 's/^tps = \([0-9]*\).*/\1/p'
}
creations() {
    "$hivetill" load create --url "$url" --connections "$1" --duration "${seconds}s" --json |
        sed 's/.*"perSecond":\([0-9]*\).*/\1/'
}
median() { tr ' ' '\n' | grep . | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

declare -A rows
for _ in $(seq "$rounds"); do
    for each in "${connections[@]}"; do
        rows[pg$each]+=" $(inserts "$each")"
        rows[us$each]+=" $(creations "$each")"
    done
done
printf '%12s %14s %14s %7s   (medians of %s, %s s each)\n' connections 'INSERTs/s' 'creations/s' ratio "$rounds" "$seconds"
for each in "${connections[@]}"; do
    pg=$(median <<<"${rows[pg$each]}") us=$(median <<<"${rows[us$each]}")
    printf '%12s %14s %14s %7s   INSERTs%s | creations%s\n' "$each" "$pg" "$us" \
        "$(awk "BEGIN {printf \"%.2f\", $us / $pg}")" "${rows[pg$each]}" "${rows[us$each]}"
done
