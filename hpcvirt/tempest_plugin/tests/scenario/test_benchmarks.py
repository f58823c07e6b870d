# SPDX-License-Identifier: Apache-2.0

"""Compare guests of the generated flavors with their host."""

import os
from typing import Any

import fixtures
from tempest.lib import decorators
from testtools import content

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.results import location
from hpcvirt.bench.run import target
from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import guest_base

try:
    from hpcvirt.acceptance import measurement
    from hpcvirt.bench.execute import host_keys
    from hpcvirt.bench.execute import mpi_hosts
    from hpcvirt.bench.execute import ssh
    from hpcvirt.tempest_plugin import benchmarking
except ImportError as exc:
    MISSING = (f'{exc.name} is not installed; it comes with the extra bench '
               'of hpcvirt')
else:
    MISSING = ''

CONF = base.CONF


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
        self.data = CONF.hpcvirt.results_dir or location.default_directory()

    def start(self, flavor: plan_document.FlavorSummary) -> dict[str, Any]:
        """Boot a guest that has the benchmarks installed."""
        return self.boot_guest(flavor, CONF.hpcvirt.benchmark_image_ref or '')

    def ready(self, server: dict[str, Any]) -> 'ssh.SSHExecutor':
        """Wait until a guest answers, and connect to it."""
        self.reach(server)
        self.execute(server, 'true')
        place = ssh.SSHExecutor(
            self.address, CONF.validation.image_ssh_user,
            key_file=self.key_file, trust=host_keys.Trust(
                host_keys.HostKeys.ACCEPT_NEW,
                lambda: host_keys.parse_console(
                    self.servers.get_console_output(server['id'])['output'])))
        self.addCleanup(place.close)
        return place

    def guest(self, server: dict[str, Any],
              flavor: plan_document.FlavorSummary,
              place: Any, address: str = '') -> target.Target:
        """Return the target for a guest, after checking its topology."""
        return benchmarking.guest(
            place, server, flavor.name, self.host_of(server),
            self.assert_matches_flavor(flavor, server['id']), address,
            guest_base.TempestRebooter(self, server['id']))


class CompareTest(BenchmarkTestCase):
    """Compare a guest of each flavor with native."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('benchmarks', 'native')

    @classmethod
    def resource_setup(cls) -> None:
        super().resource_setup()
        cls.requests = benchmarking.requests(CONF.hpcvirt.benchmarks,
                                             CONF.hpcvirt.benchmark_settings,
                                             CONF.hpcvirt.benchmark_time_limit)
        # A wrong number must not show after hours.
        benchmarking.check(cls.requests, cls.plan_flavors,
                           CONF.hpcvirt.benchmark_pairs)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('5c5d1f0a-8c1c-4b0e-9a53-3d4f0f4cf0a7')
    def test_guests_are_within_their_bounds(self) -> None:
        """A guest of each flavor keeps its bounds, on its own host CPUs."""
        outcomes, texts = [], []
        for flavor in self.plan_flavors:
            measured, text = self._measure(flavor)
            # Show the figures even if the test passes, or if a later flavor
            # cannot be measured.
            self.addDetail(f'verdict on {flavor.name}',
                           content.text_content(text))
            outcomes.append(measured)
            texts.append(text)
        benchmarking.conclude(self, outcomes, '\n'.join(texts))

    def _measure(self, flavor: plan_document.FlavorSummary,
                 ) -> tuple['benchmarking.TestOutcome', str]:
        server = self.start(flavor)
        guest = self.guest(server, flavor, self.ready(server))
        hosts: list[str] = []
        for planned in self.plan_flavors:
            hosts += [host for host, number in planned.per_host.items()
                      if number]
        native = benchmarking.native(
            CONF.hpcvirt.native, guest.host, hosts,
            CONF.hpcvirt.native_host_key)
        self.addCleanup(native.close)
        entry, result = benchmarking.run(
            benchmarking.compare(guest, native, self.requests,
                                 CONF.hpcvirt.benchmark_pairs),
            CONF.hpcvirt.results_store, self.data)
        # A guest of the next flavor may need the whole host.
        self.delete(server['id'])
        return (benchmarking.make_outcome(result, CONF.hpcvirt.inconclusive),
                benchmarking.summary(flavor.name, entry, self.data, result))


class TenantNetworkTest(BenchmarkTestCase):
    """Run MPI over two guests."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('mpi_benchmark')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('e0a9ee6c-53d5-4a0e-a3f2-6f8d1d1d7f5e')
    def test_mpi_spans_two_guests(self) -> None:
        """A benchmark measures the network between ranks in two guests."""
        flavor = self._flavor()
        (request,) = benchmarking.requests(
            [CONF.hpcvirt.mpi_benchmark], CONF.hpcvirt.benchmark_settings,
            CONF.hpcvirt.benchmark_time_limit)
        self._open_group()
        servers = [self.start(flavor), self.start(flavor)]
        address = self.fixed_address(servers[1])
        first = self.ready(servers[0])
        measurement.let_log_in(first, self.private_key)
        self._wait_for(servers[1], first, address)
        guests = [self.guest(servers[0], flavor, first),
                  self.guest(servers[1], flavor,
                             benchmarking.RelayedExecutor(first, address),
                             address)]
        if guests[0].host == guests[1].host:
            pins = [guest.host_cpus or frozenset() for guest in guests]
            self.assertFalse(pins[0] & pins[1], 'the guests share CPUs')
        entry, result = benchmarking.run(
            benchmarking.span(guests, request),
            CONF.hpcvirt.results_store, self.data)
        text = benchmarking.summary(flavor.name, entry, self.data, result)
        self.addDetail('figures', content.text_content(text))
        self.assertEqual([], benchmarking.faults(result), text)
        for run in result.runs:
            for sample in run.samples:
                self.assertTrue(sample.outcome.metrics, text)

    def _flavor(self) -> plan_document.FlavorSummary:
        fitting = [flavor for flavor in self.plan_flavors
                   if sum(flavor.per_host.values()) >= 2]
        if not fitting:
            raise self.skipException('no flavor of [hpcvirt]guest_plan_file '
                                     'fits twice')
        return min(fitting, key=lambda flavor: flavor.vcpus)

    def _open_group(self) -> None:
        """Open all ports between the guests: MPI chooses its ports."""
        group = self.access.get('security_group')
        if group:
            self.os_admin.security_group_rules_client.create_security_group_rule(
                security_group_id=group['id'], direction='ingress',
                remote_group_id=group['id'])

    def _wait_for(self, server: dict[str, Any], first: 'ssh.SSHExecutor',
                  address: str) -> None:
        """Wait until the first guest can log in to the second."""
        try:
            waiting.retry(lambda: mpi_hosts.reach(first, [address]),
                          exception.Unreachable, CONF.validation.ssh_timeout,
                          pause_s=2)
        except exception.Unreachable as exc:
            self.fail(f'{exc}; {self.console(server)}')
