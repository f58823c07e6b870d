# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import record
from hpcvirt.bench.run import run_request

SET = '--set'


class ReadSettingsTest(unittest.TestCase):
    def test_a_value_may_hold_any_character(self):
        self.assertEqual(
            (run_request.Setting('npb_mpi', '/opt/a:b=c'),),
            run_request.read_settings(['npb_mpi=/opt/a:b=c'], SET))

    def test_a_setting_of_a_benchmark_has_its_proper_name(self):
        self.assertEqual(
            (run_request.Setting('script', '/a:b', 'hs06'),),
            run_request.read_settings(['HS06:script=/a:b'], SET,
                                      of_benchmarks=True))

    def test_another_form_is_refused_and_named(self):
        for word in ('N', 'N=', '=3', ''):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        f'--set {word}: not KEY=VALUE'):
                run_request.read_settings([word], SET)
        for word in ('N=3', 'hpcc:N', 'hpcc:=3', 'hpcc:N=', 'linpack:N=3'):
            with self.assertRaises(exception.InvalidInput):
                run_request.read_settings([word], SET, of_benchmarks=True)


class SettingsOfTest(unittest.TestCase):
    def settings(self, *words, **more):
        return run_request.settings_of(
            catalogue.get('hpcc'),
            run_request.read_settings(words, SET, **more))

    def test_a_benchmark_takes_its_sizes_and_the_counts(self):
        self.assertEqual({'N': '300', 'ranks': '2'}, self.settings(
            'N=300', 'class=S', 'ranks=2', 'npb_mpi=/opt'))

    def test_the_last_setting_of_a_key_counts(self):
        self.assertEqual({'N': '400'}, self.settings('N=300', 'N=400'))

    def test_a_setting_of_another_benchmark_is_left_to_it(self):
        # An unknown key is kept: sizing refuses it with what there is.
        self.assertEqual({'M': '1'}, self.settings(
            'hpcc:M=1', 'netpipe:max_size=64', of_benchmarks=True))

    def test_a_setting_for_no_benchmark_is_refused(self):
        settings = run_request.read_settings(['N=300', 'class=S'], SET)
        definitions = [catalogue.get('hpcc'), catalogue.get('npb-cg')]
        run_request.check_used(definitions, settings, SET)
        with self.assertRaisesRegex(exception.InvalidInput, '--set class'):
            run_request.check_used(definitions[:1], settings, SET)

    def test_a_bound_is_for_a_metric_of_a_benchmark(self):
        definitions = [catalogue.get(name) for name in ('stream',
                                                        'osu-latency')]
        run_request.check_bounds(definitions, ['triad_mb_s', 'copy_mb_s',
                                               'latency_us[8]'], '--bound')
        # A bound of all sizes, or of a size that there is not, would be that
        # of no figure.
        for metric in ('triads', 'triad_mb_s[8]', 'latency_us'):
            with self.assertRaisesRegex(
                    exception.InvalidInput, r'--bound .* triad_mb_s, .*, '
                    r'latency_us\[BYTES\]$'):
                run_request.check_bounds(definitions, [metric],
                                         '--bound')


class FindTest(unittest.TestCase):
    def test_each_benchmark_gets_its_own_settings(self):
        cg, hpcc = run_request.find(
            ['npb-cg/openmp', 'HPCC'],
            run_request.read_settings(['class=S', 'N=300', 'threads=2'], SET),
            record.Launch.WARM)
        self.assertEqual(
            ('npb-cg', 'openmp', {'class': 'S', 'threads': '2'}, 'warm'),
            (cg.definition.name, cg.variant.name, cg.settings, cg.launch))
        self.assertEqual(
            ('hpcc', 'mpi', {'N': '300', 'threads': '2'}),
            (hpcc.definition.name, hpcc.variant.name, hpcc.settings))

    def test_only_mpi_spans_machines(self):
        netpipe, stream = run_request.find(['netpipe', 'stream'], [])
        self.assertTrue(netpipe.variant.spans)
        self.assertFalse(stream.variant.spans)
