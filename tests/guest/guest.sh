#!/usr/bin/env bash
# Runs one command as root in a small virtual machine with Debian's kernel: what this machine's kernel lacks (netem,
# fq, bonds, Soft-RoCE) is there, and nothing that the command does can reach this machine. The guest sees this
# machine's files, read-only with a layer in memory above, so every program and library is at hand under its own path.
# Its emulation is in software and slow: expect a boot of some seconds and a fifth of the usual speed or less. One
# thread emulates all its CPUs: two guests keep two cores busy, and QEMU 7.2 with a thread a CPU has frozen when one CPU
# patched code that another was in.
set -euo pipefail
shopt -s inherit_errexit

usage() {
    cat <<'USAGE'
usage: guest.sh [--timeout SECONDS] [--memory MIB] [--cpus N] [--gtest-name NAME] [-- COMMAND [ARG...]]

Without a command: a shell. Extra modules: GUEST_MODULES="name ..." in the environment.
A GoogleTest program's results come to where GTEST_OUTPUT says, as NAME.xml if that is a folder.

exit status: that of the command; 77 with a line on stdout that says why if there can be no guest here; 124 after the
timeout; 125 if the guest died
USAGE
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$here/../../build/guest
timeout=300 memory=1024 cpus=2 gtest_name=guest

# What the image holds of the kernel's modules; those that boot_init.sh needs; those that are loaded before the command
# runs (a program in a user namespace would not get them loaded), with their options.
kernel_parts=(arch crypto fs lib net drivers/char drivers/infiniband drivers/net drivers/virtio)
boot_modules=(virtio_pci 9pnet_virtio 9p overlay virtio_console)
modules=(
    veth bridge "dummy numdummies=0" "ifb numifbs=0" "bonding max_bonds=0" macvlan vxlan tun e1000e virtio_net
    sch_htb sch_tbf sch_netem sch_fq sch_fq_codel sch_prio sch_ingress
    cls_u32 cls_bpf cls_matchall act_mirred act_police act_gact
    nf_tables crc32_generic rdma_rxe ib_uverbs rdma_ucm
)

say() { printf 'guest: %s\n' "$*" >&2; }

unavailable() {
    echo "no guest here: $*"
    exit 77
}

# --- the image --------------------------------------------------------------------------------------------------------

# Prints the name of the kernel's package.
kernel_package() {
    LC_ALL=C apt-cache show linux-image-amd64 2>/dev/null |
        awk -F '[ ,]+' '$1 == "Depends:" { print $2; exit }' | grep '^linux-image-[0-9]'
}

# Leaves the kernel and the modules of PACKAGE in FOLDER; what went wrong stands in FOLDER/log. Called behind "||", so
# bash does not stop by itself.
fetch_kernel() { # PACKAGE FOLDER
    local package=$1 folder=$2 version=${1#linux-image-} wanted=(./boot/"vmlinuz-${1#linux-image-}") part
    for part in "${kernel_parts[@]}"; do
        wanted+=("./lib/modules/$version/kernel/$part")
    done
    wanted+=("./lib/modules/$version/modules.order" "./lib/modules/$version/modules.builtin")
    {
        (cd "$folder" && apt-get download -q "$package") &&
            dpkg-deb --fsys-tarfile "$folder/$package"_*.deb | tar -x -C "$folder" "${wanted[@]}" &&
            rm "$folder/$package"_*.deb &&
            busybox depmod -b "$folder" "$version"
    } >"$folder/log" 2>&1
}

# Prints the files of MODULE and of all that it needs, relative to the folder of modules.
module_files() { # FOLDER MODULE...
    local folder=$1
    shift
    printf '%s\n' "$@" | awk '
        FNR == NR { wanted[$1] = 1; next }
        {
            name = $1
            sub(/.*\//, "", name); sub(/\.ko:$/, "", name)
            if (!(name in wanted)) next
            sub(/:/, "")
            for (i = 1; i <= NF; i++) print $i
        }
    ' - "$folder/modules.dep" | sort -u
}

make_initramfs() { # FOLDER VERSION
    local folder=$1 version=$2 root=$1/initramfs files file
    files=$(module_files "$folder/lib/modules/$version" "${boot_modules[@]}")
    rm -rf "$root"
    mkdir -p "$root"/{bin,dev,proc,lower,upper,root}
    cp "$(command -v busybox)" "$root/bin/busybox" || return
    install -m 755 "$here/boot_init.sh" "$root/init" || return
    printf '%s\n' "${boot_modules[@]}" >"$root/boot_modules"
    for file in $files; do
        install -D "$folder/lib/modules/$version/$file" "$root/lib/modules/$version/$file" || return
    done
    busybox depmod -b "$root" "$version" || return
    (cd "$root" && find . | busybox cpio -o -H newc | gzip -1) >"$folder/initramfs.gz" || return
    rm -rf "$root"
}

# Sets `image` to the folder of the image, made now if it is not there yet; `reason` where it cannot be.
find_image() {
    local package stamp
    package=$(kernel_package) || {
        reason="apt knows no kernel package (apt-get update)"
        return 1
    }
    stamp=$({
        echo "$package ${boot_modules[*]} ${kernel_parts[*]}"
        LC_ALL=C apt-cache policy "$package" | grep Candidate
        cat "$here/boot_init.sh" "$(command -v busybox)"
    } | sha256sum | cut -c1-16)
    version=${package#linux-image-}
    image=$build/image-$stamp
    [ ! -e "$image/initramfs.gz" ] || return 0
    (
        flock 9
        [ ! -e "$image/initramfs.gz" ] || exit 0
        rm -rf "$build/new"
        mkdir -p "$build/new"
        fetch_kernel "$package" "$build/new" || exit
        say "making the image with $package"
        make_initramfs "$build/new" "$version" >>"$build/new/log" 2>&1 || exit
        rm -rf "$build"/image-*
        mv "$build/new" "$image"
    ) 9>"$build/lock" || {
        reason="cannot make an image with $package ($(tail -n 1 "$build/new/log"))"
        return 1
    }
}

prepare_image() {
    local tool
    [ "$(uname -m)" = x86_64 ] || unavailable "the guest is for x86-64 machines"
    for tool in qemu-system-x86_64 busybox apt-get dpkg-deb ip setsid; do
        command -v "$tool" >/dev/null || unavailable "$tool is missing (./dev setup guest)"
    done
    find_image && return
    # apt's lists name a kernel that has been replaced in the archive since.
    if [ "$(id -u)" -eq 0 ] && grep -q ' 404 ' "$build/new/log" 2>/dev/null && apt-get update -q >/dev/null 2>&1; then
        find_image && return
    fi
    unavailable "$reason"
}

# --- one run ----------------------------------------------------------------------------------------------------------

# Writes the script that the guest runs: same folder, same variables of the tests, the command.
write_command() { # COMMAND...
    printf 'cd %q || exit\n' "$PWD"
    [ -z "${GTEST_FILTER:-}" ] || printf 'export GTEST_FILTER=%q\n' "$GTEST_FILTER"
    printf 'export GTEST_OUTPUT=xml:/run/guest/gtest.xml\n'
    printf 'exec '
    printf '%q ' "$@"
    printf '\n'
}

# GoogleTest's results go where GTEST_OUTPUT said.
keep_gtest_results() {
    local to=${GTEST_OUTPUT:-}
    to=${to#xml:}
    [ -n "$to" ] && [ -e "$run/gtest.xml" ] || return 0
    case $to in
    */) mkdir -p "$to" && cp "$run/gtest.xml" "$to$gtest_name.xml" ;;
    *) cp "$run/gtest.xml" "$to" ;;
    esac
}

# Beside what the run needs there are two NICs with a cable between them: eth0 as real machines have one (e1000e, behind
# a PCIe port), eth1 as virtual machines do. In the run's folder, because the path of a socket must be short.
start_qemu() { # PORT
    timeout --foreground --kill-after=5 "$timeout" qemu-system-x86_64 \
        -no-user-config -nodefaults -no-reboot -display none -machine q35 -accel tcg,thread=single -cpu max \
        -smp "$cpus" -m "$memory" -kernel "$image/boot/vmlinuz-$version" -initrd "$image/initramfs.gz" \
        -append "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off" \
        -serial file:console -device virtio-serial-pci -chardev stdio,id=command,signal=off \
        -device "$1,chardev=command" \
        -netdev stream,id=end0,server=on,addr.type=unix,addr.path=cable \
        -device pcie-root-port,id=slot0 -device e1000e,bus=slot0,netdev=end0,romfile= \
        -netdev stream,id=end1,server=off,addr.type=unix,addr.path=cable \
        -device virtio-net-pci,netdev=end1,romfile= \
        -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
        -virtfs local,path=.,mount_tag=run,security_model=none
}

run_guest() { # COMMAND...
    local status=0 port=virtserialport
    find "$build" -maxdepth 1 -name 'run.*' -mmin +600 -exec rm -r {} + # of runs that were killed
    run=$(mktemp -d "$build/run.XXXXXX")
    trap 'rm -rf "$run"' EXIT
    if [ $# -eq 0 ]; then
        touch "$run/interactive"
        port=virtconsole
        set -- bash -i
    else
        # qemu takes the end of its input for a host that is not there, and then the guest cannot write.
        mkfifo "$run/no_input"
        exec <>"$run/no_input"
    fi
    write_command "$@" >"$run/command"
    cp "$here/second_init.sh" "$run/second_init"
    chmod +x "$run/second_init"
    echo "$image/lib/modules/$version" >"$run/modules"
    # shellcheck disable=SC2086 # the list is split on purpose
    printf '%s\n' "${modules[@]}" ${GUEST_MODULES:-} >"$run/module_names"
    (cd "$run" && start_qemu "$port") || status=$?
    keep_gtest_results
    [ "$status" -ne 124 ] || say "no end within $timeout s"
    if [ "$status" -eq 0 ] && [ -s "$run/status" ]; then
        status=$(<"$run/status")
    else
        say "the guest died; its last words:"
        tail -n 40 "$run/console" >&2 || true
        [ "$status" -ne 0 ] || status=125
    fi
    return "$status"
}

while [ $# -gt 0 ]; do
    case $1 in
    --timeout | --memory | --cpus | --gtest-name)
        [ $# -ge 2 ] || { usage >&2; exit 64; }
        option=${1#--}
        declare "${option//-/_}=$2"
        shift 2
        ;;
    --)
        shift
        break
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 64
        ;;
    esac
done
mkdir -p "$build"
build=$(cd "$build" && pwd)
prepare_image
run_guest "$@"
