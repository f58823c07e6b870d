# SPDX-License-Identifier: Apache-2.0

"""The figures of SECURITY.rst are those of the code."""

import ast
import operator
import re
import unittest

from tests import pages

_OPERATORS = {ast.Mult: operator.mul, ast.LShift: operator.lshift,
              ast.Pow: operator.pow}

#: What SECURITY.rst says, with # for a figure; the file and the constant that
#: the figure is; and the size of its unit.
FIGURES = (
    ('# sets of cells on a host', 'fit/cell_search', 'MAX_SETS', 1),
    ('has more than # characters', 'kept_text', 'MAX_CHARACTERS', 1),
    ('belongs to more than # sets', 'fit/device_sets', 'MAX_SETS', 1),
    ('has more than # page sizes', 'nova/adapter', 'MAX_PAGE_SIZES', 1),
    ('more than # pools of devices', 'nova/adapter', 'MAX_POOLS', 1),
    ('At most # names of a host', 'nova/port_interface',
     'MAX_NAMES_OF_A_HOST', 1),
    ('of up to # characters', 'nova/port_interface', '_MAX_CHARACTERS', 1),
    ('of more than # names', 'nova/port_interface', 'MAX_NAMES', 1),
    ('at most # files', 'topology/archive', 'MAX_FILES', 1),
    ('# MiB of one', 'topology/document', 'MAX_BYTES', 1 << 20),
    ('and # MiB of all', 'topology/archive', 'MAX_BYTES', 1 << 20),
    ('at most # patterns', 'topology/capture', '_MAX_PATTERNS', 1),
    ('reads no more than # MiB of them', 'health/readings', '_MAX_OF_HOST',
     1 << 20),
    ('too much: # MiB of', 'child_process', 'MAX_OUTPUT_BYTES', 1 << 20),
    ('leaves open is waited for # seconds', 'child_process', 'LINGER_S', 1),
    ('SIGKILL # seconds later', 'host_lock', 'GRACE_S', 1),
    ('given up # seconds after', 'bench/execute/slurm', 'GRACE_S', 1),
    ('prints more than # MiB', 'bench/execute/executor', 'MAX_OUTPUT_BYTES',
     1 << 20),
    ('No more than # MiB of a file of a job', 'bench/parsers/text',
     'LIMIT_BYTES', 1 << 20),
    ('At most # connections', 'cmd/fleet/exporter', 'MAX_CONNECTIONS', 1),
    ('# seconds for each', 'cmd/fleet/exporter', 'CONNECTION_S', 1),
    ('# KiB of a request', 'cmd/fleet/exporter', 'MAX_REQUEST_BYTES', 1024),
    ('A request of more than # MiB', 'cmd/instance/vendordata', '_MAX_BYTES',
     1 << 20),
    ('waited for # seconds each', 'cmd/instance/vendordata', '_TIMEOUT_S', 1),
    ('given up after # seconds. Of one', 'input_file', 'MAX_SECONDS', 1),
    ('at most # lines are read; if', 'input_file', 'MAX_LINES', 1),
    ('at most # lines and', 'input_file', 'MAX_EXPANDED_LINES', 1),
    ('# MiB,', 'input_file', 'MAX_EXPANDED_BYTES', 1 << 20),
    ('for # seconds, and the answer', 'input_file', 'MAX_SECONDS', 1),
    ('at most # elements of XML', 'topology/document', 'MAX_ELEMENTS', 1),
    ('# levels deep', 'topology/document', 'MAX_DEPTH', 1),
    ('CPUs are numbered up to #', 'model/cpuset', 'MAX_CPU', 1),
)

#: What stands in the script that root runs to capture a host, see
#: :meth:`FiguresTest.test_the_script_of_captures_has_its_limits`.
OF_THE_SCRIPT = ('after 3 seconds and read up to 1 MiB',)
#: Modes of files are no limits.
_MODE = re.compile(r'\b0[0-7]{3}\b')


def constant(module, name):
    """Return the value that a file of the package gives to a constant.

    The file is not imported, because the libraries of some are not in this
    environment.
    """
    tree = ast.parse((pages.ROOT / 'hpcvirt' / f'{module}.py').read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name
                for target in node.targets):
            return evaluate(node.value)
    raise LookupError(f'{module} has no {name}')


def evaluate(node):
    """Evaluate a product or a power of numbers."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](evaluate(node.left),
                                         evaluate(node.right))
    return node.value


def phrase(said, value, unit):
    """Put a figure into what the page says."""
    return said.replace('#', f'{int(value // unit):,}', 1)


class FiguresTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        _, _, text = (pages.ROOT / 'SECURITY.rst').read_text().partition(
            '   * - Who\n')
        self.text = ' '.join(text.split())

    def test_each_figure_is_that_of_the_code(self):
        for said, module, name, unit in FIGURES:
            with self.subTest(said):
                found = phrase(said, constant(module, name), unit)
                self.assertIn(found, self.text)

    def test_no_figure_is_unknown(self):
        left = _MODE.sub('', self.text)
        for said, module, name, unit in FIGURES:
            left = left.replace(phrase(said, constant(module, name), unit), '')
        for said in OF_THE_SCRIPT:
            left = left.replace(said, '')
        # What is left is no figure, or stands in none of the tables above.
        self.assertEqual([], re.findall(r'.{0,40}(?<![-\w])\d[\d,]*.{0,20}',
                                        left))

    def test_the_script_of_captures_has_its_limits(self):
        script = (pages.ROOT / 'hpcvirt/audit/collector.sh').read_text()
        self.assertIn(f'timeout 3 head -c {1 << 20} ', script)

    def test_each_test_that_is_named_exists(self):
        named = re.findall(r'``((?:unit|functional|integration|benchmarks)'
                           r'/[\w/.]+)``', self.text)
        self.assertGreater(len(named), 20)
        for name in named:
            folder = '' if name.startswith('benchmarks') else 'tests'
            with self.subTest(name):
                self.assertTrue((pages.ROOT / folder / name).exists())
