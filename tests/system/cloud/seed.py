# SPDX-License-Identifier: Apache-2.0

"""Create the network, the images and the key pair, and wait for the hosts.

The cloud's Python environment runs it. The argument is a JSON object with the
keys subnet, network (the physical network), guest (a directory), public_key (a
file), hosts (a list of names) and missing (a file for the names of the hosts
that are not up in time).
"""

import json
import pathlib
import sys

import openstack

from hpcvirt import waiting

#: Seconds until every compute service must be up.
PATIENCE_S = 180


def main(text: str) -> None:
    """Create what does not exist."""
    options = json.loads(text)
    cloud = openstack.connect()
    _network(cloud, options['subnet'], options['network'])
    _images(cloud, pathlib.Path(options['guest']))
    if not cloud.compute.find_keypair('cloud'):
        cloud.compute.create_keypair(
            name='cloud',
            public_key=pathlib.Path(options['public_key']).read_text())
    _wait_for_hosts(cloud, set(options['hosts']),
                    pathlib.Path(options['missing']))


def _network(cloud, subnet, physical_network):
    network = cloud.network.find_network('guests')
    if network is None:
        network = cloud.network.create_network(
            name='guests', provider_network_type='flat',
            provider_physical_network=physical_network, is_shared=True,
            is_router_external=True)
    if cloud.network.find_subnet('guests') is None:
        cloud.network.create_subnet(
            name='guests', network_id=network.id, ip_version=4,
            cidr=f'{subnet}.0/24', gateway_ip=f'{subnet}.1',
            is_dhcp_enabled=False,
            allocation_pools=[{'start': f'{subnet}.100',
                               'end': f'{subnet}.249'}])


def _images(cloud, guest):
    def upload(name, file, kind, container, **properties):
        found = cloud.image.find_image(name)
        return found or cloud.create_image(
            name, filename=str(guest / file), disk_format=kind,
            container_format=container, visibility='public', wait=True,
            validate_checksum=False, **properties)

    kernel = upload('guest-kernel', 'vmlinuz', 'aki', 'aki')
    ramdisk = upload('guest-ramdisk', 'initrd.gz', 'ari', 'ari')
    # The hypervisor type keeps the real guest off the simulated hosts, and
    # the simulated guest off the real host.
    upload('guest', 'disk.qcow2', 'qcow2', 'bare', kernel_id=kernel.id,
           ramdisk_id=ramdisk.id, hw_machine_type='pc',
           hw_vif_model='virtio', img_hv_type='qemu',
           os_command_line='console=ttyS0 quiet rdinit=/init')
    upload('simulated', 'empty.raw', 'raw', 'bare', img_hv_type='fake')


def _wait_for_hosts(cloud, hosts, report):
    missing = waiting.poll(lambda: hosts - _hosts_up(cloud),
                           lambda missing: not missing, PATIENCE_S, 1)
    if missing:
        report.write_text('\n'.join(sorted(missing)))
        sys.exit('hosts that are not up: ' + ', '.join(sorted(missing)))


def _hosts_up(cloud):
    # From 2.88 on Nova would ask each compute for its uptime, and wait a
    # minute for one that has not started yet.
    answer = cloud.compute.get('/os-hypervisors/detail', microversion='2.53')
    if answer.status_code != 200:
        return set()
    return {item['service']['host'] for item in answer.json()['hypervisors']
            if item['state'] == 'up'}


if __name__ == '__main__':
    main(sys.argv[1])
