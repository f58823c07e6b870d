# SPDX-License-Identifier: Apache-2.0

"""A case of a study, end to end: jobs, the store, the comparison."""

import json
import os
from unittest import mock

from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.parsers import parser
from tests.builders import commands
from tests.integration.bench import run_case

#: Leaves what real runs of HPCC left, the host's where it is tied to the
#: CPU of the native side. The number of the sample is added to the last digits
#: of each figure: equal figures would be copies of an output.
MPIRUN = """\
#!/bin/sh
[ -e hpccinf.txt ] || exit 0
echo "$*" >> '{trace}'
side=guest_tcg_np1
grep -q 'Cpus_allowed_list:[^0-9]*0$' /proc/self/status && side=native_np1
sample=${{PWD##*/}}
sample=${{sample%%.*}}
sed -E "s/^((HPL_T|Star)[A-Za-z_]+=[0-9]+\\.[0-9]+)/\\1${{sample#00}}/" \
  "{data}/$side/hpccoutf.txt" > hpccoutf.txt
"""


def figure(side, metric):
    text = (run_case.DATA / side / 'hpccoutf.txt').read_text()
    found = parser.parse(catalogue.get('hpcc').output_format, text.encode(),
                         {})
    return found.metrics[metric].value


class RunStudyTest(run_case.RunCase):
    def setUp(self):
        super().setUp()
        programs = self.scratch / 'programs'
        programs.mkdir()
        mpirun = programs / 'mpirun'
        mpirun.write_text(MPIRUN.format(trace=self.trace, data=run_case.DATA))
        mpirun.chmod(0o755)
        self.enterContext(mock.patch.dict(os.environ, {
            'PATH': f'{programs}:{os.environ["PATH"]}'}))
        self.server.login['PATH'] = os.environ['PATH']
        self.server.write()

    def measure(self, *words, **keys):
        document = self.scratch / 'study.json'
        document.write_text(json.dumps({
            'kind': 'study', 'schema_version': 1, 'study': 'S1',
            'case': 'small-on', 'where': [self.server.url],
            'native': 'local', 'native_cpus': ['0'], 'verdict': False,
            'pairs': 1, **keys}))
        return self.run_(
            'bench', 'run', str(document), '--host-key', 'accept-new',
            '--data', str(self.scratch / 'data'), '--apply', *words)

    def compare(self, *words):
        status, out, err = self.run_(
            'bench', 'study', 'compare', 'S1', '--data',
            str(self.scratch / 'data'), *words)
        self.assertEqual((0, ''), (status, err))
        return out

    def test_measured_figures_are_shown_next_to_published_ones(self):
        # The stored outputs are of one rank and N=1000.
        status, out, err = self.measure('--format', 'json', pairs=5, settings={
            'N': '1000', 'NB': '80', 'ranks': '1', 'P': '1', 'Q': '1'})
        self.assertEqual(1, status, err)
        run, = json.loads(out)['runs']
        self.assertEqual(('S1', 'small-on', 'hpcc', 'mpi'), (
            run['study'], run['case'], run['benchmark'], run['variant']))
        self.assertEqual(f'1x{len(os.sched_getaffinity(0))}', run['shape'])
        found = json.loads(self.compare('--format', 'json'))
        for row_id, metric, factor in (
                ('ra-small-on', 'StarRandomAccess_GUPs', 1),
                ('hpl-small-on', 'HPL_Tflops', 1000)):
            one = next(one for one in found if one['row']['id'] == row_id)
            own, = one['results']
            native, guest = (figure(side, metric) for side
                             in ('native_np1', 'guest_tcg_np1'))
            for value, expected in (
                    (own['native'], native * factor),
                    (own['guest'], guest * factor),
                    (own['interval']['ratio'], guest / native)):
                self.assertAlmostEqual(1, value / expected, places=5)
            self.assertEqual(5, own['pairs'])
        lines = self.compare().splitlines()
        at = next(number for number, line in enumerate(lines)
                  if line.startswith('small-on   HPL'))
        self.assertIn('37.04', lines[at])
        self.assertIn('0.9730', lines[at])
        self.assertIn('28.25', lines[at + 1])
        self.assertIn('hpcc mpi 1x', lines[at + 1])
        self.assertEqual(6, sum('not yet run' in line for line in lines))
        only = self.compare('--case', 'small-on')
        self.assertNotIn('not yet run', only)
        page = self.scratch / 'page.html'
        self.run_('bench', 'report', '--data', str(self.scratch / 'data'),
                  '--html', str(page))
        text = page.read_text()
        self.assertIn('S1: Memory virtualization', text)
        self.assertIn('37.04', text)

    def test_sizes_come_from_the_case_and_from_the_rule(self):
        self.measure()
        commands = self.trace.read_text().splitlines()
        cpus = len(os.sched_getaffinity(0))
        self.assertTrue(commands)
        for line in commands:
            self.assertTrue(line.startswith(f'-np {cpus} '), line)
        parameters = self.store().result(
            self.store().entries()[0].id).runs[0].parameters
        self.assertEqual('100', parameters['NB'])

    def test_periodic_another_case_is_another_plan(self):
        self.measure()
        self.measure(case='small-off')
        self.assertEqual(['small-on', 'small-off'], [
            self.store().result(entry.id).runs[0].case
            for entry in self.store().entries()])

    def test_bad_input_is_one_line_and_leaves_no_trace(self):
        for keys, what in (
                ({'case': 'none'}, 'no case'),
                ({'study': 'S9'}, 'no such study'),
                ({'instead': 'stream'}, 'does not stand in'),
                ({'study': 'S4', 'case': '4x8-tuned'}, 'needs 4 guests')):
            commands.check_refused(self, what, self.measure(**keys))
        self.assertFalse((self.scratch / 'data').exists())
        commands.check_refused(self, 'bench.sqlite', self.run_(
            'bench', 'study', 'compare', 'S1', '--data',
            str(self.scratch / 'data')))
        self.assertFalse((self.scratch / 'data').exists())
