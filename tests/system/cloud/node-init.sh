#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the hypervisor's mount namespace. It mounts directories
# of the cloud where libvirt and Open vSwitch expect those of the machine. It
# hides D-Bus, so that other daemons of the machine do not learn of the guests.
#
# Usage: node-init.sh RUN_DIRECTORY
set -eu
run=$1
mount --make-rprivate /
if [ -d /run/udev ]; then
    mkdir -p "$run/udev"
    mount --bind /run/udev "$run/udev"
fi
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/libvirt /run/openvswitch /run/lock
if [ -d "$run/udev" ]; then
    mkdir -p /run/udev
    mount --bind "$run/udev" /run/udev
fi
mount --bind "$run/libvirt/run" /run/libvirt
mount --bind "$run/libvirt/etc" /etc/libvirt
mount --bind "$run/libvirt/lib" /var/lib/libvirt
mount --bind "$run/libvirt/cache" /var/cache/libvirt
mount --bind "$run/libvirt/log" /var/log/libvirt
mount --bind "$run/ovs/run" /run/openvswitch
mount --bind "$run/ovs/etc" /etc/openvswitch
mount --bind "$run/ovs/log" /var/log/openvswitch
mount -t hugetlbfs -o pagesize=2M none "$run/hugepages"
touch "$run/node-ready"
# When a guest starts, libvirt brings its tap device up and Open vSwitch adds
# it to a bridge. If both happen at once, Open vSwitch may set the device down
# again, and the guest cannot be reached: bring it up.
while sleep 1; do
    for tap in /sys/class/net/tap????????-??; do
        name=${tap##*/}
        read -r flags 2>/dev/null <"$tap/flags" || continue
        if [ $((flags & 1)) -eq 1 ]; then
            continue
        fi
        grep -qx -- "$name" "$run/interfaces-before" ||
            ip link set "$name" up || :
    done
done
