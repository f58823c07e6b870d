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

"""Tests that have hosts for themselves and know what these look like."""

import pathlib
import time
from typing import Any

from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils

from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import plan

CONF = base.CONF


class FleetTestCase(base.HPCTestCase):
    """A test that fills hosts."""

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
        """Wait until Nova knows what earlier tests gave back.

        A compute host notices some of it (the source of a move, say) only
        when it next looks over its resources, once a minute by default.
        """
        deadline = time.monotonic() + CONF.compute.build_timeout
        while True:
            busy = self._busy_hosts()
            if not busy:
                return
            self.assertLess(time.monotonic(), deadline,
                            f'[hpcvirt]hosts that are not empty: {busy}')
            time.sleep(2)

    def _busy_hosts(self) -> dict[str, int]:
        client = self.os_admin.hypervisor_client
        found = client.list_hypervisors(detail=True)['hypervisors']
        busy = {}
        for item in found:
            host = item['service']['host']
            config = self.plan['host_config'].get(host)
            if host not in CONF.hpcvirt.hosts or not config:
                continue
            # 512 is what Nova reserves where nobody says otherwise.
            kept = max(512, config['reserved_host_memory_mb'])
            if item['memory_mb_used'] > kept:
                busy[host] = item['memory_mb_used'] - kept
        return busy

    @classmethod
    def require_twins(cls) -> None:
        if len(CONF.hpcvirt.twin_hosts) < 2:
            raise cls.skipException(
                '[hpcvirt]twin_hosts names fewer than two hosts')

    def machine(self, name: str) -> host_model.Host:
        """Read the topology of a host."""
        if not CONF.hpcvirt.topology_dir:
            raise self.skipException('[hpcvirt]topology_dir is not set')
        path = pathlib.Path(CONF.hpcvirt.topology_dir, f'{name}.json')
        return topology.read(str(path))

    def chosen(self, flavor: plan.Flavor | None, what: str) -> plan.Flavor:
        """Skip where the plan has no such flavor."""
        if flavor is None:
            raise self.skipException(
                f'[hpcvirt]plan_file has no flavor {what}')
        return flavor

    def zone(self, names: list[str],
             **metadata: str) -> tuple[str, dict[str, Any]]:
        """Put hosts into an availability zone of their own.

        :returns: the zone's name, and the aggregate behind it
        """
        name = data_utils.rand_name('hpcvirt-zone')
        aggregate = self.aggregates.create_aggregate(
            name=name, availability_zone=name)['aggregate']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.aggregates.delete_aggregate, aggregate['id'])
        for host in names:
            self.aggregates.add_host(aggregate['id'], host=host)
            self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                            self.aggregates.remove_host, aggregate['id'],
                            host=host)
        if metadata:
            self.aggregates.set_metadata(aggregate['id'], metadata=metadata)
        return name, aggregate
