#!/bin/bash
# Second program of the guest, process 1 under the final root: makes a small Linux system, runs the command that the
# host left in /run/guest, leaves its exit status there and turns the machine off. Messages go to the serial console,
# the command's output to a virtio port.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
# The layer above the host's files cannot do all that a file system in memory can (nameless files).
export TMPDIR=/run/tmp

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs trace /sys/kernel/tracing
mount -t debugfs debug /sys/kernel/debug
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mkdir -p /dev/pts /dev/shm /run/bin /run/tmp
mount -t devpts -o mode=620,ptmxmode=666 pts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
ln -sf /proc/self/fd /dev/fd
# cpu, memory and the rest are for the groups below, as on a usual host.
sed 's/\(^\| \)/\1+/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
# Where no cgroup has a CPU quota, the first one makes the kernel patch its scheduler, and the end of the last one
# patches it back (the static key of cfs_bandwidth_used). Under QEMU with a thread per CPU another CPU may go on with
# the old translation of the breakpoint that stands there meanwhile, and traps without end: the guest stands still,
# after some hundred changes at the latest, whoever makes them. So there is always a quota.
mkdir /sys/fs/cgroup/quota
echo "100000 100000" >/sys/fs/cgroup/quota/cpu.max

# The host need not have the tools for modules, and its own modules are for another kernel.
busybox=$(command -v busybox)
ln -s "$busybox" /run/bin/modprobe
ln -s "$busybox" /run/bin/lsmod
ln -s "$busybox" /run/bin/poweroff
PATH=/run/bin:$PATH
echo /run/bin/modprobe >/proc/sys/kernel/modprobe
mkdir -p "/lib/modules/$(uname -r)"
mount --bind "$(</run/guest/modules)" "/lib/modules/$(uname -r)"
while read -r module options; do
    # shellcheck disable=SC2086 # options are split on purpose
    modprobe "$module" $options || echo "guest: no module $module"
done </run/guest/module_names

echo guest >/proc/sys/kernel/hostname
ip link set lo up

if [ -e /run/guest/interactive ]; then
    stty -F /dev/hvc0 sane
    setsid -c /bin/bash /run/guest/command </dev/hvc0 >/dev/hvc0 2>&1
else
    TERM=dumb /bin/bash /run/guest/command </dev/null >"$(echo /dev/vport*p1)" 2>&1
fi
status=$?
# A command that prepared a start of the whole system; that ends by itself.
[ "$status" -ne 0 ] || [ ! -x /run/next_init ] || exec /run/next_init
echo "$status" >/run/guest/status
sync
echo "guest: exit status $status"
poweroff -f
