# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Give the fresh cloud a network, images and a key, and wait for the hosts.

Run by the cloud's Python environment. Argument: a JSON object with the keys
subnet, network, guest (directory), public_key (file), hosts (list of names),
missing (file that names the hosts that did not show up).
"""

import json
import pathlib
import sys
import time

import openstack

#: Seconds until every compute must have shown up.
PATIENCE_S = 180


def main(text: str) -> None:
    """Make what is missing."""
    wanted = json.loads(text)
    cloud = openstack.connect()
    _network(cloud, wanted['subnet'], wanted['network'])
    _images(cloud, pathlib.Path(wanted['guest']))
    if not cloud.compute.find_keypair('cloud'):
        cloud.compute.create_keypair(
            name='cloud',
            public_key=pathlib.Path(wanted['public_key']).read_text())
    _hosts(cloud, set(wanted['hosts']), pathlib.Path(wanted['missing']))


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
    # The hypervisor's type keeps the real guest off the fake hosts, and
    # the pretended guest off the real one.
    upload('guest', 'disk.qcow2', 'qcow2', 'bare', kernel_id=kernel.id,
           ramdisk_id=ramdisk.id, hw_machine_type='pc',
           hw_vif_model='virtio', img_hv_type='qemu',
           os_command_line='console=ttyS0 quiet rdinit=/init')
    upload('pretended', 'empty.raw', 'raw', 'bare', img_hv_type='fake')


def _hosts(cloud, wanted, report):
    deadline = time.monotonic() + PATIENCE_S
    missing = wanted
    while missing:
        if time.monotonic() > deadline:
            report.write_text('\n'.join(sorted(missing)))
            sys.exit('computes that did not show up: '
                     + ', '.join(sorted(missing)))
        # From 2.88 on Nova would ask each compute for its uptime, and wait a
        # minute for one that has not started yet.
        answer = cloud.compute.get('/os-hypervisors/detail',
                                   microversion='2.53')
        up = set()
        if answer.status_code == 200:
            up = {item['service']['host']
                  for item in answer.json()['hypervisors']
                  if item['state'] == 'up'}
        missing = wanted - up
        if missing:
            time.sleep(1)


if __name__ == '__main__':
    main(sys.argv[1])
