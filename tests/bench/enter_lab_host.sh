#!/bin/sh
# Stands in for ssh under mpirun: ADDRESS COMMAND... runs the command on the lab host with that address (10.77.0.N).
# RAILBREAK is the binary, RAILBREAK_BENCH_LAB the lab's name. Lab hosts share this machine's name and files, and Open
# MPI's daemons would take each other's folders for their own; so each host gets a TMPDIR inside of TMPDIR.
set -eu
host=h$((${1##*.} - 1))
shift
TMPDIR=${TMPDIR:-/tmp}/$host
export TMPDIR
mkdir -p "$TMPDIR"
exec "$RAILBREAK" lab exec "$RAILBREAK_BENCH_LAB" "$host" -- sh -c "$*"
