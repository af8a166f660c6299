#!/bin/sh
# Stands in for ssh under mpirun: ADDRESS COMMAND... runs the command on the lab host with that address (10.77.0.N).
# RAILBREAK is the binary, RAILBREAK_BENCH_LAB the lab's name.
set -eu
host=h$((${1##*.} - 1))
shift
exec "$RAILBREAK" lab exec "$RAILBREAK_BENCH_LAB" "$host" -- sh -c "$*"
