#!/usr/bin/env bash
# The benchmarks, one part after the other: `./dev bench` calls this after the build. Nothing is asserted but right
# results: figures of shared machines are for people.
#
#     tests/bench/run_bench.sh [PART...]      parts: plan simulate cap record peers (default: all)
#
# ROUNDS and BYTES in the environment change how often libraries are compared (default 7), and on what (64MiB).
# RECORD_RUNS is the size of the database (default 1000 runs; 10000 have 10 million rows and take minutes and 2 GiB).
set -euo pipefail
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/release
bench=$build/tests/bench
here=$root/tests/bench
export RAILBREAK=$build/railbreak
export RAILBREAK_BENCH_LAB=bench-$$

rounds=${ROUNDS:-7}
bytes=${BYTES:-64MiB}
ranks=4
iterations=5
warm_up=2
patience=120 # seconds for one program
# A rate that no queue of this machine reaches: the shapers are there but never hold a packet back for long.
lab_rate=1000Gbit/s

scratch=$(mktemp -d)
export TMPDIR=$scratch
lab_is_up=
children=()
failed=

# --- the end, whatever brings it --------------------------------------------------------------------------------------

clean_up() {
    local status=$? pid
    trap - EXIT INT TERM HUP
    for pid in "${children[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    [ -z "$lab_is_up" ] || "$RAILBREAK" lab down "$RAILBREAK_BENCH_LAB" >&2 || status=1
    rm -rf "$scratch"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs a program under a time limit as a child whose pid is known, so that a signal to this script ends it too. For the
# same reason nothing that takes time runs in a subshell.
limited() { # COMMAND...
    timeout --foreground "$patience" "$@" &
    children+=($!)
    local status=0
    wait $! || status=$?
    children=("${children[@]/$!/}")
    return "$status"
}

part() { # TITLE
    printf '\n== %s\n   load average %s on %s processors\n' "$1" "$(cut -d' ' -f1-3 /proc/loadavg)" "$(nproc)"
}

# --- libraries compared -----------------------------------------------------------------------------------------------

# Each prints "times_ms T T ... cpu_ms T right" on its last line.

run_executor() {
    limited "$bench/executor_bench" --lab "$RAILBREAK_BENCH_LAB" --ranks "$ranks" --bytes "$bytes" \
        --iterations "$iterations" --warm-up "$warm_up" --times
}

run_mpi() { # [--mca OPTION VALUE]...
    local hosts=() i
    for ((i = 1; i <= ranks; ++i)); do
        hosts+=("10.77.0.$i:1")
    done
    # Ranks that wait give the processor away when there are fewer processors than ranks, as Open MPI does by itself
    # when it knows; here each host seems to have all of them.
    [ "$(nproc)" -ge "$ranks" ] || set -- --mca mpi_yield_when_idle 1 "$@"
    [ "$(id -u)" -ne 0 ] || set -- --allow-run-as-root "$@"
    limited "$RAILBREAK" lab exec "$RAILBREAK_BENCH_LAB" h0 -- \
        mpirun --host "$(IFS=,; echo "${hosts[*]}")" -n "$ranks" --bind-to none \
        --mca plm_rsh_agent "$here/enter_lab_host.sh" --mca oob_tcp_if_include rail0 \
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include rail0 "$@" \
        "$bench/mpi_allreduce" --bytes "$bytes" --iterations "$iterations" --warm-up "$warm_up"
}

run_mpi_ring() {
    run_mpi --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4
}

run_gloo() { # ALGORITHM
    local rank pids=() pid status=0 store
    store=$(mktemp -d -p "$scratch")
    for ((rank = 0; rank < ranks; ++rank)); do
        timeout "$patience" "$RAILBREAK" lab exec "$RAILBREAK_BENCH_LAB" "h$rank" -- "$bench/gloo_allreduce" \
            --rank "$rank" --ranks "$ranks" --address "10.77.0.$((rank + 1))" --store "$store" --algorithm "$1" \
            --bytes "$bytes" --iterations "$iterations" --warm-up "$warm_up" &
        pids+=($!)
        children+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || status=$?
        children=("${children[@]/$pid/}")
    done
    return "$status"
}

run_contender() { # NAME
    case $1 in
    'railbreak ring') run_executor ;;
    'Open MPI ring') run_mpi_ring ;;
    'Open MPI default') run_mpi ;;
    'Gloo ring') run_gloo ring ;;
    'Gloo ring chunked') run_gloo ring-chunked ;;
    esac
}

# Runs one library once. Sets ms to its median time and cpu_ms to the processor time of all ranks for one AllReduce;
# without a right result it says why on stderr and fails.
ms='' cpu_ms=''
measure() { # NAME
    local log=$scratch/log
    if ! run_contender "$1" >"$log" 2>&1 || ! tail -n1 "$log" | grep -q '^times_ms .* right$'; then
        { echo "$1 failed:" && tail -n15 "$log"; } >&2
        return 1
    fi
    cpu_ms=$(tail -n1 "$log" | sed 's/.* cpu_ms \([^ ]*\) .*/\1/')
    ms=$(tail -n1 "$log" | sed 's/ cpu_ms .*//' | tr ' ' '\n' | grep '^[0-9]' | sort -n |
        awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }')
}

