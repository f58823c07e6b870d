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

"""What guests of the generated flavors achieve, beside their host."""

import os
import time
from typing import Any

import fixtures
from tempest.lib import decorators
from testtools import content

from hpcvirt import exception
from hpcvirt.bench.execute import confinement
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import guest_base
from hpcvirt.tempest_plugin import outcome
from hpcvirt.tempest_plugin import plan

try:
    from hpcvirt.bench.execute import mpi_hosts
    from hpcvirt.bench.execute import ssh
    from hpcvirt.tempest_plugin import benchmarking
except ImportError as exc:
    MISSING = f'{exc.name} is not installed; pip install hpcvirt[bench]'
else:
    MISSING = ''

CONF = base.CONF

#: Where the first guest keeps what opens the others.
KEY = '.ssh/hpcvirt'
#: Guests are new by nature: nobody knows their host keys.
SSH_CONFIG = ('StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n'
              f'LogLevel ERROR\nIdentityFile ~/{KEY}\n')


class BenchmarkTestCase(guest_base.GuestTestCase):
    """A test that measures guests."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if MISSING:
            raise cls.skipException(MISSING)

    def setUp(self) -> None:
        super().setUp()
        directory = self.useFixture(fixtures.TempDir())
        self.key_file = directory.join('key')
        with open(os.open(self.key_file, os.O_CREAT | os.O_WRONLY, 0o600),
                  'w') as stream:
            stream.write(self.private_key)
        self.data = CONF.hpcvirt.results_dir or confinement.default_data()

    def start(self, flavor: plan.Flavor) -> dict[str, Any]:
        """Boot a guest that has the benchmarks."""
        return self.boot_guest(flavor, CONF.hpcvirt.benchmark_image_ref or '')

    def ready(self, server: dict[str, Any]) -> 'ssh.SSHExecutor':
        """Wait until a guest answers; give the way to it."""
        self.reach(server)
        self.execute(server, 'true')
        found = ssh.SSHExecutor(
            self.address, CONF.validation.image_ssh_user,
            key_file=self.key_file)
        self.addCleanup(found.close)
        return found

    def guest(self, server: dict[str, Any], flavor: plan.Flavor,
              where: Any) -> 'benchmarking.Guest':
        """Collect what is known of a guest."""
        return benchmarking.Guest(
            where, server['name'], server['id'], flavor['name'],
            self.host_of(server),
            self.assert_matches_flavor(flavor, server['id']))


class CompareTest(BenchmarkTestCase):
    """Each flavor against native."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('benchmarks', 'native')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('5c5d1f0a-8c1c-4b0e-9a53-3d4f0f4cf0a7')
    def test_guests_are_within_their_bounds(self) -> None:
        """Verdicts on a guest of each flavor, each on its own host CPUs."""
        asked = benchmarking.asked(CONF.hpcvirt.benchmarks,
                                   CONF.hpcvirt.benchmark_settings,
                                   CONF.hpcvirt.benchmark_time_limit)
        fates, texts = [], []
        for flavor in self.plan_flavors:
            found, text = self._verdict(flavor, asked)
            # What was found is shown even if a later flavor cannot be
            # measured, or all is well.
            self.addDetail(f'verdict on {flavor["name"]}',
                           content.text_content(text))
            fates.append(found)
            texts.append(text)
        outcome.conclude(self, outcome.worst(fates), '\n'.join(texts))

    def _verdict(self, flavor: plan.Flavor,
                 asked: Any) -> tuple[outcome.Fate, str]:
        server = self.start(flavor)
        guest = self.guest(server, flavor, self.ready(server))
        native = benchmarking.native(
            CONF.hpcvirt.native, guest.host,
            [host for one in self.plan_flavors
             for host, number in one['per_host'].items() if number])
        self.addCleanup(native.close)
        entry, result = benchmarking.run(
            benchmarking.compared(guest, native, asked,
                                  CONF.hpcvirt.benchmark_pairs),
            CONF.hpcvirt.results_store, self.data)
        # The next flavor may need all that the host has.
        self.delete(server['id'])
        return (outcome.of(result, CONF.hpcvirt.inconclusive),
                benchmarking.told(flavor['name'], entry, self.data, result))


class TenantNetworkTest(BenchmarkTestCase):
    """Two guests that compute together."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('mpi_benchmark')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('e0a9ee6c-53d5-4a0e-a3f2-6f8d1d1d7f5e')
    def test_mpi_spans_two_guests(self) -> None:
        """Latency and bandwidth between ranks in two guests."""
        flavor = self._flavor()
        (benchmark,) = benchmarking.asked([CONF.hpcvirt.mpi_benchmark],
                                          CONF.hpcvirt.benchmark_settings,
                                          CONF.hpcvirt.benchmark_time_limit)
        self._open_group()
        servers = [self.start(flavor), self.start(flavor)]
        address = self.fixed_address(servers[1])
        first = self.ready(servers[0])
        self._hand_over_key(first)
        self._wait_for(servers[1], first, address)
        guests = [self.guest(servers[0], flavor, first),
                  self.guest(servers[1], flavor,
                             benchmarking.Beyond(first, address))]
        both = [contract.host_cpus(guest.nodes) for guest in guests]
        if guests[0].host == guests[1].host:
            self.assertFalse(both[0] & both[1], 'the guests share CPUs')
        entry, result = benchmarking.run(
            benchmarking.spanning(guests, [address], benchmark),
            CONF.hpcvirt.results_store, self.data)
        text = benchmarking.told(flavor['name'], entry, self.data, result)
        self.addDetail('figures', content.text_content(text))
        self.assertEqual([], outcome.faults(result), text)
        for run in result.runs:
            for sample in run.samples:
                self.assertTrue(sample.outcome.metrics, text)

    def _flavor(self) -> plan.Flavor:
        fitting = [flavor for flavor in self.plan_flavors
                   if sum(flavor['per_host'].values()) >= 2]
        if not fitting:
            raise self.skipException('no flavor of [hpcvirt]guest_plan_file '
                                     'fits twice')
        return min(fitting, key=lambda flavor: flavor['vcpus'])

    def _open_group(self) -> None:
        """Let the guests talk to each other: MPI chooses its ports."""
        group = self.access.get('security_group')
        if group:
            self.group_rules.create_security_group_rule(
                security_group_id=group['id'], direction='ingress',
                remote_group_id=group['id'])

    def _hand_over_key(self, first: 'ssh.SSHExecutor') -> None:
        """Give the first guest what opens the second: this test's key."""
        for name, text in ((KEY, self.private_key),
                           ('.ssh/config', SSH_CONFIG)):
            done = first.run(
                ['sh', '-c', 'umask 077; mkdir -p ~/.ssh; cat > ~/"$1"',
                 'put', name], text.encode())
            self.assertEqual(0, done.status, done.stderr)

    def _wait_for(self, server: dict[str, Any], first: 'ssh.SSHExecutor',
                  address: str) -> None:
        """Wait until the first guest gets to the second."""
        deadline = time.monotonic() + CONF.validation.ssh_timeout
        while True:
            try:
                return mpi_hosts.reach(first, [address])
            except exception.Unreachable as exc:
                if time.monotonic() > deadline:
                    self.fail(f'{exc}; {self.console(server)}')
            time.sleep(2)
