# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import profile


class TemplateTest(unittest.TestCase):
    def test_a_good_template_is_read_as_it_stands(self):
        for form in (profile.TEMPLATE, 'fixed', '{cores}c-{memory}',
                     ''.join(f'{{{field}}}'
                             for field in profile.FIELDS)):
            self.assertEqual(form, profile.read_template(form))

    def test_a_bad_template_is_refused(self):
        for form, pattern in (
                ('{core}', 'unknown field {core}; known: prefix'),
                ('{cores:>999999999}', 'unknown field'),
                ('{cores!r}', 'unknown field'),
                ('{prefix.__class__}', 'unknown field'),
                ('{}', 'unknown field'), ('{0}', 'unknown field'),
                ('{cores', 'is no template'), ('a}', 'is no template'),
                ('a b', 'only letters'), ('a\n', 'only letters'),
                ('{{x}}', 'only letters'), ('', 'must be text'),
                ('a' * 129, 'must be text'), (7, 'must be text')):
            with self.assertRaisesRegex(ValueError, pattern, msg=form):
                profile.read_template(form)


class OperatorSpecsTest(unittest.TestCase):
    def test_what_hpcvirt_leaves_open_is_read_in_the_order_of_the_keys(self):
        given = {'trait:CUSTOM_HPC': 'required',
                 'quota:vif_inbound_average': '1000',
                 'aggregate_instance_extra_specs:pool': 'hpc',
                 'resources:CUSTOM_FPGA': '1'}
        self.assertEqual(tuple(sorted(given.items())),
                         profile.read_specs(given))
        self.assertEqual((), profile.read_specs({}))

    def test_keys_that_hpcvirt_sets_are_refused(self):
        for key, value in (('hw:cpu_policy', 'shared'),
                           ('hw:numa_nodes', '2'),
                           ('hw:mem_page_size', 'small'),
                           ('resources:PCPU', '4'),
                           ('resources1:MEMORY_MB', '1024')):
            with self.assertRaisesRegex(ValueError, 'is set by hpcvirt'):
                profile.read_specs({key: value})
        self.assertTrue(profile.is_taken('hw:numa_cpus.1'))
        self.assertFalse(profile.is_taken('trait:CUSTOM_HPC'))

    def test_unknown_keys_of_a_checked_namespace_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'unknown in its namespace'):
            profile.read_specs({'hpcvirt:numa_scop': 'socket'})

    def test_values_that_are_not_text_are_refused(self):
        for value in (1, None, True, ['x'], '', 'a\nb', 'x' * 256):
            with self.assertRaisesRegex(ValueError, 'trait:CUSTOM_X: must'):
                profile.read_specs({'trait:CUSTOM_X': value})

    def test_bad_keys_are_refused(self):
        for key in ('', 'a/b', 'x' * 256, 7, 'tr\u00e9it:X'):
            with self.assertRaisesRegex(ValueError, 'must have keys of'):
                profile.read_specs({key: 'required'})
        with self.assertRaisesRegex(ValueError, 'a mapping of keys'):
            profile.read_specs(['trait:CUSTOM_X'])
