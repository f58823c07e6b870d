# SPDX-License-Identifier: Apache-2.0

import testtools

from tests.builders import commands
from tests.builders import folders

#: No test reaches it.
PLACES = ('--where', 'ssh://none.invalid', '--native', 'ssh://none.invalid')


class TestRefusals(testtools.TestCase):
    def refused(self, what, *words):
        data = folders.make(self) / 'data'
        commands.check_refused(self, what, commands.run(
            'bench', 'run', *words, *PLACES, '--data', data))
        self.assertFalse(data.exists())

    def test_a_benchmark_without_a_bound_stops_before_any_machine(self):
        for names, what in ((['ior'], 'ior: no figure'),
                            (['hpcc', 'fio', 'hpcg'], 'fio, hpcg: no figure')):
            self.refused(f'{what} has a bound; give --bound METRIC=RATIO or '
                         '--overhead PERCENT, or --no-verdict', *names)
        self.refused('osu-alltoall: no figure', 'ior', 'osu-alltoall',
                     '--bound', 'read_mib_s=0.9')

    def test_an_overhead_is_a_number_of_percent(self):
        for word in ('much', '-1', 'nan', ''):
            self.refused('', 'ior', f'--overhead={word}')

    def test_no_verdict_contradicts_a_bound(self):
        for words in (('--overhead', '5'), ('--bound', 'read_mib_s=0.9')):
            self.refused('--no-verdict: contradicts', 'ior', '--no-verdict',
                         *words)