# Reads lines of NAME, ms and cpu_ms, separated by tabs, one block of all names per round. Prints a table: time, and
# time and processor time over those of the first name within the same round.
table() {
    awk -F'\t' '
        function put(values, count, form,   i, j, swap) {
            for (i = 2; i <= count; ++i)
                for (j = i; j > 1 && values[j - 1] > values[j]; --j) {
                    swap = values[j]; values[j] = values[j - 1]; values[j - 1] = swap
                }
            return sprintf(form " " form " " form, values[1], values[int((count + 1) / 2)], values[count])
        }
        NR == 1 { first = $1 }
        !($1 in seen) { seen[$1]; order[++names] = $1 }
        $1 == first { base = $2; cpu_base = $3 }
        { n = ++count[$1]; ms[$1, n] = $2; ratio[$1, n] = $2 / base; cpu[$1, n] = $3 / cpu_base }
        END {
            spread = "%8s %8s %8s"
            printf "   %-18s %6s  %26s  %26s  %26s\n", "", "", "time in ms", "time / " first, "CPU time / " first
            format = "   %-18s %6s  " spread "  " spread "  " spread "\n"
            printf format, "", "rounds", "min", "median", "max", "min", "median", "max", "min", "median", "max"
            for (k = 1; k <= names; ++k) {
                name = order[k]
                delete a; delete b; delete c
                for (i = 1; i <= count[name]; ++i) {
                    a[i] = ms[name, i]; b[i] = ratio[name, i]; c[i] = cpu[name, i]
                }
                printf "   %-18s %6d  %s  %s  %s\n", name, count[name], put(a, count[name], "%8.1f"), \
                    put(b, count[name], "%8.3f"), put(c, count[name], "%8.3f")
            }
        }'
}

bench_peers() {
    local contenders=('railbreak ring') round name
    part "AllReduce of $bytes float32, sum, in place, $ranks hosts: railbreak against other libraries"
    if ! "$RAILBREAK" lab up "$RAILBREAK_BENCH_LAB" --hosts "$ranks" --rate "$lab_rate" >"$scratch/log" 2>&1; then
        echo "   skipped: $(cat "$scratch/log")"
        return
    fi
    lab_is_up=1
    echo "   network namespaces with NICs at $lab_rate, more than this machine moves: nothing is capped"
    if [ ! -x "$bench/mpi_allreduce" ] || ! command -v mpirun >/dev/null; then
        echo "   skipped: Open MPI not found (apt-get install openmpi-bin libopenmpi-dev, then build again)"
    elif [ "$(id -u)" -ne 0 ]; then
        echo "   skipped: Open MPI, because mpirun inside one lab host enters the others, which takes root"
    else
        contenders+=('Open MPI ring' 'Open MPI default')
    fi
    if [ -x "$bench/gloo_allreduce" ]; then
        contenders+=('Gloo ring' 'Gloo ring chunked')
    else
        echo "   skipped: Gloo not found (apt-get install libgloo-dev, then build again)"
    fi
    for ((round = 1; round <= rounds; ++round)); do
        for name in "${contenders[@]}"; do
            if measure "$name"; then
                printf '%s\t%s\t%s\n' "$name" "$ms" "$cpu_ms" >>"$scratch/results"
            else
                failed="$name"
            fi
        done
    done
    echo "   one round runs every library once: $warm_up warm-up and $iterations timed iterations, of which the median"
    table <"$scratch/results"
}

# --- parts ------------------------------------------------------------------------------------------------------------

bench_plan() {
    part "planning (Google Benchmark)"
    limited "$bench/plan_bench" --benchmark_repetitions=3 --benchmark_report_aggregates_only=true \
        >"$scratch/plan" 2>/dev/null
    sed -n '/^Benchmark/p; /_median/p; /_cv/p' "$scratch/plan"
}

bench_simulate() {
    part "simulating (Google Benchmark); flows/s is per second of processor time"
    limited "$bench/simulate_bench" --benchmark_repetitions=3 --benchmark_report_aggregates_only=true \
        >"$scratch/simulate" 2>/dev/null
    sed -n '/^Benchmark/p; /_median/p; /_cv/p' "$scratch/simulate"
}

bench_cap() {
    part "cap effect time"
    limited "$bench/cap_bench"
    limited "$bench/cap_accuracy"
}

bench_record() {
    part "a database of many runs"
    patience=1800 limited "$bench/record_bench" --runs "${RECORD_RUNS:-1000}" --db "$scratch/runs.db"
}

[ $# -gt 0 ] || set -- plan simulate cap record peers
for name in "$@"; do
    case $name in
    plan | simulate | cap | record | peers) "bench_$name" ;;
    *)
        echo "run_bench.sh: unknown part \"$name\"; parts are plan, simulate, cap, record and peers" >&2
        exit 64
        ;;
    esac
done
[ -z "$failed" ] || {
    echo "run_bench.sh: $failed gave no right result at least once" >&2
    exit 1
}
