# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import unittest

import nova
from nova import exception as nova_exception
from nova import utils
from nova.api.validation.extra_specs import validators

from hpcvirt.specs import extra_spec_key
from hpcvirt.specs import vocabulary
from testing import machines
from tests.functional import base

TYPES = {extra_spec_key.ValueType.INTEGER: int,
         extra_spec_key.ValueType.BOOLEAN: bool,
         extra_spec_key.ValueType.CHOICE: str,
         extra_spec_key.ValueType.TEXT: str}


class OwnNamespaceTest(unittest.TestCase):
    """What ``nova.api.validation.extra_specs`` does once we are installed."""

    def assert_refused(self, name, value):
        self.assertRaises(nova_exception.ValidationError,
                          validators.validate, name, value)

    def test_good_values_pass(self):
        for name, value in (('hpcvirt:numa_scope', 'host'),
                            ('hpcvirt:numa_scope', 'socket'),
                            ('hpcvirt:exclusive_cells', 'true'),
                            ('hpcvirt:exclusive_cells', 'No'),
                            ('hpcvirt:generated_by', 'hpcvirt-1'),
                            ('hpcvirt:generated_by', 'hpcvirt-1+0123abcd')):
            with self.subTest(name=name, value=value):
                validators.validate(name, value)

    def test_bad_values_are_refused(self):
        for name, value in (('hpcvirt:numa_scope', 'package'),
                            ('hpcvirt:numa_scope', ''),
                            ('hpcvirt:exclusive_cells', 'maybe'),
                            ('hpcvirt:generated_by', 'somebody')):
            with self.subTest(name=name, value=value):
                self.assert_refused(name, value)

    def test_unknown_keys_of_the_namespace_are_refused(self):
        for name in ('hpcvirt:numa_scopes', 'hpcvirt:', 'hpcvirt:x:y'):
            with self.subTest(name=name):
                self.assert_refused(name, 'host')

    def test_refusal_names_the_values(self):
        with self.assertRaisesRegex(nova_exception.ValidationError,
                                    'host, socket'):
            validators.validate('hpcvirt:numa_scope', 'rack')


class VocabularyAgainstNovaTest(unittest.TestCase):
    """The part of the vocabulary that is Nova's is as Nova has it."""

    def setUp(self):
        super().setUp()
        self.theirs = {
            name: validator
            for name, validator in validators.VALIDATORS.items()
            if name.partition(':')[0] in ('hw', 'pci_passthrough')}

    def test_every_key_of_nova_is_known(self):
        ours = {row.name for row in vocabulary.KEYS}
        self.assertEqual(set(), set(self.theirs) - ours)

    def test_every_key_that_nova_reads_is_known(self):
        # "hw:name" itself, or "name" for a flavor and an image.
        read = re.compile(
            r"""['"](hw:\w+)['"]"""
            r"""|_get\w*_flavor_image_meta\(\s*['"](\w+)['"]"""
            # Those of another namespace.
            r"""(?![^)]*prefix=['"](?!hw['"]))""")
        folder = pathlib.Path(nova.__file__).parent
        found = set()
        for path in folder.rglob('*.py'):
            if 'tests' in path.relative_to(folder).parts:
                continue
            for match in read.finditer(path.read_text()):
                found.add(match[1] or f'hw:{match[2]}')
        # Nova adds the number of the cell.
        found -= {'hw:numa_cpus', 'hw:numa_mem'}
        self.assertIn('hw:cpu_policy', found)
        self.assertIn('hw:locked_memory', found)
        self.assertEqual(set(), set(filter(vocabulary.is_unknown, found)))
        self.assertEqual(
            {row.name for row in vocabulary.UNVALIDATED},
            {name for name in found if vocabulary.find(name) and not any(
                re.fullmatch(validator.name_regex, name)
                for validator in self.theirs.values())})

    def test_the_api_refuses_what_has_no_validator(self):
        for row in vocabulary.UNVALIDATED:
            with self.assertRaisesRegex(nova_exception.ValidationError,
                                        'does not appear to be a valid'):
                validators.validate(row.name, '46')

    def test_types_and_values_are_those_of_nova(self):
        compared = 0
        for row in vocabulary.KEYS:
            validator = self.theirs.get(row.name)
            if validator is None:
                continue
            compared += 1
            value = validator.value
            with self.subTest(name=row.name):
                is_text = row.kind is extra_spec_key.ValueType.TEXT
                if row.pattern or not is_text:
                    self.assertEqual(TYPES[row.kind], value['type'])
                    # An older Nova may know fewer values.
                    self.assertEqual(set(), set(value.get('enum', ()))
                                     - set(row.choices))
                    self.assertEqual(row.pattern, self.pattern_of(validator))
                    self.assertEqual(row.minimum, value.get('min'))
                    self.assertEqual(row.maximum, value.get('max'))
        self.assertGreater(compared, 30)

    def pattern_of(self, validator):
        pattern = validator.value.get('pattern')
        return pattern and pattern.replace(r'(\^)?', r'\^?')

    def test_interpreted_keys_are_known_to_nova(self):
        names = {row.name for row in vocabulary.INTERPRETED
                 if row.namespace in ('hw', 'pci_passthrough')}
        self.assertEqual(set(), names - set(self.theirs))


