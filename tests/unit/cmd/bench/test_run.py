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

    def test_what_is_given_decides_which_options_there_are(self):
        for said, *words in (
                ('--quick: is for an acceptance document, not for benchm',
                 'hpcc', '--quick'),
                ('--check: is for an experiment document', 'hpcc', '--check',
                 'dense'),
                ('--apply: is for documents, not for', 'hpcc', '--apply'),
                ('--format junit: is for an acceptance', 'hpcc', '-f',
                 'junit'),
                ('--where: contradicts --stop', '--stop', 'x'),
                ('a.yaml: must be the first argument', 'node7', 'a.yaml'),
                ('none.yml: cannot be read', 'none.yml', 'node7')):
            self.refused(said, *words)
        for said, *words in (
                ('NAME: is missing; name benchmarks, or a document', ),
                ('--where: is missing', 'hpcc'),
                ('hpcc: contradicts --stop', 'hpcc', '--stop', 'x')):
            commands.check_refused(self, said,
                                   commands.run('bench', 'run', *words))

    def test_a_document_says_its_kind(self):
        path = folders.make(self) / 'own.json'
        for text, said in (
                ('{}', "own.json: must be a mapping with the key 'kind', "),
                ('{"schema_version": 1}', 'acceptance, experiment or study'),
                ('[]', 'must be a mapping'), ('', 'must be a mapping'),
                ('{"kind": ["study"]}', 'own.json: kind: must be acceptance'),
                ('{"kind": ["study"]}', 'study, not a list'),
                ('{"kind": "accept"}', '(did you mean acceptance?)'),
                ('{"kind": "study", "kind": "study"}', 'occurs twice')):
            path.write_text(text)
            commands.check_refused(self, said, commands.run(
                'bench', 'run', path))

    def test_an_overhead_is_a_number_of_percent(self):
        for word in ('much', '-1', 'nan', ''):
            self.refused('', 'ior', f'--overhead={word}')

    def test_no_verdict_contradicts_a_bound(self):
        for words in (('--overhead', '5'), ('--bound', 'read_mib_s=0.9')):
            self.refused('--no-verdict: contradicts', 'ior', '--no-verdict',
                         *words)
