# SPDX-License-Identifier: Apache-2.0


"""Names and outputs of unknown origin reach no terminal as they are."""

import io
import json
import os
import pathlib
import unittest
from unittest import mock

from hpcvirt import printable
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import store
from hpcvirt.cmd import output
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts
from tests.unit.cloud import compute_api

#: Whatever separates lines, an escape sequence in two forms, a bell, a
#: character that reverses the text, an invisible one and a carriage return.
EVIL = ('x\nFORGED\x85FORGED\u2028FORGED\x0bFORGED\x1c\x1b[2J\x9b31m\a\u202e'
        '\u200b\U000e0041\x7f\r\nFORGED\tFORGED')


def result() -> record.Result:
    """A result of pairs and one of a single side, with text from a guest."""
    def sample(side: record.Side, pair: int, valid: bool = True,
               ) -> record.Sample:
        metrics = {name: outcome.Metric(
            1e4 + pair + (side == 'guest'), f'MB/s{EVIL}',
            outcome.Direction.UP) for name in ('triad_mb_s', f'copy{EVIL}')}
        return record.Sample(
            side, pair, 2 * pair + (side == 'guest'),
            outcome.Outcome(valid, None if valid else f'broken {EVIL}',
                            metrics if valid else {}, {EVIL: EVIL},
                            (f'remark {EVIL}',)),
            environment={'hostname': EVIL, 'cpu.model': EVIL})
    pairs = tuple(sample(side, pair, pair != 3) for pair in range(5)
                  for side in record.Side)
    more = {'host': f'n17{EVIL}', 'shape': f'1x4{EVIL}', 'planned_pairs': 5,
            'parameters': {EVIL: EVIL}}
    return record.Result((
        record.Run('r1', 'stream', 'openmp', pairs, case=EVIL, study='S1',
                   **more),
        record.Run('r2', 'stream', f'openmp{EVIL}', pairs[1::2],
                   purpose=record.Purpose.UNPAIRED, **more)),
        software={f'hpcvirt{EVIL}': EVIL})


class HostileTextTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = folders.make(self)

    def write(self, name: str, text: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def shown(self, *words: str) -> str:
        """Run the command; return what it printed, which must be harmless."""
        ended = commands.run(*words)
        text = ended.out + ended.err
        self.assert_harmless(text)
        return text

    def assert_harmless(self, text: str) -> None:
        self.assertEqual('', ''.join(
            c for c in text if not c.isprintable() and c != '\n'))
        for line in text.split('\n'):
            self.assertFalse(line.startswith('FORGED'), text)

    def store(self) -> str:
        data = str(self.folder / 'data')
        opened = store.Store(f'sqlite:///{data}/bench.sqlite', data)
        self.addCleanup(opened.close)
        content = result()
        entry = opened.open_entry(
            store.Entry('e1', 'plan', f'2026-11-20{EVIL}', None),
            content.software)
        for number, run in enumerate(content.runs):
            opened.add_run(entry.id, number, run)
            for sample in run.samples:
                opened.add_sample(run.id, sample)
        return data

    def test_a_report_as_text(self) -> None:
        data = self.store()
        self.assertIn('FORGED', self.shown('bench', 'report', '--data', data))
        self.shown('bench', 'study', 'compare', 'S1', '--data', data)

    def test_a_report_as_a_page(self) -> None:
        page = self.folder / 'page.html'
        self.shown('bench', 'report', '--data', self.store(), '--html',
                   str(page))
        text = page.read_text()
        self.assertIn('FORGED', text)
        self.assert_harmless(text)

    def test_a_comparison(self) -> None:
        path = self.write('r.json', json_format.dumps(result()))
        for words in ((), ('--all',), ('--format', 'json')):
            self.assertIn('FORGED', self.shown(
                'bench', 'compare', path, '--bound', 'triad_mb_s=0.9', *words))

    def test_a_result_as_json_is_the_same_after_it_was_printed(self) -> None:
        text = json_format.dumps(result())
        self.assertEqual(result(), json_format.loads(printable.escape(
            text, '\n')))

    def test_an_output_of_a_benchmark(self) -> None:
        good = (pathlib.Path(__file__).parents[2] /
                'data/bench/native_np1/hpccoutf.txt').read_bytes()
        for old, new in ((b'Success=1', b'Success=\x1b[2J\xc2\x9b1'),
                         (b'MB', b'\xe2\x80\xae\x07'), (b'=', b'=\x1b]0;\a')):
            path = self.write('hpccoutf.txt', good.replace(old, new))
            self.shown('bench', 'parse', 'hpcc', path)
        self.shown('bench', 'parse', 'hpcc', self.write('x', EVIL * 3))

    def test_flavors_of_a_file(self) -> None:
        path = self.write('f.json', json.dumps([{
            'name': f'hpc.4c{EVIL}', 'vcpus': 4, 'ram': 4096, 'disk': 0,
            'properties': {'hw:cpu_policy': EVIL, f'hw:{EVIL}': EVIL,
                           f'{EVIL}': '1', 'hw:numa_nodes': EVIL}}]))
        self.assertIn('FORGED', self.shown('flavor', 'lint', path))

    def test_flavors_of_the_cloud(self) -> None:
        api = compute_api.ComputeAPI()
        self.addCleanup(api.close)
        self.write('clouds.yaml', compute_api.CLOUDS.format(
            endpoint=api.endpoint))
        self.enterContext(mock.patch.dict(os.environ, {
            'OS_CLIENT_CONFIG_FILE': str(self.folder / 'clouds.yaml'),
            'OS_CLOUD': 'test'}))
        host = str(hosts.as_json(hosts.build(name='h'),
                                 self.folder / 'h.json'))
        self.shown('flavor', 'apply', host, '--apply')
        first, second, *_ = api.flavors.values()
        first['extra_specs'] |= {EVIL: EVIL, 'hw:cpu_policy': EVIL}
        second['name'] = EVIL
        for words in ((), ('--apply',), ('--apply', '--replace')):
            self.assertIn('FORGED', self.shown('flavor', 'apply', host,
                                               *words))

    def test_names_of_files(self) -> None:
        for words in (('host', 'show'), ('flavor', 'lint'),
                      ('bench', 'parse', 'hpcc'), ('flavor', 'plan')):
            self.assertIn('FORGED', self.shown(*words, f'./{EVIL}'))
        self.shown('bench', 'parse', f'./{EVIL}')


class ColourTest(unittest.TestCase):
    def write(self, text, is_terminal=True, **environment):
        stream = io.StringIO()
        stream.isatty = lambda: is_terminal
        shown = output.Output(stream)
        with mock.patch.dict(os.environ, {'NO_COLOR': '', 'TERM': 'xterm',
                                          **environment}):
            shown.begin_colours()
            shown.write(text)
        return stream.getvalue()

    def test_a_terminal_gets_colours(self):
        self.assertEqual('\033[32mPASS\033[0m, \033[31mFAIL\033[0m',
                         self.write('PASS, FAIL'))
        self.assertEqual('a \033[31mfits on 0 of 3 hosts\033[0m.',
                         self.write('a fits on 0 of 3 hosts.'))
        self.assertEqual('PASSED fits on 2 of 3 hosts',
                         self.write('PASSED fits on 2 of 3 hosts'))

    def test_others_get_none(self):
        self.assertEqual('PASS', self.write('PASS', is_terminal=False))
        self.assertEqual('PASS', self.write('PASS', NO_COLOR='1'))
        self.assertEqual('PASS', self.write('PASS', TERM='dumb'))

    def test_what_is_written_has_no_colours_of_its_own(self):
        self.assertNotIn('\033', self.write('\033[31mred\033[0m'))
