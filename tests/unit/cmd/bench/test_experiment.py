# SPDX-License-Identifier: Apache-2.0

"""Experiment documents of ``hpcvirt bench run``, up to the cloud."""

import os
import unittest
from unittest import mock

import yaml

from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

PLAIN = {
    'kind': 'experiment', 'schema_version': 1, 'name': 'small',
    'fleet': 'fleet.yaml', 'host_class': 'small', 'matters_percent': 10,
    'guests_per_host': 2, 'image': 'i', 'network': 'n',
    'programs': {'md': {'benchmark': 'gromacs', 'minutes': 1}},
    'choices': {'guests': {'four': {'guests_per_host': 4}}},
    'limits': {'hours': 24}}


class ExperimentTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        hosts.as_json(hosts.build(name='host'), self.folder / 'host.json')
        (self.folder / 'fleet.yaml').write_text(yaml.safe_dump({
            'schema_version': 1, 'classes': {'small': {
                'hosts': ['n1=host.json'], 'profile': 'dense'}}}))
        # What gets as far as a cloud finds none.
        self.enterContext(mock.patch.dict(
            os.environ, OS_CLOUD='none',
            OS_CLIENT_CONFIG_FILE=str(self.folder / 'clouds.yaml')))

    def refuse(self, said, *words, **changes):
        path = self.folder / 'e.yaml'
        path.write_text(yaml.safe_dump({**PLAIN, **changes}))
        commands.check_refused(self, said, commands.run(
            'bench', 'run', path, '--data', self.folder / 'data', *words))
        self.assertFalse((self.folder / 'data').exists())

    def test_each_fault_is_one_line(self):
        for said, changes in (
                ('e.yaml: image: is missing', {'image': None}),
                ('e.yaml: network: is missing', {'network': None}),
                ('e.yaml: native: n: not a target', {'native': 'n'}),
                ('e.yaml: native: must be text such as ssh://{host}',
                 {'native': 'ssh://{node}'}),
                ("e.yaml: unknown key 'images'", {'images': 'i'}),
                ("e.yaml: host_class: 'big' is not", {'host_class': 'big'})):
            self.refuse(said, **changes)
        self.refuse('n1: is too much; a document of the kind experiment', 'n1')
        self.refuse('nosuch: is neither a file nor a built-in profile',
                    '--check', 'nosuch')
        self.refuse('--quick: is for an acceptance document', '--quick')
        for words in ((), ('--apply',), ('--restore',), ('--check', 'dense')):
            self.refuse('Cloud none was not found', *words)

    def test_another_kind_cannot_be_planned(self):
        path = self.folder / 'study.yaml'
        path.write_text('kind: study\nschema_version: 1\n')
        commands.check_refused(
            self, "kind: must be experiment, not 'study'",
            commands.run('bench', 'tune', 'plan', path))
