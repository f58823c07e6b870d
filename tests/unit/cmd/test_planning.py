# SPDX-License-Identifier: Apache-2.0

"""The warnings of a plan, whichever command plans."""

import collections
import json
import re
import unittest

from hpcvirt.topology import snapshot
from tests.builders import audited
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts
from tests.builders import sysfs_files

WIDE = hosts.build(cells=4, cores=12, sockets=2)


class WarningsTest(unittest.TestCase):
    """Two classes of hosts without parts of a cell, one of eight hosts."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.topology = self.write('wide.json', snapshot.make_json(WIDE))
        self.fleet = self.write('fleet.json', {
            'schema_version': 1, 'classes': {
                'many': {'hosts': ['node=wide.json*8'],
                         'profile': 'dense'},
                'few': {'hosts': ['x1=wide.json', 'x2=wide.json'],
                        'profile': {'base': 'dense'}}}})

    def write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path

    def warned(self, *words, form='json'):
        """Run a command; return the lines of the warnings, by code."""
        ended = commands.run(*words, '--format', form)
        self.assertIn(ended.status, (0, 1), ended.err)
        if form == 'json':
            json.loads(ended.out)
        lines = re.findall('^Warning: ([a-z-]+): (.*)$', ended.err,
                           re.MULTILINE)
        found = collections.defaultdict(list)
        for code, text in lines:
            found[code].append(text)
        return found

    def test_an_answer_about_a_fleet_counts_those_of_the_plan(self):
        (flavor, *_) = json.loads(commands.run(
            'flavor', 'plan', '--fleet', self.fleet, '-f', 'json').out)[
                'flavors']
        for words in (
                ('capacity',), ('explain', '--flavor', flavor['name']),
                ('make-room', '--flavor', flavor['name']),
                ('drain', 'x1')):
            with self.subTest(words[0]):
                ended = commands.run(*words, '--fleet', self.fleet)
                planned, others = ended.err.splitlines()
                self.assertRegex(planned, '^Warning: planned-anew: 10 hosts')
                self.assertEqual(
                    'Warning: the plan has 2 warnings; "hpcvirt flavor plan" '
                    'with the same --fleet prints them.', others)

    def test_a_command_about_flavors_shows_each_warning_once(self):
        plan = self.write('plan.json', json.loads(commands.run(
            'flavor', 'plan', '--fleet', self.fleet, '-f', 'json').out))
        for words in (('simulate', '--workload', 'cloud:9'),
                      ('flavor', 'lint', plan)):
            with self.subTest(words[0]):
                found = self.warned(*words, '--fleet', self.fleet)
                self.assertEqual(
                    ['no-housekeeping', 'no-parts', 'planned-anew'],
                    sorted(found))
                self.assertEqual([1, 1, 1], [*map(len, found.values())])
                self.assertRegex(
                    found['no-parts'][0],
                    r'^10 hosts \(node-1, node-2, \.\.\.\): no flavor')

    def test_hosts_of_the_command_line_are_warned_of_too(self):
        found = self.warned(
            'simulate', f'n={self.topology}*3', '--profile', 'dense',
            '--workload', 'cloud:9')
        self.assertRegex(found['no-parts'][0], '^n-1, n-2, n-3: no flavor')

    def test_rows_of_a_plan_are_warned_of_too(self):
        for words, number in ((('csv',), 1), (('json', '-c', 'name'), 1),
                              (('json',), 0), (('table',), 0)):
            ended = commands.run('flavor', 'plan', '--fleet', self.fleet,
                                 '-f', *words)
            self.assertEqual(number, ended.err.count('no-parts'), words)

    def test_an_audit_shows_those_of_its_plan(self):
        root = self.folder / 'n17'
        sysfs_files.lay_out(audited.tree(), root)
        self.assertEqual({}, self.warned('host', 'audit', '--root', root))
        self.assertIn('no-housekeeping', self.warned(
            'host', 'audit', '--root', root, '--profile', 'dense'))

    def test_an_acceptance_shows_those_of_its_host_and_flavors(self):
        def warning(code, *subjects):
            return {'code': code, 'message': 'x', 'subjects': subjects}

        plan = self.write('plan.json', {
            'schema_version': 1, 'flavors': [
                {'name': 'a', 'vcpus': 1, 'ram_mib': 64, 'extra_specs': {},
                 'per_host': {'n1': 2}}],
            'warnings': [warning('all'), warning('own', 'n0', 'n1'),
                         warning('flavor', 'a'), warning('other', 'n2')]})
        document = self.write('accept.yaml', {
            'kind': 'acceptance', 'schema_version': 1, 'plan': str(plan),
            'flavors': ['a'], 'image': 'i', 'network': 'n'})
        ended = commands.run('bench', 'run', document, 'n1', '--os-cloud',
                             'none')
        self.assertEqual(['all', 'own', 'flavor'], re.findall(
            '^Warning: ([a-z]+): x.$', ended.err, re.MULTILINE), ended.err)

    def test_what_another_profile_gives_is_said_of_its_class(self):
        text = commands.run('flavor', 'plan', '--fleet', self.fleet).out
        for name in ('many', 'few'):
            self.assertIn(f'With "profile: default" for the class {name}, '
                          'guests get', ' '.join(text.split()))
        document = json.loads(commands.run(
            'flavor', 'plan', '--fleet', self.fleet, '-f', 'json').out)
        self.assertEqual(['many', 'few'], [
            each['fleet_class'] for each in document['alternatives']])
