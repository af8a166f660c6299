#!/usr/bin/env bash
# The same scenarios in the lab and in the simulator, side by side: how well does the simulator predict what real TCP
# over capped links does? Nothing is asserted: the tables are for people.
#
#     tests/bench/lab_vs_sim.sh [CASE...]
#
# A case is HOSTS:DAMAGE[,DAMAGE...], DAMAGE = HOST=FRACTION; the default is the list below. BYTES, RATE, ITERATIONS and
# ALGORITHMS in the environment change the rest.
set -euo pipefail
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
railbreak=$root/build/release/railbreak
bytes=${BYTES:-32MiB}
rate=${RATE:-500Mbit/s}
iterations=${ITERATIONS:-3}
algorithms=${ALGORITHMS:-ring, optcc, r2ccl, iccl}

[ $# -gt 0 ] || set -- 8:3=7/8 8:3=3/4 8:3=1/2 8:3=1/3 8:2=1/2,5=3/4 5:2=1/2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

write_scenario() { # CASE
    local hosts=${1%%:*} damage count=0
    cat <<YAML
railbreak: 1
name: lab-vs-sim
description: ${1//:/ hosts, }
cluster: {hosts: $hosts, rate: $rate}
workload:
  collective: allreduce
  bytes: $bytes
  dtype: float32
  algorithms: [$algorithms]
  iterations: {warmup: 1, steady: $iterations, degraded: $iterations, recovered: 0}
  iteration_timeout: 60s
lease: 30s
faults:
YAML
    IFS=, read -ra parts <<<"${1#*:}"
    for damage in "${parts[@]}"; do
        count=$((count + 1))
        printf '  - {name: slow-%s, kind: cap, target: {host: %s}, direction: both, fraction: %s, during: degraded}\n' \
            "$count" "${damage%%=*}" "${damage#*=}"
    done
}

run_of() { # COMMAND...: runs it, prints the id of the run that it recorded
    local status=0
    "$@" --db "$scratch/runs.db" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq 0 ] || {
        cat "$scratch/err" >&2
        printf 'lab_vs_sim: %s ended with %s\n' "$2" "$status" >&2
    }
    "$railbreak" --db "$scratch/runs.db" list -n 1 | awk 'NR == 2 { print $1 }'
}

for case in "$@"; do
    write_scenario "$case" >"$scratch/scenario.yaml"
    printf '\n== %s\n   load average %s\n' "$case" "$(cut -d' ' -f1-3 /proc/loadavg)"
    simulated=$(run_of "$railbreak" simulate "$scratch/scenario.yaml")
    measured=$(run_of "$railbreak" run "$scratch/scenario.yaml")
    "$railbreak" --db "$scratch/runs.db" compare "$simulated" "$measured"
done
