# SPDX-License-Identifier: Apache-2.0

import copy
import unittest

from hpcvirt.tune import experiment
from tests.builders import refusals

PLAIN = {
    'kind': 'experiment', 'schema_version': 1,
    'name': 'milan', 'fleet': 'fleet.yaml',
    'host_class': 'epyc',
    'programs': {'hpcc': {'benchmark': 'hpcc', 'minutes': 9}},
    'choices': {
        'pages': {'1G': {'profile': {'page_size': '1G'}}},
        'shares': {'half': {'extra_specs': {'quota:cpu_shares': '512'}}}},
    'limits': {'hours': 8}}


def read(**changes):
    plain = copy.deepcopy(PLAIN)
    for key, value in changes.items():
        if value is None:
            del plain[key]
        else:
            plain[key] = value
    return experiment.read(plain, 'e.yaml')


class TestReading(unittest.TestCase):
    def refused(self, said, **changes):
        self.assertEqual(f'e.yaml: {said}',
                         refusals.message(self, read, **changes))

    def refuse_choices(self, said, choices):
        self.refused(said, choices=choices)

    def test_every_choice_has_today(self):
        found = read()
        self.assertEqual(['today', 'shares=half', 'pages=1G, shares=half'], [
            found.format_levels(each) for each in ((0, 0), (0, 1), (1, 1))])

    def test_what_must_never_happen_has_the_documented_defaults(self):
        found = read().never
        self.assertEqual((3.0, 1), (found.slower_than,
                                    found.fewer_guests_than))

    def test_there_is_a_program(self):
        self.refused('programs: must name at least one program', programs={})

    def test_the_number_of_values_and_configurations_is_limited(self):
        between = 'and must have 2 to 1024'
        self.refuse_choices(
            f'choices: have 1 configurations together, {between}', {})
        self.refuse_choices(
            f'choices: have 2048 configurations together, {between}',
            {f'c{number}': {'a': {'profile': {'smt': 'use'}}}
             for number in range(11)})
        for own in ({f'v{number}': {'guests_per_host': number}
                     for number in range(1, 5)}, {},
                    {'today': {'guests_per_host': 2}}):
            self.refuse_choices(
                "choices['guests']: must have 1 to 3 values besides today, "
                'which every choice has',
                {'pages': PLAIN['choices']['pages'], 'guests': own})

    def test_a_name_is_a_word(self):
        self.refuse_choices(
            "choices['huge pages']: must be text such as huge-pages, not "
            "'huge pages'", {'huge pages': PLAIN['choices']['pages']})

    def test_yaml_words_must_be_quoted(self):
        self.refuse_choices(
            "choices['ept']: the key false must be in quotes",
            {'ept': {False: {'host': {'ept': '0'}}}})

    def test_two_choices_never_set_the_same(self):
        for what, change in (
                ('profile.smt', {'profile': {'smt': 'leave'}}),
                ('extra_specs.hw:pmu', {'extra_specs': {'hw:pmu': 'no'}}),
                ('host.ept', {'host': {'ept': '0'}}),
                ('guests_per_host', {'guests_per_host': 2})):
            self.refuse_choices(
                f"choices: 'a' and 'b' both set {what}; what is changed "
                'together must be one choice',
                {'a': {'x': change}, 'b': {'y': change}})

    def test_the_values_of_a_choice_may_set_the_same(self):
        read(choices={'guests': {'one': {'guests_per_host': 1},
                                 'two': {'guests_per_host': 2}}})
