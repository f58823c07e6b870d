# SPDX-License-Identifier: Apache-2.0

"""New and repaired hosts take instances after their gate, in a Nova."""

from hpcvirt.cloud import gated_hosts
from hpcvirt.health import gate_keeper
from hpcvirt.model import quarantine
from testing import machines
from tests.functional import test_quarantine


class Run:
    """A gate that has ended, as a benchmark would end it."""

    def __init__(self, result):
        self._answer = result, 'memory bandwidth is 40 % lower'

    def poll(self):
        return self._answer

    def close(self):
        """Nothing runs."""


class GateTest(test_quarantine.QuarantineNova):
    HOSTS = ('node1',)

    def setUp(self):
        super().setUp()
        self.results = []
        self.lines = []
        self.known = None
        self.now = 0.0
        self.keeper = gate_keeper.GateKeeper(
            lambda: gated_hosts.read(self.nova),
            lambda host: gated_hosts.count_instances(self.nova, host),
            self.cloud.hold,
            lambda host: self.cloud.release(host, quarantine.GATE),
            lambda _: Run(self.results.pop(0)), self.lines.append)
        self.step()

    def step(self, looks=1):
        for _ in range(looks):
            self.now += 60.0
            time = '2026-11-29T10:00:00Z'
            self.known = self.keeper.look(self.known, self.now, time)
            self.assertTrue(self.keeper.act(self.known, time))

    def test_a_compute_appears_fails_is_repaired_and_passes(self):
        self.assertEqual([], self.holders('node1'))
        self.add_machines(machines.build('node2', pages={2048: 1024},
                                         housekeeping_cores=1))
        self.results = ['FAIL', 'PASS']
        self.step(2)
        self.assertEqual(['gate'], self.holders('node2'))
        self.assertIn(quarantine.TRAIT, self.traits('node2'))
        flavor = self.create_hpc_flavor(pcpus=1)
        self.boot(flavor, host='node2', status='ERROR')
        self.step(3)
        (hold,) = self.cloud.holds('node2')
        # The quarantine says what was found, and not that the host was new.
        self.assertEqual('the gate says FAIL: memory bandwidth is 40 % lower',
                         hold.reason)
        self.assertIn('2026-11-29T10:00:00Z node2: the gate says FAIL: memory '
                      'bandwidth is 40 % lower', self.lines)
        # A person repairs it.
        self.quarantine('node2', 'a DIMM is replaced')
        self.step(3)
        self.assertIn('2026-11-29T10:00:00Z node2: is being repaired; the '
                      'gate follows', self.lines)
        self.assertEqual(['gate', 'operator'], self.holders('node2'))
        self.release('node2')
        self.assertEqual(['gate'], self.holders('node2'))
        self.step(4)
        self.assertEqual([], self.holders('node2'))
        self.assertNotIn(quarantine.TRAIT, self.traits('node2'))
        self.assertEqual([], self.results)
        self.assertEqual('node2', self.host_of(
            self.boot(flavor, host='node2')))

    def test_a_host_with_instances_is_not_tested(self):
        self.assertEqual(0, gated_hosts.count_instances(self.nova, 'node1'))
        self.boot(self.create_hpc_flavor(pcpus=1), host='node1')
        self.assertEqual(1, gated_hosts.count_instances(self.nova, 'node1'))
        self.quarantine('node1')
        self.step()
        self.release('node1')
        self.step(3)
        self.assertEqual(['gate'], self.holders('node1'))
        self.assertIn('node1: the gate waits until the host is empty; it has '
                      '1 now', self.lines[-1])
