# SPDX-License-Identifier: Apache-2.0

import collections
import itertools

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.tune import design
from tests.builders import tunes


def contrasts(found, space, choices):
    """The columns of the products of any contrasts of some choices."""
    signs = []
    for choice in choices:
        size = len(space.choices[choice].values)
        bits = 1 if size == 2 else 2
        signs.append([
            [-1 if (run_level & mask).bit_count() % 2 else 1
             for run_level in raw_levels(found, choice)]
            for mask in range(1, 1 << bits)])
    return [[one * other for one, other in zip(first, second, strict=True)]
            if len(choices) == 2 else first
            for first, second in itertools.product(
                signs[0], signs[-1] if len(choices) == 2 else [None])]


def raw_levels(found, choice):
    """The levels of a choice before the fourth one is replaced by today's."""
    columns = found.columns[choice]
    return [sum(((column & run).bit_count() % 2) << place
                for place, column in enumerate(columns[:2]))
            for run in range(len(found.levels))]


def are_alike(first, second):
    return any(abs(sum(one * other for one, other in zip(a, b, strict=True)))
               for a in first for b in second)


@strategies.composite
def make_spaces(draw):
    sizes = draw(strategies.lists(strategies.sampled_from((2, 2, 3, 4)),
                                  min_size=1, max_size=7))
    whole = draw(strategies.sets(strategies.integers(0, len(sizes) - 1),
                                 max_size=3))
    space = tunes.space(*sizes, whole=whole)
    try:
        design.make(space)
    except exception.InvalidInput:
        hypothesis.reject()
    return space


class TestAnyDesign(testtools.TestCase):
    """Rules that hold for any mix of choices."""

    @hypothesis.settings(max_examples=40, deadline=None)
    @hypothesis.given(make_spaces())
    def test_each_pair_of_values_is_measured_equally_often(self, space):
        found = design.make(space)
        for one, other in itertools.combinations(range(len(space.choices)), 2):
            cells = collections.Counter(zip(
                raw_levels(found, one), raw_levels(found, other), strict=True))
            self.assertEqual(1, len(set(cells.values())), cells)
            self.assertEqual(
                len(set(raw_levels(found, one)))
                * len(set(raw_levels(found, other))), len(cells))

    @hypothesis.settings(max_examples=40, deadline=None)
    @hypothesis.given(make_spaces())
    def test_settings_of_the_host_change_between_whole_plots_only(self, space):
        found = design.make(space)
        self.assertEqual(sorted(found.levels), sorted(
            levels for plot in found.plots for levels in plot))
        for index, choice in enumerate(space.choices):
            if choice.has_reboot:
                for plot in found.plots:
                    self.assertEqual(
                        1, len({levels[index] for levels in plot}))
            elif len(found.plots) > 1:
                # Each plot has all values, so that plots do not matter.
                for plot in found.plots:
                    self.assertEqual(len(choice.values), len(
                        {levels[index] for levels in plot}))

    @hypothesis.settings(max_examples=30, deadline=None)
    @hypothesis.given(make_spaces())
    def test_aliases_and_clear_effects_are_those_of_brute_force(self, space):
        found = design.make(space)
        choices = range(len(space.choices))
        pairs = list(itertools.combinations(choices, 2))
        of_pairs = {pair: contrasts(found, space, pair) for pair in pairs}
        for pair in pairs:
            self.assertEqual(
                [other for other in pairs if other != pair and are_alike(
                    of_pairs[pair], of_pairs[other])],
                list(found.aliases(pair)))
        self.assertFalse(any(
            are_alike(contrasts(found, space, (choice,)), of_pairs[pair])
            for choice in choices for pair in pairs if choice not in pair))


class TestSizes(testtools.TestCase):
    def test_clear_designs_have_the_sizes_of_published_tables(self):
        for choices, runs in ((1, 4), (2, 4), (3, 8), (4, 8), (5, 16), (8, 16),
                              (9, 32), (10, 32)):
            found = design.make(tunes.space(*[2] * choices))
            self.assertEqual(runs, len(found.levels))

    def test_five_choices_in_16_runs_confound_no_interactions(self):
        found = design.make(tunes.space(*[2] * 5))
        for pair in itertools.combinations(range(5), 2):
            self.assertEqual((), found.aliases(pair))

    def test_a_reboot_needs_two_whole_plots(self):
        self.assertEqual(1, len(design.make(tunes.space(*[2] * 6)).plots))
        self.assertEqual(2, len(design.make(
            tunes.space(*[2] * 6, whole={3})).plots))
        self.assertEqual(4, len(design.make(
            tunes.space(4, 2, 2, whole={0})).plots))

    def test_the_third_value_shares_its_runs_with_todays(self):
        found = design.make(tunes.space(3, 2))
        counts = collections.Counter(levels[0] for levels in found.levels)
        self.assertEqual({0: 4, 1: 2, 2: 2}, counts)

    def test_what_cannot_be_clear_is_an_error(self):
        self.assertRaisesRegex(
            exception.InvalidInput, '10 choices with 40 values cannot be told '
            'from each other in 64 trials', design.make,
            tunes.space(*[4] * 10))
