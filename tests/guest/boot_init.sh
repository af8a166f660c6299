#!/bin/busybox sh
# shellcheck shell=dash
# First program of the guest, out of the initramfs: makes the host's file system, shared read-only, the guest's root
# with a layer in memory above it, so that every program and library is there under the path it has outside. Goes on
# with second_init.sh.
export PATH=/bin
/bin/busybox --install -s /bin
give_up() {
    echo "guest: $*" >/dev/console
    poweroff -f
}
mount -t proc proc /proc
mount -t devtmpfs dev /dev
while read -r module; do
    modprobe "$module" || give_up "no module $module"
done </boot_modules
mount -t 9p -o trans=virtio,ro,cache=loose,msize=512000 host /lower || give_up "cannot mount the host's files"
mount -t tmpfs -o mode=755 memory /upper || give_up "no tmpfs"
mkdir /upper/changes /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/changes,workdir=/upper/work root /root || give_up "no overlay"
mount -t tmpfs -o mode=755 run /root/run || give_up "no /run"
mkdir /root/run/guest
mount -t 9p -o trans=virtio,msize=512000 run /root/run/guest || give_up "cannot mount the run folder"
mount --move /dev /root/dev
umount /proc
exec switch_root /root /run/guest/second_init
