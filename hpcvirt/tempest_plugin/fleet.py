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

"""Base class of tests that fill hosts whose topology is known."""

import pathlib

from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils

from hpcvirt import topology
from hpcvirt import waiting
from hpcvirt.model import host as host_model
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import plan

CONF = base.CONF


class FleetTestCase(base.HPCTestCase):
    """Fills hosts that nothing else uses."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require_servers()
        cls.require('plan_file', 'hosts')

    @classmethod
    def resource_setup(cls) -> None:
        super().resource_setup()
        cls.plan = plan.load(CONF.hpcvirt.plan_file)

    def setUp(self) -> None:
        super().setUp()
        self._wait_for_empty_hosts()

    def _wait_for_empty_hosts(self) -> None:
        """Wait until Nova has freed the resources of earlier tests.

        A compute host frees some of them (after a move from it, for example)
        only when it next updates its resources, once a minute by default.
        """
        busy = waiting.until(self._memory_in_use, lambda busy: not busy,
                             CONF.compute.build_timeout, 2)
        self.assertEqual({}, busy, 'MiB in use on hosts of [hpcvirt]hosts '
                                   'that must be empty')

    def _memory_in_use(self) -> dict[str, int]:
        """Return the MiB that instances use, by host, without empty hosts."""
        client = self.os_admin.hypervisor_client
        busy = {}
        for item in client.list_hypervisors(detail=True)['hypervisors']:
            host = item['service']['host']
            config = self.plan['host_config'].get(host)
            if host not in CONF.hpcvirt.hosts or not config:
                continue
            # 512 is the default of [DEFAULT]reserved_host_memory_mb.
            reserved = max(512, config['reserved_host_memory_mb'])
            if item['memory_mb_used'] > reserved:
                busy[host] = item['memory_mb_used'] - reserved
        return busy

    @classmethod
    def require_twins(cls) -> None:
        if len(CONF.hpcvirt.twin_hosts) < 2:
            raise cls.skipException(
                '[hpcvirt]twin_hosts names fewer than two hosts')

    def host_topology(self, name: str) -> host_model.Host:
        """Read the topology of a host from ``[hpcvirt]topology_dir``."""
        if not CONF.hpcvirt.topology_dir:
            raise self.skipException('[hpcvirt]topology_dir is not set')
        path = pathlib.Path(CONF.hpcvirt.topology_dir, f'{name}.json')
        return topology.read(str(path))

    def require_flavor(self, flavor: plan.Flavor | None,
                       description: str) -> plan.Flavor:
        """Skip the test if the plan has no such flavor."""
        if flavor is None:
            raise self.skipException(
                f'[hpcvirt]plan_file has no flavor {description}')
        return flavor

    def create_zone(self, hosts: list[str], **metadata: str) -> str:
        """Create an availability zone of these hosts.

        :returns: the zone's name, which is that of its aggregate too
        """
        name = data_utils.rand_name('hpcvirt-zone')
        aggregate = self.aggregates.create_aggregate(
            name=name, availability_zone=name)['aggregate']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.aggregates.delete_aggregate, aggregate['id'])
        for host in hosts:
            self.aggregates.add_host(aggregate['id'], host=host)
            self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                            self.aggregates.remove_host, aggregate['id'],
                            host=host)
        if metadata:
            self.aggregates.set_metadata(aggregate['id'], metadata=metadata)
        return name
