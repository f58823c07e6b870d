# SPDX-License-Identifier: Apache-2.0

"""From a host with eight GPUs to instances that know where theirs are.

The commands are those that an operator types. Nova gets only what they print
and write.
"""

import dataclasses
import json
import re

from nova.pci import request as pci_request
from oslo_config import cfg

from hpcvirt.model import host as host_model
from testing import libvirt
from testing import settings
from tests.builders import commands
from tests.builders import folders
from tests.builders import guest_files
from tests.builders import hosts
from tests.builders import nccl_reader
from tests.functional import lives

PROFILE = hosts.TOPOLOGIES.parent / 'profiles/gpu-nic.yaml'
TOPOLOGY = hosts.TOPOLOGIES / 'xeon-2s-20c-smt-8gpu.json'


class DeviceWalkTest(lives.LivesNova):
    OPTIONS = (('pci', 'report_in_placement', True),
               ('filter_scheduler', 'pci_in_placement', True))

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.assertEqual(0, self.hpcvirt(
            'host', 'config', '--deployer', 'kolla', '--write',
            self.folder / 'kolla').status)
        self.plan = json.loads(self.hpcvirt('flavor', 'plan', '-f',
                                            'json').out)
        self.host = hosts.named(TOPOLOGY.stem)
        nova = self.folder / 'kolla/config/nova'
        compute = self.read(nova / self.host.name / 'nova.conf')
        self.flags(group='pci', alias=self.read(
            nova / 'nova-scheduler.conf').pci.alias)
        pci_request.get_alias_from_config.cache_clear()
        self.addCleanup(pci_request.get_alias_from_config.cache_clear)
        pages = self.plan['host_config'][self.host.name]['pages']
        booted = dataclasses.replace(self.host, cells=tuple(
            dataclasses.replace(cell, pages=tuple(
                host_model.PagePool(int(size), count) for size, count
                in pages[str(cell.id)].items()))
            for cell in self.host.cells))
        self.add_machines(libvirt.Machine(booted, settings.ComputeSettings(
            cpu_dedicated_set=compute.compute.cpu_dedicated_set,
            cpu_shared_set=compute.compute.cpu_shared_set,
            reserved_host_memory_mb=int(compute.reserved_host_memory_mb),
            device_spec=tuple(compute.pci.device_spec))))
        self.use_as_cloud()

    def hpcvirt(self, *words):
        return commands.run(*words[:2], TOPOLOGY, '--profile', PROFILE,
                            *words[2:])

    @staticmethod
    def read(path):
        """Read what a file of Nova says, as oslo.config does."""
        conf = cfg.ConfigOpts()
        conf.register_opts([cfg.MultiStrOpt('alias', default=[]),
                            cfg.MultiStrOpt('device_spec', default=[])], 'pci')
        conf.register_opts([cfg.StrOpt('cpu_dedicated_set'),
                            cfg.StrOpt('cpu_shared_set')], 'compute')
        conf.register_opt(cfg.StrOpt('reserved_host_memory_mb'))
        conf([], default_config_files=[str(path)], default_config_dirs=[])
        return conf

    def fill(self, flavor):
        """Boot a flavor as often as the plan says, and once more."""
        made = self.create_flavor(flavor['vcpus'], flavor['ram_mib'],
                                  flavor['extra_specs'])
        count, = flavor['per_host'].values()
        servers = self.boot_many(made, count)
        servers.append(self.boot(made, status='ERROR'))
        return servers

    def test_the_largest_flavor_fills_the_host_and_knows_its_place(self):
        *_, largest = self.plan['flavors']
        self.assertEqual([8], self.fill_with_sets(largest))

    def test_periodic_each_flavor_fills_the_host_with_sets(self):
        single, *sets = self.plan['flavors']
        self.assertEqual([8], list(single['per_host'].values()))
        self.assertEqual([2, 2, 2, 2, 4, 4, 8], self.fill_with_sets(*sets))

    def fill_with_sets(self, *flavors):
        """Fill the host with each flavor, and return the GPUs of each guest.

        What the guests have is compared with the wiring of the host.
        """
        links = {frozenset(link.ends) for link in self.host.wiring.links}
        above = {each.address: self.host.wiring.path(each)[:2]
                 for each in self.host.wiring.attachments}
        cells = {device.address: device.cell for device in self.host.devices}
        products = {device.address: device.product_id
                    for device in self.host.devices}
        sizes = []
        for flavor in flavors:
            servers = self.fill(flavor)
            for server in servers[:-1]:
                held = self.guest(server).devices
                gpus = [each for each in held if products[each] == '1db1']
                cards = [each for each in held if each not in gpus]
                sizes.append(len(gpus))
                if len(gpus) <= 4:
                    for one in gpus:
                        for other in gpus:
                            self.assertTrue(one == other or frozenset(
                                (one, other)) in links, held)
                    self.assertEqual(1, len({cells[each] for each in held}))
                self.assertEqual(len(gpus) // 2, len(cards))
                self.assertLessEqual({above[each] for each in cards},
                                     {above[each] for each in gpus})
            if sizes[-1] == 8:
                self.assert_knows_its_place(servers[0])
            for server in servers:
                self.delete(server)
        return sizes

    def assert_knows_its_place(self, server):
        guest = self.guest(server)
        text, = self.connections[self.host.name].domains()
        domain = self.folder / 'domain.xml'
        domain.write_text(guest_files.add_addresses(text))
        done = commands.run('fleet', 'instance-topology', server['name'],
                            TOPOLOGY, '--domain', domain, '-f', 'nccl')
        self.assertEqual(0, done.status, done.err)
        cells = {device.address: device.cell for device in self.host.devices}
        expected = {
            f'0000:00:{slot:02x}.0': guest.host_cells.index(cells[address])
            for slot, address in enumerate(guest.devices, 1)}
        found = {}
        for cpu in nccl_reader.read(done.out).all('cpu'):
            for bus in re.findall('0000:00:[0-9a-f]{2}[.]0', str(
                    dataclasses.asdict(cpu))):
                found[bus] = int(dataclasses.asdict(cpu)['attributes'][
                    'numaid'])
        self.assertEqual(expected, found)
