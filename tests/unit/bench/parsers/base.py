# SPDX-License-Identifier: Apache-2.0

"""What the tests of all parsers share: real outputs and two assertions."""

import math
import pathlib

import testtools

from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import output_format
from hpcvirt.bench.parsers import parser

DATA = pathlib.Path(__file__).parents[3] / 'data' / 'bench'


def data(name):
    return (DATA / name).read_bytes()


def form(name):
    """The format of a parser's outputs, with the figures of all benchmarks."""
    figures = {}
    for definition in catalogue.all_definitions():
        if definition.parser == name:
            figures |= {figure.name: figure for figure in definition.metrics}
    return output_format.OutputFormat(name, name, tuple(figures.values()))


class ParserTestCase(testtools.TestCase):
    """One parser under test.

    :cvar parser: its name
    :cvar refused: what is refused in words, words of the reason, and what
        :meth:`parse` takes
    """

    parser = ''
    refused = ()

    def test_what_does_not_count_is_refused(self):
        for what, reason, *given in self.refused:
            self.assert_refused(reason, *given, message=what)

    def parse(self, raw, expect=None, exit_status=None):
        if isinstance(raw, str):
            raw = raw.encode()
        found = parser.parse(form(self.parser), raw, expect or {}, exit_status)
        for metric in found.metrics.values():
            self.assertTrue(math.isfinite(metric.value) and metric.value > 0)
        self.assertEqual(found.valid, found.reason is None)
        self.assertEqual(found.valid, bool(found.metrics))
        return found

    def figures(self, raw, expect=None):
        found = self.parse(raw, expect)
        self.assertTrue(found.valid, found.reason)
        return {name: metric.value for name, metric in found.metrics.items()}

    def assert_refused(self, what, raw, expect=None, exit_status=None,
                       message=''):
        found = self.parse(raw, expect, exit_status)
        self.assertFalse(found.valid, message)
        self.assertIn(what, found.reason, message)
