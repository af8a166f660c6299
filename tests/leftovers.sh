#!/usr/bin/env bash
# What railbreak could leave on a machine, one thing a line, sorted: ./dev test compares the lists from before and
# after. Processes, network namespaces that they hold, devices, qdiscs, rules, routes and tables of this namespace, BPF
# programs, cgroups, files of state. What cannot be read here (no privilege, no tool) is left out.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }

processes() {
    local status name
    for status in /proc/[0-9]*/comm; do
        name=$(cat "$status" 2>/dev/null) || continue
        case $name in
        rb-* | railbreak) printf 'process %s %s in %s\n' "$(basename "$(dirname "$status")")" "$name" \
            "$(readlink "$(dirname "$status")/ns/net" 2>/dev/null || printf '?')" ;;
        esac
    done
}

network() {
    have ip || return 0
    ip -o link show 2>/dev/null | awk '/rbifb|alias railbreak/ { print "device", $2 }'
    ip rule show 2>/dev/null | awk '/proto 202/ { print "rule", $0 }'
    ip -6 rule show 2>/dev/null | awk '/proto 202/ { print "rule", $0 }'
    ip route show table all proto 202 2>/dev/null | sed 's/^/route /'
    ! have tc || tc qdisc show 2>/dev/null | awk '/ fa0[0-9a-f]: | fb0[0-9a-f]: / { print "qdisc", $0 }'
    ! have nft || nft list tables 2>/dev/null | awk '/ railbreak$/ { print "nft", $0 }'
}

programs() {
    ! have bpftool || bpftool prog show 2>/dev/null | awk '/name railbreak/ { print "bpf program", $1, $2, $3, $4 }'
}

folders() {
    find /sys/fs/cgroup -xdev -type d -name 'railbreak*' 2>/dev/null | sed 's/^/cgroup /' || true
    local mount
    while read -r _ mount _; do
        find "$mount" -xdev -type d -name 'railbreak*' 2>/dev/null | sed 's/^/cgroup /' || true
    done < <(awk '$3 ~ /^cgroup2?$/' /proc/mounts)
    local path
    # Folders of state (/run/railbreak, /tmp/railbreak-UID) may stay; what lies in them may not.
    for path in /run/railbreak/*/* /tmp/railbreak-*/journal/* "${TMPDIR:-/tmp}"/railbreak-* /tmp/railbreak-*; do
        [ ! -e "$path" ] || [[ $path =~ ^/tmp/railbreak-[0-9]+$ ]] || printf 'file %s\n' "$path"
    done
}

{
    processes
    network
    programs
    folders
} | sort -u
