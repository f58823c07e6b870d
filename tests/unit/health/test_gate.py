# SPDX-License-Identifier: Apache-2.0

"""Which hosts are held for the gate, tested, and released."""

import random
import unittest

from hpcvirt.health import gate
from hpcvirt.health import gate_keeper
from hpcvirt.model import quarantine

STATE = gate.GateState


class Run:
    """A gate that ends when the test says so."""

    def __init__(self):
        self.answer, self.is_closed = None, False

    def poll(self):
        return self.answer

    def close(self):
        self.is_closed = True


class Cloud:
    """A cloud in memory: its hosts, who holds them, and their instances."""

    def __init__(self, *names):
        self.holders = {name: set() for name in names}
        self.instances = dict.fromkeys(names, 0)
        self.down = set()
        self.reasons = {}
        self.runs = {}
        self.lines = []
        self.known = None
        self.now = 0.0
        self.keeper = self.start()

    def start(self):
        self.keeper = gate_keeper.GateKeeper(
            self.read, self.instances.__getitem__, self.hold,
            lambda name: self.holders[name].discard(quarantine.GATE),
            self.begin, self.lines.append)
        return self.keeper

    def add(self, name, instances=0):
        self.holders[name], self.instances[name] = set(), instances

    def read(self):
        return {name: gate.GatedCompute(
            holds=tuple(self.read_hold(name, holder) for holder in holders),
            is_up=name not in self.down)
            for name, holders in self.holders.items()}

    def read_hold(self, name, holder):
        reason = 'why'
        if holder == quarantine.GATE:
            reason = self.reasons.get(name, reason)
        return quarantine.Hold(holder, reason)

    def hold(self, name, hold):
        self.holders[name].add(hold.holder)
        # As the metadata of an aggregate keep it.
        (kept,) = quarantine.read_holds(name, [{
            quarantine.MARK: hold.holder,
            quarantine.key(name): quarantine.entry(hold)}])
        self.reasons[name] = kept.reason

    def begin(self, name):
        self.runs[name] = Run()
        return self.runs[name]

    def step(self, minutes=1):
        for _ in range(minutes):
            self.now += 60.0
            self.known = self.keeper.look(self.known, self.now, 'now')
            self.keeper.act(self.known, 'now')

    def end(self, name, result, reason='slow'):
        self.runs.pop(name).answer = result, reason
        self.step(2)

    def is_free(self, name):
        return not self.holders[name]


class GateTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud('a', 'b')
        self.cloud.step()

    def test_hosts_of_the_first_start_are_left_alone(self):
        self.cloud.step(10)
        self.assertTrue(self.cloud.is_free('a'))
        self.assertEqual({}, self.cloud.runs)

    def test_a_new_host_fails_is_repaired_and_passes(self):
        cloud = self.cloud
        cloud.add('c')
        cloud.step()
        self.assertEqual({'gate'}, cloud.holders['c'])
        cloud.step()
        cloud.end('c', 'FAIL', 'memory is slow')
        cloud.step(200)
        self.assertEqual(({'gate'}, {}), (cloud.holders['c'], cloud.runs))
        self.assertIn('now c: the gate says FAIL: memory is slow',
                      cloud.lines)
        cloud.holders['c'].add('operator')
        cloud.step(5)
        self.assertEqual({}, cloud.runs)
        cloud.holders['c'].discard('operator')
        cloud.step(2)
        cloud.end('c', 'PASS')
        self.assertTrue(cloud.is_free('c'))
        self.assertIn('now c: the gate has passed', cloud.lines)

    def test_the_hold_says_why_the_host_is_held_now(self):
        cloud = self.cloud
        cloud.add('c')
        cloud.step(2)
        self.assertEqual('is new', cloud.reasons['c'])
        for reason in ('memory is slow', 'memory is ' + 300 * 's'):
            cloud.end('c', 'FAIL', reason)
            said = f'the gate says FAIL: {reason}'
            self.assertEqual(said[:150], cloud.reasons['c'][:150])
            # It is noted once, even if the metadata cut it.
            cloud.lines.clear()
            cloud.step(5)
            self.assertEqual([], cloud.lines)
            cloud.down = {'c'}
            cloud.step()
            self.assertEqual(['now c: is being repaired; the gate follows'],
                             cloud.lines)
            cloud.down = set()
            cloud.step(2)
            self.assertEqual('may have been repaired', cloud.reasons['c'])

    def test_a_reboot_counts_as_a_repair(self):
        cloud = self.cloud
        cloud.add('c')
        cloud.step(2)
        cloud.end('c', 'FAIL')
        cloud.down = {'c'}
        cloud.step(5)
        self.assertEqual({}, cloud.runs)
        cloud.down = set()
        cloud.step(2)
        self.assertIn('c', cloud.runs)

    def test_a_host_that_leaves_quarantine_is_never_free_in_between(self):
        for holder in ('operator', 'watch', 'drain'):
            self.cloud.holders['a'].add(holder)
            self.cloud.step(3)
            self.assertEqual({'gate', holder}, self.cloud.holders['a'])
            self.assertNotIn('a', self.cloud.runs)
            self.cloud.holders['a'].discard(holder)
            self.cloud.step()
            self.assertFalse(self.cloud.is_free('a'))
            self.cloud.end('a', 'PASS')
            self.assertTrue(self.cloud.is_free('a'))

    def test_an_acceptance_has_a_gate_of_its_own(self):
        self.cloud.holders['a'].add('accept')
        self.cloud.step(3)
        self.assertEqual({'accept'}, self.cloud.holders['a'])

    def test_what_is_not_decided_is_tested_again_after_an_hour(self):
        cloud = self.cloud
        cloud.add('c')
        cloud.step(2)
        cloud.end('c', 'INCONCLUSIVE', 'too few hosts')
        cloud.step(50)
        self.assertEqual({}, cloud.runs)
        cloud.step(15)
        self.assertIn('c', cloud.runs)

    def test_no_more_than_a_batch_is_tested_at_a_time(self):
        names = [f'n{number}' for number in range(10)]
        for name in names:
            self.cloud.add(name)
        self.cloud.step(3)
        self.assertEqual(names[:gate.BATCH], sorted(self.cloud.runs))
        self.assertFalse(any(map(self.cloud.is_free, names)))
        self.cloud.end('n0', 'PASS')
        self.assertEqual(names[1:gate.BATCH + 1], sorted(self.cloud.runs))

    def test_a_host_with_instances_is_not_new_and_is_not_tested(self):
        cloud = self.cloud
        cloud.add('c', instances=3)
        cloud.instances['a'] = 2
        cloud.holders['a'].add('operator')
        cloud.step()
        cloud.holders['a'].clear()
        cloud.hold('a', quarantine.Hold('gate', 'x'))
        cloud.step(5)
        self.assertTrue(cloud.is_free('c'))
        self.assertEqual({}, cloud.runs)
        said = [line for line in cloud.lines if 'until the host is empty'
                in line]
        self.assertEqual(1, len(said))
        cloud.instances['a'] = 0
        cloud.step()
        self.assertIn('a', cloud.runs)

    def test_a_restart_loses_the_run_and_no_hold(self):
        cloud = self.cloud
        cloud.add('c')
        cloud.step(2)
        run = cloud.runs.pop('c')
        cloud.keeper.close()
        self.assertTrue(run.is_closed)
        cloud.start()
        cloud.step(2)
        self.assertIn('c', cloud.runs)
        # The state is lost as well: what the gate holds is tested.
        cloud.start()
        cloud.known = None
        cloud.runs.clear()
        cloud.step(2)
        self.assertEqual({'c'}, {*cloud.runs})

    def test_no_host_is_ever_free_before_its_gate_has_passed(self):
        for seed in range(40):
            dice = random.Random(seed)
            cloud = Cloud('a')
            cloud.step()
            owed = set()
            for number in range(120):
                choice = dice.randrange(6)
                name = dice.choice(sorted(cloud.holders))
                if choice == 0 and len(cloud.holders) < 8:
                    cloud.add(f'n{number}')
                    owed.add(f'n{number}')
                elif choice == 1:
                    cloud.holders[name].add('operator')
                elif choice == 2 and 'gate' in cloud.holders[name]:
                    cloud.holders[name].discard('operator')
                elif choice == 3:
                    cloud.down ^= {name}
                elif cloud.runs:
                    name = dice.choice(sorted(cloud.runs))
                    result = dice.choice(['PASS', 'FAIL', 'INCONCLUSIVE'])
                    cloud.runs.pop(name).answer = result, 'x'
                    if result == 'PASS':
                        owed.discard(name)
                cloud.step()
                owed |= {each for each, holders in cloud.holders.items()
                         if 'operator' in holders}
                for each in owed:
                    self.assertFalse(cloud.is_free(each), (seed, each))
                self.assertLessEqual(len(cloud.runs), gate.BATCH)
