# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.bench.studies import case_document

GUESTS = {'kind': 'study', 'schema_version': 1, 'study': 'S1',
          'case': 'small-on', 'where': ['ssh://g']}


class ReadTest(unittest.TestCase):
    def read(self, **changes):
        return case_document.read({**GUESTS, **changes}, 's.yaml')

    def test_one_native_target_may_be_written_without_a_list(self):
        for given in ('ssh://n', ['ssh://n']):
            self.assertEqual(('ssh://n',), self.read(native=given).native)
        self.assertEqual((), self.read().native)
        for given in (['ssh://n', 5], {}, '', 'ssh://{node}'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        r's\.yaml: native: must be text '):
                self.read(native=given)

    def test_the_place_of_the_guests_is_given_once(self):
        for keys, said in (
                ({'where': []}, 'where: is missing'),
                ({'hosts': ['n']}, 'hosts: contradicts where'),
                ({'fleet': 'f', 'host_class': 'c'}, 'fleet: contradicts'),
                ({'where': [], 'hosts': ['n'], 'host_class': 'c'},
                 'fleet: is missing'),
                ({'where': [], 'fleet': 'f'}, 'host_class: is missing'),
                ({'networks': ['n']}, 'networks: contradicts where'),
                ({'where': [], 'hosts': ['n'], 'native_cpus': ['0']},
                 'native_cpus: needs where')):
            with self.subTest(keys), self.assertRaisesRegex(
                    exception.InvalidInput, rf's\.yaml: {said}'):
                self.read(**keys)

    def test_another_kind_of_document_is_named(self):
        with self.assertRaisesRegex(
                exception.InvalidInput,
                "s.yaml: kind: must be study, not 'acceptance'"):
            self.read(kind='acceptance')