class NUMAScopeTest(base.HPCNova):
    """``hpcvirt:numa_scope``: the cells share a socket, or not."""

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build(
            'host', 4, 4, sockets=2, pages={2048: 1024}))
        # From now on Nova takes cells 1, 2, 3, 0: most free CPUs first.
        self.boot(self.create_hpc_flavor(1, 1, 128))

    def test_a_guest_that_nova_would_spread_over_sockets_is_refused(self):
        flavor = self.create_hpc_flavor(2, 2, 128,
                                        hpcvirt__numa_scope='socket')
        self.boot(flavor, status='ERROR')
        self.assertIn('Nova would use cells 1, 2 of sockets 0, 1, but'
                      ' hpcvirt:numa_scope asks for one socket',
                      self.log.output)
        # It goes to a host where one socket has them.
        self.add_machines(machines.build(
            'other', 4, 4, sockets=2, pages={2048: 1024}))
        server = self.boot(flavor)
        self.assertEqual('other', self.host_of(server))
        self.assert_sits(server, (0, 1), 2, 128)

    def test_periodic_the_scope_of_the_host_asks_nothing(self):
        server = self.boot(self.create_hpc_flavor(
            2, 2, 128, hpcvirt__numa_scope='host'))
        self.assert_sits(server, (1, 2), 2, 128)

    def test_periodic_a_guest_of_one_cell_is_in_one_socket(self):
        server = self.boot(self.create_hpc_flavor(
            1, 2, 128, hpcvirt__numa_scope='socket'))
        self.assert_sits(server, (1,), 2, 128)


class ExclusiveCellsTest(base.HPCNova):
    """``hpcvirt:exclusive_cells``: only unused cells are taken."""

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build('host', 2, 4, pages={2048: 1024}))

    def test_it_takes_empty_cells_only(self):
        flavor = self.create_hpc_flavor(1, 1, 128,
                                        hpcvirt__exclusive_cells='true')
        for cell in (0, 1):
            self.assert_sits(self.boot(flavor), (cell,), 1, 128)
        self.boot(flavor, status='ERROR')
        self.assertIn('Nova would use cell 0, which has', self.log.output)
        self.assertIn('hpcvirt:exclusive_cells asks for empty cells',
                      self.log.output)

    def test_periodic_memory_alone_makes_a_cell_not_empty(self):
        machine = machines.build('float', 1, 4, pages={2048: 1024},
                                 housekeeping_cores=2)
        self.add_machines(machine)
        self.boot(self.create_flavor(1, 64, {'hw:mem_page_size': '2048'}),
                  host='float')
        flavor = self.create_hpc_flavor(1, 1, 128,
                                        hpcvirt__exclusive_cells='true')
        self.boot(flavor, host='float', status='ERROR')
        self.assertIn('float, float refused: Nova would use cell 0',
                      self.log.output)

    def test_periodic_a_false_one_asks_nothing(self):
        flavor = self.create_hpc_flavor(1, 1, 128,
                                        hpcvirt__exclusive_cells='no')
        for _ in range(3):
            self.boot(flavor)


class BadExtraSpecsTest(base.HPCNova):
    def test_the_api_refuses_them(self):
        for specs in ({'hpcvirt:numa_scope': 'rack'},
                      {'hpcvirt:numa_scope': ''},
                      {'hpcvirt:exclusive_cells': 'perhaps'},
                      {'hpcvirt:exclusive_cell': 'true'},
                      {'hpcvirt:generated_by': 'me'},
                      {'hpcvirt:x': 'y'}):
            self.assertEqual(400, self.refusal_of(specs), specs)

    def test_an_old_microversion_lets_them_in_and_the_filter_refuses(self):
        self.add_machines(machines.build('host', pages={2048: 1024}))
        with utils.temporary_mutation(self.api, microversion='2.85'):
            flavor = self.create_hpc_flavor(1, 1, 128,
                                            hpcvirt__numa_scope='rack')
        self.boot(flavor, status='ERROR')
        self.assertIn('hpcvirt:numa_scope', self.log.output)
        self.assertIn("'rack'", self.log.output)
