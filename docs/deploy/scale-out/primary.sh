#!/bin/bash
# Runs once, when the primary is created: the standby may connect, and commits wait for it from the next start on.
set -eu
echo "host replication till samenet scram-sha-256" >>"$PGDATA/pg_hba.conf"
psql --username till --dbname till --command "ALTER SYSTEM SET synchronous_standby_names = '*'"
