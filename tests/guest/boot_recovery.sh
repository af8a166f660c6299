#!/usr/bin/env bash
# In the guest: is a host that lost its power during a fault as it was once it has started again? Leaves what such a
# host has on its disks (a file system full of ballast, a journal of another boot), installs the unit as docs/safety.md
# says, and lets systemd start the machine, which then looks.
#
#   boot_recovery.sh RAILBREAK          leaves it and asks for systemd
#   boot_recovery.sh RAILBREAK check    what systemd runs at the end
set -euo pipefail

railbreak=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
disk=/srv/disk
state=/var/lib/railbreak

say() { printf '%s\n' "$*"; }
journals() { find "$state" -name '*.journal' -printf '%f '; }
room() { df --output=avail -B1 "$disk" | tail -n 1 | tr -d ' '; }

# Sends one request to the agent and prints its answer, past whatever it notifies of.
ask() { # ID METHOD PARAMS
    local line
    printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$1" "$2" "$3" >&"${agent[1]}"
    while read -r -t 60 -u "${agent[0]}" line; do
        [[ $line != *"\"id\":$1,"* ]] || break
    done
    printf '%s\n' "$line"
    [[ $line == *'"result"'* ]]
}

# A fault on the disk whose agent and guard end with the machine.
break_disk() {
    local answer guard
    coproc agent { RAILBREAK_STATE_DIR=$state exec "$railbreak" agent --stdio; }
    answer=$(ask 1 init '{"run_id":"before","host_name":"guest","lease_ns":60000000000,"protected_nics":[]}')
    guard=$(grep -o '"guard_pid":[0-9]*' <<<"$answer" | cut -d: -f2)
    ask 2 fault.apply '{"id":1,"kind":"disk_full","folder":"'"$disk"'","leave_bytes":1048576}'
    # shellcheck disable=SC2154 # the coprocess sets it
    kill -KILL "$guard" "$agent_PID"
    wait "$agent_PID" || true
}

leave_a_broken_host() {
    mkdir -p "$disk" "$state"
    chmod 700 "$state"
    mount -t tmpfs -o size=32m disk "$disk" # stands for a disk: it is there again after the start
    room >/run/room_before
    echo 11111111-2222-4333-8444-555555555555 >/run/other_boot
    mount --bind /run/other_boot /proc/sys/kernel/random/boot_id
    break_disk
    umount /proc/sys/kernel/random/boot_id
    say "left: $(room) of $(</run/room_before) bytes free, journals: $(journals)"
}

install_unit() {
    cp "$railbreak" /usr/bin/railbreak
    install -m 644 "$here/../../packaging/railbreak-recover.service" /etc/systemd/system/
    systemctl enable railbreak-recover.service
    mkdir -p /etc/systemd/system/railbreak-recover.service.d
    printf '[Service]\nEnvironment=RAILBREAK_STATE_DIR=%s\n' "$state" \
        >/etc/systemd/system/railbreak-recover.service.d/state.conf
}

# Only what belongs to the start of every host, then the check; nothing that this machine starts besides.
install_check() {
    : >/etc/fstab
    ln -s /dev/null /etc/tmpfiles.d/tmp.conf # /tmp is large here, and this script may be in it
    cat >/etc/systemd/system/check.service <<UNIT
[Unit]
Requires=sysinit.target
After=sysinit.target network-pre.target
[Service]
Type=oneshot
ExecStart=/bin/bash $here/boot_recovery.sh $railbreak check
UNIT
    printf '#!/bin/sh\nexec /lib/systemd/systemd --unit=check.service\n' >/run/next_init
    chmod +x /run/next_init
}

check() {
    local status=0
    say "process 1: $(</proc/1/comm)"
    journalctl --no-pager -o cat -u railbreak-recover.service
    systemctl show -p LoadState,ActiveState,Result,ExecMainStatus railbreak-recover.service
    say "now: $(room) of $(</run/room_before) bytes free, journals: $(journals)"
    [ "$(</proc/1/comm)" = systemd ] || status=1
    [ "$(systemctl show -P Result railbreak-recover.service)" = success ] || status=1
    [ -n "$(systemctl show -P ExecMainStartTimestamp railbreak-recover.service)" ] || status=1
    [ "$(room)" = "$(</run/room_before)" ] && [ -z "$(ls -A "$disk")" ] || status=1
    [ -z "$(journals)" ] || status=1
    return "$status"
}

if [ "${2:-}" = check ]; then
    (check) >"$(echo /dev/vport*p1)" 2>&1 && status=0 || status=$?
    echo "$status" >/run/guest/status
    sync
    /run/bin/poweroff -f
else
    [ -x /lib/systemd/systemd ] || {
        say "no systemd here (./dev setup guest)"
        exit 77
    }
    leave_a_broken_host
    [ "$(room)" -lt 2097152 ]
    install_unit
    install_check
fi
