#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the test guest: it loads drivers, reads the config
# drive, sets the address and the keys, and starts the SSH server.
export PATH=/sbin:/usr/sbin:/bin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
while read -r module; do
    insmod "/lib/modules/$module" 2>/dev/null
done < /lib/modules/order
hostname guest
ip link set lo up

# The config drive is an ISO 9660 disk. Its device depends on the machine type,
# and may appear late.
mkdir -p /mnt/config
drive=
tries=0
while [ -z "$drive" ] && [ "$tries" -lt 100 ]; do
    for name in sr0 vdb vdc sda sdb; do
        [ -b "/dev/$name" ] || continue
        mount -t iso9660 -o ro "/dev/$name" /mnt/config 2>/dev/null || continue
        if [ -d /mnt/config/openstack ]; then
            drive=$name
            break
        fi
        umount /mnt/config
    done
    [ -n "$drive" ] || sleep 0.2
    tries=$((tries + 1))
done

first() { # PATTERN FILE: print the first match
    grep -oE "$1" "$2" | head -n 1
}

interface=$(find /sys/class/net -mindepth 1 -maxdepth 1 ! -name lo |
    head -n 1)
interface=${interface##*/}
address=
if [ -n "$drive" ]; then
    meta=/mnt/config/openstack/latest/meta_data.json
    net=/mnt/config/openstack/latest/network_data.json
    grep -oE '(ssh-[a-z0-9]+|ecdsa-sha2-nistp[0-9]+) [A-Za-z0-9+/=]+' \
        "$meta" | sort -u > /root/.ssh/authorized_keys
    name=$(first '"hostname": *"[^"]*"' "$meta" | cut -d '"' -f 4)
    [ -z "$name" ] || hostname "$name"
    address=$(first '"ip_address": *"[0-9.]+' "$net" | cut -d '"' -f 4)
    mask=$(first '"netmask": *"[0-9.]+' "$net" | cut -d '"' -f 4)
    gateway=$(grep -oE '"gateway": *"[0-9.]+' "$net" | tail -n 1 |
        cut -d '"' -f 4)
    mtu=$(first '"mtu": *[0-9]+' "$net" | tr -dc 0-9)
fi
if [ -n "$interface" ] && [ -n "$address" ]; then
    [ -z "$mtu" ] || ip link set "$interface" mtu "$mtu"
    ifconfig "$interface" "$address" netmask "${mask:-255.255.255.0}" up
    [ -z "$gateway" ] || ip route add default via "$gateway"
fi
# As cloud-init does with a script.
if [ -n "$drive" ] && [ -f /mnt/config/openstack/latest/user_data ]; then
    sh /mnt/config/openstack/latest/user_data
fi
chmod 755 / /root
chmod 700 /root/.ssh
chmod 600 /root/.ssh/* 2>/dev/null
: > /var/log/lastlog
dropbearkey -t ed25519 -f /etc/dropbear/dropbear_ed25519_host_key >/dev/null 2>&1
dropbearkey -t ecdsa -f /etc/dropbear/dropbear_ecdsa_host_key >/dev/null 2>&1
# As cloud-init prints them; clients of the cloud read the console.
echo '-----BEGIN SSH HOST KEY KEYS-----'
for kind in ed25519 ecdsa; do
    dropbearkey -y -f "/etc/dropbear/dropbear_${kind}_host_key" |
        grep -E '^(ssh|ecdsa)-'
done
echo '-----END SSH HOST KEY KEYS-----'
dropbear -s -E -p 22
echo "guest ready: $(grep -c ^processor /proc/cpuinfo) CPUs," \
    "address ${address:-none}, after $(cut -d ' ' -f 1 /proc/uptime) s"
while :; do
    setsid cttyhack /bin/sh -l
    sleep 1
done
