#!/usr/bin/env bash
# Inside the guest: makes two Soft-RoCE devices, rxe0 over the NIC roce0 (10.20.0.1) and rxe1 over roce1 (10.20.0.2),
# with a cable (veth) between them, and goes on as the given command.
#
#   ./dev guest -- tests/guest/soft_roce.sh COMMAND...
#
# Soft-RoCE receives only in the first network namespace, so both NICs are there. For the kernel both addresses are then
# its own, and it would use no NIC at all between them: the rules below look for its own addresses only in what arrives.
set -euo pipefail
[ -e /run/guest ] || {
    echo "this rearranges the routing of the machine: for the guest only" >&2
    exit 1
}
ip link add roce0 type veth peer name roce1
for end in 0 1; do
    nic=roce$end own=10.20.0.$((end + 1)) other=10.20.0.$((2 - end))
    sysctl -q -w "net.ipv4.conf.$nic.accept_local=1" "net.ipv4.conf.$nic.rp_filter=0" \
        "net.ipv6.conf.$nic.addr_gen_mode=1"
    ip addr add "$own/24" dev "$nic"
    ip link set "$nic" up
    ip rule add pref 1 iif "$nic" lookup local
    ip rule add pref 2 to "$other" lookup $((100 + end))
    ip route add "$other" dev "$nic" src "$own" table $((100 + end))
done
ip rule add pref 10 lookup local
ip rule del pref 0
for end in 0 1; do
    rdma link add "rxe$end" type rxe netdev "roce$end"
done
exec "$@"
