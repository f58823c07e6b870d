# SPDX-License-Identifier: Apache-2.0

"""``GET /servers/{id}/topology`` shows what the flavor requests."""

from tempest.lib import decorators

from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import contract

CONF = base.CONF


class ServerTopologyTest(base.FleetTestCase):
    """Boots an instance of each generated flavor."""

    @decorators.idempotent_id('4f0c8e83-1b8e-4f6e-bf6f-24759ee1e533')
    def test_instance_of_each_flavor_has_the_planned_topology(self) -> None:
        """Cells, dedicated CPUs, memory and page size are as planned."""
        booted = 0
        for flavor in self.plan.flavors:
            hosts = [host for host in CONF.hpcvirt.hosts
                     if flavor.per_host.get(host)]
            if not hosts:
                continue
            flavor_id = self.create_flavor(flavor)
            with self.subTest(flavor=flavor.name, host=hosts[0]):
                server = self.boot(flavor_id, host=hosts[0])
                self.assert_matches_flavor(flavor, server['id'])
                booted += 1
                self.delete(server['id'])
        self.assertGreater(booted, 0, 'no flavor of the plan fits the hosts')

    @decorators.idempotent_id('36b6b4cf-e679-4b96-948d-8b5bd5568a24')
    def test_guest_threads_share_a_core_of_the_host(self) -> None:
        """Threads of a guest core are pinned to threads of one host core."""
        for name in CONF.hpcvirt.hosts:
            cores: list[frozenset[int]] = []
            for cell in self.host_topology(name).cells:
                cores += cell.siblings
            if max(map(len, cores)) < 2:
                continue
            threaded = [
                flavor for flavor in self.plan.flavors
                if flavor.per_host.get(name)
                and flavor.extra_specs.get('hw:cpu_threads', '1') != '1']
            if not threaded:
                continue
            flavor = min(threaded, key=lambda item: item.vcpus)
            server = self.boot(self.create_flavor(flavor), host=name)
            nodes = self.topology(server['id'])
            threads = int(flavor.extra_specs['hw:cpu_threads'])
            self.assertEqual([], contract.split_cores(nodes, threads, cores))
            return
        self.skipTest('no host of [hpcvirt]hosts has SMT and a flavor with '
                      'threads in [hpcvirt]plan_file')
