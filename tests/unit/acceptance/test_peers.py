# SPDX-License-Identifier: Apache-2.0

"""The runs on hosts of a class."""

import unittest

from hpcvirt.acceptance import peers
from hpcvirt.bench.model import record
from tests.unit.acceptance import test_class_verdict as runs

run, IDENTITY = runs.run, runs.IDENTITY


class PeersTest(unittest.TestCase):
    def test_only_what_is_alike_is_a_peer(self):
        other = {
            'identity': {**IDENTITY, 'guest cpu.model': 'EPYC 9654'},
            'shape': '4x8', 'launch': record.Launch.COLD,
            'parameters': {'cpus': '4'}, 'benchmark': 'stream',
            'host': 'new', 'purpose': record.Purpose.AA, 'count': 4}
        for key, value in other.items():
            found = run(**{'host': 'n0', key: value})
            self.assertEqual((), peers.peer_runs(run('new'), [found]), key)
        for name in ('guest cpu.microcode', 'guest mitigation.mds@a',
                     'native kernel'):
            found = run('n0', identity={**IDENTITY, name: 'x'})
            self.assertEqual((found,), peers.peer_runs(run('new'), [found]))

    def test_hosts_without_guests_may_differ_in_what_may_be_the_reason(self):
        identity = {**IDENTITY, 'guest program.hpcc': 'a', 'setting N': '80'}
        own = run('new', launch=None, identity=identity)
        for name, is_peer in (
                ('guest kernel', True), ('guest kernel.cmdline', True),
                ('guest cpu.governor', True), ('guest pages.2048kB', True),
                ('guest cpu.model', False), ('guest program.hpcc', False),
                ('setting N', False), ('command', False)):
            found = run('n0', launch=None, identity={**identity, name: 'x'})
            self.assertEqual((found,) if is_peer else (),
                             peers.peer_runs(own, [found]), name)
        self.assertEqual((), peers.peer_runs(own, [
            run('n0', identity=identity)]))

    def test_the_last_run_of_a_peer_counts_unless_it_was_refused(self):
        old = run('n0', 50.0, id='old')
        new = run('n0', 100.0, started_at='2026-11-02T00:00:00+00:00')
        for stored in ([old, new], [new, old]):
            self.assertEqual((new,), peers.peer_runs(run('new'), stored))
        self.assertEqual((), peers.peer_runs(run('new'), [new], {'n0'}))

    def test_each_class_has_its_hosts(self):
        first, second = run('n0'), run('n1')
        other = run('n1', variant='other')
        self.assertEqual(
            ({'n0': first, 'n1': second}, {'n1': other}),
            peers.find_classes([first, other, second, run('')]))
