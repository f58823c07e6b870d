# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib
import tempfile
import unittest

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import identity
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import target
from tests.builders import folders
from tests.integration.bench import rebooting

MAKEFILE = """\
ep:
\t@echo 'ep.f:57:17: Error: Rank mismatch' >&2; exit 1
"""


class TestBuild(testtools.TestCase):
    def build(self, makefile):
        with tempfile.TemporaryDirectory() as scratch:
            (pathlib.Path(scratch) / 'Makefile').write_text(makefile)
            (pathlib.Path(scratch) / 'run').mkdir(mode=0o700)
            spec = run_spec.make(run_request.RunRequest(
                *catalogue.find('npb-ep/serial'),
                {'npb_ser': scratch, 'class': 'S'}), sizing.Machine(1, 512))
            return str(self.assertRaises(
                exception.Unreachable, runner.build, spec,
                local.LocalExecutor(), f'{scratch}/run/build'))

    def test_the_error_of_the_compiler_is_quoted(self):
        self.assertTrue(self.build(MAKEFILE).endswith(
            'building failed: ep.f:57:17: Error: Rank mismatch'))

    def test_the_error_of_make_is_quoted_if_there_is_no_other(self):
        self.assertIn('No rule to make target', self.build(''))


class TestDistribute(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = folders.make(self)
        self.product = self.scratch / 'bin' / 'ep.S.x'

    def distribute(self):
        return runner.distribute({str(self.product): b'#!/bin/sh\n'},
                                 [local.LocalExecutor()])

    def test_a_missing_binary_is_copied(self):
        self.assertEqual({}, self.distribute())
        self.assertEqual(b'#!/bin/sh\n', self.product.read_bytes())
        self.assertEqual(0o755, self.product.stat().st_mode & 0o777)
        self.assertEqual({}, self.distribute())
        self.assertEqual([self.product], list(self.product.parent.iterdir()))

    def test_another_binary_is_left_as_it_is(self):
        self.product.parent.mkdir()
        self.product.write_text('other')
        self.assertRaises(exception.InvalidInput, self.distribute)
        self.assertEqual('other', self.product.read_text())

    def test_a_directory_that_everybody_writes_to_is_refused(self):
        self.product.parent.mkdir()
        self.product.write_bytes(b'#!/bin/sh\n')
        self.product.parent.chmod(0o1777)
        error = self.assertRaises(exception.Unreachable, self.distribute)
        self.assertIn('others could replace the programs', str(error))

    def test_a_link_that_waits_for_the_copy_is_not_followed(self):
        self.product.parent.mkdir()
        kept = self.scratch / 'kept'
        kept.write_text('mine')
        pathlib.Path(f'{self.product}.new').symlink_to(kept)
        self.distribute()
        self.assertEqual('mine', kept.read_text())


class IdentityTest(unittest.TestCase):
    """What a run depends on, found at real places."""

    def setUp(self):
        self.scratch = folders.make(self)
        self.input = self.scratch / 'input'
        self.input.mkdir()
        self.file = self.input / 'stmv.namd'
        self.file.write_text('numsteps 500\n')
        self.program = self.scratch / 'namd2'
        self.program.write_text('1')

    def planned(self, changes=None, facts=None, flavor='', settings=None,
                **more):
        definition = dataclasses.replace(catalogue.get('namd-stmv'),
                                         **changes or {})
        spec = run_spec.make(run_request.RunRequest(
            definition, definition.variant(),
            {'namd': str(self.program), 'input': str(self.input),
             **(settings or {})}), sizing.Machine(2, 1024))
        jobs = {side: (run_spec.JobSpec(spec, target.Target(
            local.LocalExecutor(), 'vm', flavor=flavor, facts=facts or {})),)
            for side in record.Side}
        return plan.PlannedRun(jobs, record.Run(
            '', definition.name, spec.variant.name, (), **more))

    @staticmethod
    def identify(planned, binaries):
        return identity.identify(planned, binaries,
                                 environment.Environments())

    def changes(self, before, **more):
        return identity.changes(before, self.identify(
            self.planned(**more), {}))

    def test_what_is_as_it_was_changed_nothing(self):
        before = self.identify(self.planned(), {'ep': 'a'})
        self.assertEqual((), identity.changes(
            before, self.identify(self.planned(), {'ep': 'a'})))

    def test_a_changed_definition_is_named(self):
        before = self.identify(self.planned(), {})
        definition = catalogue.get('namd-stmv')
        variant = definition.variants[0]
        for changes, name in (
                ({'parser': 'gromacs', 'echo': {}}, 'parser'),
                ({'metrics': definition.metrics[:1]}, 'figures'),
                ({'files': {'x': '1'}}, 'input x'),
                ({'echo': {'steps': '7'}}, 'setting steps'),
                ({'variants': (dataclasses.replace(
                    variant, command=('namd3',)),)}, 'command'),
                ({'variants': (dataclasses.replace(
                    variant, environment={'A': '1'}),)}, 'variables'),
                ({'variants': (dataclasses.replace(
                    variant, prepare=(('true',),)),)}, 'preparation')):
            with self.subTest(name=name):
                found = ' '.join(self.changes(before, changes=changes))
                self.assertIn(f'{name} ', found)

    def test_changed_inputs_are_named(self):
        before = self.identify(self.planned(), {'ep': 'a'})
        self.assertEqual(
            ('binary ep was a and is b',),
            identity.changes(before, self.identify(
                self.planned(), {'ep': 'b'})))
        self.file.write_text('numsteps 400\n')
        self.assertEqual(
            {f'{side} file {self.input} changed' for side in record.Side},
            set(identity.changes(before, self.identify(
                self.planned(), {'ep': 'a'}))))

    def test_a_changed_machine_is_named(self):
        before = self.identify(self.planned(facts={'pages': 'small'}), {})
        self.assertEqual(
            ('guest pages was small and is large',
             'native pages was small and is large'),
            self.changes(before, facts={'pages': 'large'}))
        with rebooting.other_file(
                'sys/devices/system/cpu/cpu0/cpufreq/scaling_governor',
                'powersave'):
            found = self.changes(before, facts={'pages': 'small'})
        self.assertIn('guest cpu.governor', found[0])
        self.assertIn('native cpu.governor', found[1])

    def test_another_program_of_the_same_name_is_named(self):
        self.program.chmod(0o755)
        before = self.identify(self.planned(), {})
        self.program.write_text('2')
        self.assertIn('guest program.namd2 changed', self.changes(before))

    def test_what_changes_by_itself_is_left_out(self):
        before = self.identify(self.planned(), {})
        self.assertEqual((), self.changes(before, facts={
            'server.id': 'b', 'server.host_cpus': '4-7', 'boot_id': 'c'}))
        kib = 33554432
        found = []
        for now in (kib - 300, kib + 300, 2 * kib):
            with rebooting.other_file(machine_facts.MEMORY,
                                      f'MemTotal: {now} kB'):
                found.append(self.identify(self.planned(), {}))
        self.assertEqual((), identity.changes(*found[:2]))
        self.assertEqual(2, len(identity.changes(*found[1:])))

    def test_the_subject_is_what_the_verdict_is_about(self):
        def subject(found=None, **more):
            return identity.subject(self.planned(**more), found or {'a': 'b'})
        for same in ({'planned_pairs': 20}, {'planned_warm_ups': 2},
                     {'bounds': {'wall_s': judgement.Bound(1.1)}}):
            self.assertEqual(subject(), subject(**same))
        others = [subject(**other) for other in (
            {'found': {'a': 'c'}}, {'purpose': record.Purpose.AA},
            {'launch': record.Launch.COLD}, {'host': 'n18'},
            {'shape': '4x8'}, {'flavor': 'hpc.4c'})]
        self.assertEqual(6, len({*others} - {subject()}))
