# SPDX-License-Identifier: Apache-2.0


"""Faults of a page, from what a browser measured."""

import testtools

from tests.system.pages import check

#: Measurements of a page without faults.
PAGE = {'dark': False, 'wide': [], 'cut': [], 'unnamed': [], 'lost': [],
        'faint': [], 'refers': [], 'fetched': [], 'scripts': 0, 'width': 400,
        'content': 400,
        'rows': [{'group': 'hpcc mpi', 'figure': 'HPL_Tflops', 'word': 'FAIL',
                  'chart': True},
                 {'group': 'qe-small mpi', 'figure': 'wall_s',
                  'word': 'INVALID', 'chart': False}]}


def judged(**more):
    judgement = {'label': 'hpcc mpi', 'metric': 'HPL_Tflops', 'result': 'FAIL',
                 'interval': {'ratio': 0.1}, **more}
    return [{'runs': [{'purpose': 'compare'}],
             'verdict': {'judgements': [judgement]}}]


class TestFaults(testtools.TestCase):
    def faults(self, **more):
        return list(check.faults({**PAGE, **more}))

    def test_a_good_page_has_none(self):
        self.assertEqual([], self.faults())

    def test_each_is_named(self):
        for what, more in (
                ('there is a script', {'scripts': 1}),
                ('fetches http://elsewhere',
                 {'fetched': ['http://elsewhere']}),
                ('refers to src=/logo.png', {'refers': ['src=/logo.png']}),
                ('the page is 401 px wide', {'content': 401}),
                ('wider than the window: <table>', {'wide': ['<table>']}),
                ('cut: <span word>', {'cut': ['<span word>']}),
                ('without a name or scope: <th>', {'unnamed': ['<th>']}),
                ('no or two targets: r1', {'lost': ['r1']}),
                ('hard to read: 1.4 <i>', {'faint': ['1.4 <i>']})):
            self.assertEqual([what], self.faults(**more))

    def test_many_of_a_kind_are_counted(self):
        self.assertEqual('hard to read: 3 more',
                         self.faults(faint=['1.4 <i>'] * 8)[-1])


class TestMissing(testtools.TestCase):
    def missing(self, **more):
        return list(check.missing(PAGE, judged(**more)))

    def test_what_shows_is_not_missing(self):
        self.assertEqual([], self.missing())
        self.assertEqual([], self.missing(
            label='qe-small mpi', metric='wall_s', result='INVALID',
            interval=None))
        self.assertEqual([], list(check.missing(
            PAGE, [{'runs': [], 'verdict': None}])))

    def test_another_verdict_figure_or_benchmark_is(self):
        for more in ({'result': 'PASS'}, {'metric': 'StarSTREAM_Triad'},
                     {'label': 'hpcc mpi 4x8'}):
            self.assertEqual(1, len(self.missing(**more)))

    def test_a_figure_without_its_drawing_is(self):
        self.assertEqual(
            ['no drawing of qe-small mpi wall_s INVALID'],
            self.missing(label='qe-small mpi', metric='wall_s',
                         result='INVALID'))
