# SPDX-License-Identifier: Apache-2.0

"""Extra specs of a profile, as the validators of Nova see them."""

import unittest

from hpcvirt import exception
from hpcvirt.nova import operator_specs


class OperatorSpecsTest(unittest.TestCase):
    def test_what_nova_accepts_passes(self):
        operator_specs.check((('hw:watchdog_action', 'reset'),
                              ('trait:CUSTOM_HPC', 'required'),
                              ('hpcvirt:generated_by', 'hpcvirt-1')), 'p.yaml')

    def test_what_nova_refuses_is_one_line_with_the_key(self):
        with self.assertRaises(exception.InvalidInput) as raised:
            operator_specs.check((('hw:cpu_policy', 'dedicated'),
                                  ('hw:watchdog_action', 'explode')), 'p.yaml')
        said = str(raised.exception)
        self.assertRegex(said, '^p[.]yaml: extra_specs: hw:watchdog_action: '
                         'Nova refuses it: ')
        self.assertNotIn('\n', said)
