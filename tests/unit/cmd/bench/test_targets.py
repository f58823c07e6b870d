# SPDX-License-Identifier: Apache-2.0

import argparse

import testtools

from hpcvirt.cmd.bench import targets
from tests.builders import packages
from tests.builders import refusals

EXECUTORS = """
class Place:
    def __init__(self, rest):
        if rest == 'none':
            raise OSError('no such cell')
        self.name = f'cell:{rest}'

    def run(self, argv, stdin=b'', timeout_s=60.0):
        raise NotImplementedError

    def expect_restart(self):
        pass

    def close(self):
        pass


def nameless(rest):
    return object()
"""


class TestExecutorsOfPackages(testtools.TestCase):
    def setUp(self):
        super().setUp()
        packages.install(
            self, EXECUTORS, '[hpcvirt.bench.executors]\n'
            'cell = site_hpc:Place\nlocal = site_hpc:nameless\n'
            'nameless = site_hpc:nameless\n')

    def find(self, text):
        return targets.find_named(argparse.Namespace(
            os_cloud=None, host_key='known', job_directory=None), text)

    def test_what_follows_the_name_is_handed_over(self):
        found = self.find('cell:rack1:4')
        self.assertEqual('cell:rack1:4', found.place.name)
        self.assertEqual('cell:rack1:4', found.named)

    def test_the_targets_of_hpcvirt_take_precedence(self):
        self.assertEqual('local', self.find('local').place.name)

    def test_what_does_not_work_is_refused(self):
        for text, what in (
                ('cell:none', 'the executor cell failed (OSError: no such'),
                ('nameless:x', 'the executor nameless has no name'),
                ('cell:', 'or cell:NAME'), ('cellar:x', 'not a target'),
                ('cell', 'not a target')):
            self.assertIn(what, refusals.message(self, self.find, text))
