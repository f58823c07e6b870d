# SPDX-License-Identifier: Apache-2.0

"""What hosts export, and what they may not achieve with it."""

import contextlib
import http.server
import json
import math
import threading
import unittest
import urllib.parse

import hypothesis
from hypothesis import strategies as st
from prometheus_client import parser

from hpcvirt import exception
from hpcvirt.cmd.fleet import exporter
from hpcvirt.cmd.host import watch as watch_command
from hpcvirt.health import host_watch
from hpcvirt.health import readings
from hpcvirt.health import signature
from tests.builders import folders

NOW = 1.8e9
TIME = f'{readings.TIME} {NOW}\n'


def score(value, sign='steal', unit='cpu1'):
    return f'{readings.SCORE}{{sign="{sign}",unit="{unit}"}} {value}\n'


class FolderTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        self.lines = []

    def read(self, text, host='n1'):
        (self.folder / f'{host}.prom').write_text(text)
        return readings.read_folder(str(self.folder), ['n1'], NOW,
                                    self.lines.append)

    def test_scores_are_read(self):
        found = self.read(f'# HELP x\n{TIME}{score(1.5)}other 3\n'
                          + score('2e-1', 'slab', ''))
        self.assertEqual({'steal': (1.5, 'cpu1'), 'slab': (0.2, '')},
                         found['n1'])

    def test_the_worst_of_two_units_counts(self):
        found = self.read(TIME + score(1.0) + score(3.0, unit='cpu2')
                          + score(2.0, unit='cpu3'))
        self.assertEqual(3.0, found['n1']['steal'].score)

    def test_a_host_that_stands_still_is_not_known(self):
        for time in (NOW - 301, NOW + 301, 'NaN', 'x'):
            self.assertEqual({}, self.read(
                f'{readings.TIME} {time}\n{score(9.0)}'))
        self.assertEqual({}, self.read(score(9.0)))

    def test_a_host_speaks_for_itself_only(self):
        self.assertEqual({}, self.read(TIME + score(9.0), 'n2'))
        labels = 'host="n2",instance="n2",sign="steal",unit="cpu1"'
        forged = f'{TIME}{readings.SCORE}{{{labels}}} 9\n'
        self.assertEqual({'n1'}, self.read(forged).keys())

    def test_strange_names_and_numbers_are_left_out(self):
        for strange in (score(9.0, 'nosuch'), score(9.0, unit='a b'),
                        score(9.0, unit='\x1b[2J'), score('NaN'),
                        score('+Inf'), score(-1.0), score('9' * 400),
                        score(9.0, 'steal\\')):
            self.assertEqual({'n1': {}}, self.read(TIME + strange), strange)

    def test_a_file_that_cannot_be_used_harms_no_other(self):
        (self.folder / 'n2.prom').mkdir()
        (self.folder / 'n3.prom').write_bytes(b'x' * (1 << 20) + b'\n')
        (self.folder / 'n1.prom').write_text(TIME)
        found = readings.read_folder(str(self.folder), ['n1', 'n2', 'n3'],
                                     NOW, self.lines.append)
        self.assertEqual({'n1': {}}, found)
        self.assertEqual(2, len(self.lines))

    @hypothesis.given(st.lists(st.sampled_from((
        readings.SCORE, readings.TIME, '{', '}', 'sign="steal"', 'unit="',
        ',', ' ', '1', 'e9', '\n', '\0')), max_size=12))
    def test_any_text_is_read(self, words):
        text = ''.join(words)
        folder = folders.make(self)
        (folder / 'n1.prom').write_text(TIME + score(1.0) + text)
        found = readings.read_folder(str(folder), ['n1'], NOW, print)
        self.assertLessEqual(found['n1'].keys(), {'steal'})


def read_by_prometheus(text):
    """Read a file with the parser of prometheus_client: sign -> score."""
    samples = [sample for family in parser.text_string_to_metric_families(
        text) for sample in family.samples]
    found = {}
    for sample in samples:
        sign = sample.labels.get('sign')
        # Prometheus stores floating-point numbers; the client keeps integers.
        value = float(sample.value)
        if sample.name == readings.SCORE and sign in SIGNS and (
                0 <= value < math.inf):
            found[sign] = max(value, found.get(sign, 0.0))
    return found


SIGNS = [sign.name for sign in signature.SIGNS]
SPACE = st.sampled_from((' ', '  ', '\t', ' \t '))


