# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.bench.parsers import base


def report(**changes):
    return {'app_info': {'hash': 'abc', 'hepscore_ver': '1.5.0'},
            'settings': {'name': 'HEPscore23'},
            'benchmarks': {'cms-reco-bmk': {'run0': {'score': 3.1}}},
            'score': 412.5, 'status': 'success', **changes}


LOG = """\
2023-05-21 01:55:02 hepscore [INFO] HEPscore23 Benchmark
2023-05-21 01:55:02 hepscore [INFO] Config Hash:         b15b88
2023-05-21 01:55:02 hepscore [INFO] HEPscore version:    1.2.0
2023-05-21 01:55:02 hepscore [INFO] Starting run0
2023-05-21 02:03:19 hepscore [INFO] Final result: 116.8305
"""

GOOD_OUTPUTS = ((LOG.encode(), {}),)


class TestHepscore(base.ParserTestCase):
    parser = 'hepscore'
    refused = (
        ('a failed run is refused with its error', 'no container',
         json.dumps(report(status='failed', ERROR='no container', score=-1))),
        ('a report cut short', 'not a complete JSON document',
         json.dumps(report())[:-1]),
        ('two reports', 'not a complete JSON document',
         2 * json.dumps(report())),
        ('a deep document', 'not a complete JSON document',
         '{"a":' * 100000),
        ('a log with an error or two results', '[ERROR]',
         LOG.replace('[INFO] Starting', '[ERROR] Starting')),
        ('a log with an error or two results', '2 complete lines', LOG + LOG),
        ('another configuration', 'hash=abe was requested',
         json.dumps(report()), {'config_hash': 'abe'}),
    )

    def test_the_report_is_read(self):
        self.assertEqual({'score': 412.5}, self.figures(
            json.dumps(report()), {'name': 'HEPscore23', 'hash': 'abc'}))

    def test_the_report_of_a_suite_is_read(self):
        raw = json.dumps({'host': {}, 'profiles': {'hepscore': report()}})
        self.assertEqual({'score': 412.5}, self.figures(raw))

    def test_the_log_is_read(self):
        self.assertEqual({'score': 116.8305},
                         self.figures(LOG, {'version': '1.2.0'}))

    def test_bad_scores_are_refused(self):
        for score in (0, -1, 0.0, None, True, '412', [], 1e300, 10 ** 40,
                      6.95e-313, 10 ** 400):
            self.assert_refused('score', json.dumps(report(score=score)))

    def test_no_number_in_json_is_refused(self):
        for text in ('NaN', 'Infinity', '-Infinity'):
            self.assert_refused(text, json.dumps(report()).replace(
                '412.5', text))
