# SPDX-License-Identifier: Apache-2.0

"""Guests of a Nova that are measured: this machine stands in for them."""

import copy
import json

import fixtures

from hpcvirt.cloud import servers
from hpcvirt.topology import snapshot
from tests.functional import base
from tests.integration.bench import rebooting


class MeasuringTestCase(base.HPCNova):
    """What is started in an instance runs on this machine.

    :ivar places: the executors of rebooting guests
    :ivar urls: where they were reached
    """

    def answer_for_others(self):
        """Let Glance and Neutron find an image and a network."""
        for name, found in (
                ('image', self.glance.image1['id']),
                ('network', self.neutron.network_1['id'])):
            self.useFixture(fixtures.MonkeyPatch(
                'hpcvirt.cloud.benchmark_instances.BenchmarkInstances.find_'
                + name, lambda *_, found=found: found))
        self.ports = copy.deepcopy(self.neutron._net1_ports)

    def restore_ports(self):
        """Give back the ports, because the fixture gives each of them once."""
        self.neutron._net1_ports = copy.deepcopy(self.ports)

    def reach_guests(self, boots_between=0):
        """Let each guest be this machine, with a boot id of its own.

        :param boots_between: the boots by which the first ones of two guests
            differ
        """
        self.places, self.urls = [], []
        reboot = servers.ServerRebooter.reboot

        def place(url, *_):
            self.urls.append(url)
            self.places.append(rebooting.Guest(
                first_boot=boots_between * len(self.places)))
            return self.places[-1]

        def reboot_all(rebooter):
            reboot(rebooter)
            for each in self.places:
                each.reboot()
        for name, new in (
                ('cmd.bench.targets._ssh', place),
                ('cloud.servers.ServerRebooter.reboot', reboot_all)):
            self.useFixture(fixtures.MonkeyPatch(f'hpcvirt.{name}', new))

    def write_fleet(self, folder, machine):
        """Write a fleet document with one class of one host, ``small``."""
        name = machine.host.name
        (folder / 'topology.json').write_text(snapshot.dumps(machine.host))
        (folder / 'fleet.yaml').write_text(json.dumps({
            'schema_version': 1, 'classes': {'small': {
                'hosts': [f'{name}=topology.json'],
                'profile': {'base': 'dense', 'disk_gib': 0}}}}))