@st.composite
def good_line(draw):
    """Write a line as the format allows: spaces, a comma, a timestamp."""
    name = draw(st.sampled_from((readings.SCORE, 'hpcvirt_host_rate', 'up')))
    sign = draw(st.sampled_from((*SIGNS, 'other')))
    unit = draw(st.text('aZ9_.:@-', max_size=64))
    value = draw(st.one_of(st.floats(), st.integers(0, 10 ** 20)))
    comma, after = draw(st.sampled_from(('', ','))), draw(st.sampled_from(
        ('', ' ', ' 1800000000000', '\t-1 ')))
    return (f'{name}{{sign="{sign}",unit="{unit}"{comma}}}{draw(SPACE)}'
            f'{value}{after}\n')


class AgreementTest(unittest.TestCase):
    """Good files are read as prometheus_client reads them."""

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(good_line(), max_size=8))
    def test_lines_of_any_good_form(self, lines):
        text = (f'# HELP {readings.SCORE} x\n# TYPE {readings.SCORE} gauge\n'
                f'{TIME}{"".join(lines)}')
        folder = folders.make(self)
        (folder / 'n1.prom').write_text(text)
        found = readings.read_folder(str(folder), ['n1'], NOW, self.fail)
        self.assertEqual(read_by_prometheus(text), {
            sign: each.score for sign, each in found['n1'].items()})

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.dictionaries(
        st.sampled_from(SIGNS), st.builds(
            signature.SignScore, st.floats(0, 1e6), st.sampled_from((
                '', 'cpu7', 'machine-qemu-1-a.scope', 'mc0',
                '0000:41:00.0')))))
    def test_what_the_watcher_writes(self, scores):
        watch = host_watch.HostWatch(self.fail)
        watch.latest = signature.HostSample(
            time=NOW, uptime_s=1.0, values={}, slab_kib=3)
        watch.scores = scores
        text = exporter.write(watch_command.list_families(watch))
        folder = folders.make(self)
        (folder / 'n1.prom').write_text(text)
        found = readings.read_folder(str(folder), ['n1'], NOW, self.fail)
        self.assertEqual(scores, found['n1'])
        self.assertEqual(read_by_prometheus(text), {
            sign: each.score for sign, each in scores.items()})


class Prometheus(http.server.BaseHTTPRequestHandler):
    """Answers what its server was given."""

    def do_GET(self):
        self.server.asked.append(urllib.parse.parse_qs(
            urllib.parse.urlsplit(self.path).query))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_):
        pass


class PrometheusTest(unittest.TestCase):
    @contextlib.contextmanager
    def serve(self, answer, status=200):
        with http.server.HTTPServer(('127.0.0.1', 0), Prometheus) as server:
            server.answer, server.status, server.asked = answer, status, []
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f'http://127.0.0.1:{server.server_port}/'
            finally:
                server.shutdown()
                thread.join()

    def read(self, answer, status=200):
        with self.serve(answer, status) as url:
            return readings.read_prometheus(url, {'n1', 'fe80::1'}, NOW)

    def vector(self, *rows):
        return json.dumps({'status': 'success', 'data': {
            'resultType': 'vector', 'result': [
                {'metric': metric, 'value': [NOW, value]}
                for metric, value in rows]}}).encode()

    def test_the_instance_names_the_host(self):
        found = self.read(self.vector(
            ({'__name__': readings.TIME, 'instance': 'n1:9835'}, str(NOW)),
            ({'__name__': readings.SCORE, 'instance': 'n1:9835',
              'sign': 'steal', 'unit': 'cpu1'}, '2'),
            ({'__name__': readings.SCORE, 'instance': 'n2:9835',
              'exported_instance': 'n1', 'sign': 'steal'}, '9')))
        self.assertEqual({'n1': 2.0}, {
            host: each['steal'].score for host, each in found.items()})

    def test_whatever_else_it_answers_is_one_line(self):
        for answer, status in (
                (b'', 200), (b'[]', 200), (b'{"data": 3}', 200),
                (b'{"data": {"result": [3]}}', 200),
                (b'{"data": {"result": [{"metric": {}, "value": [1]}]}}', 200),
                (self.vector(), 503), (b'\xff', 200)):
            with self.assertRaisesRegex(exception.Unreachable,
                                        'Prometheus does not answer'):
                self.read(answer, status)

    def test_without_a_server_it_is_one_line(self):
        with self.serve(b'') as url:
            pass
        with self.assertRaises(exception.Unreachable):
            readings.read_prometheus(url, set(), NOW)
