# SPDX-License-Identifier: Apache-2.0

import copy
import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.tune import experiment
from tests import pages

PLAIN = {
    'schema_version': 1, 'name': 'milan', 'hosts': ['n1.json'],
    'programs': [{'benchmark': 'hpcc', 'minutes': 9}],
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
        with self.assertRaises(exception.InvalidInput) as caught:
            read(**changes)
        self.assertEqual(f'e.yaml: {said}', str(caught.exception))

    def refuse_choices(self, said, choices, **changes):
        self.refused(said, choices=choices, **changes)

    def test_every_choice_has_today(self):
        self.assertEqual({'pages': ('today', '1G'),
                          'shares': ('today', 'half')}, read().values)

    def test_a_profile_is_a_name_or_a_content(self):
        for profile in ('dense', {'smt': 'leave'}):
            self.assertEqual(profile, read(profile=profile).profile)
        self.refused("profile: must be a name, a file or a mapping, not ''",
                     profile='')

    def test_hosts_are_named_once(self):
        start = 'must have either hosts, or fleet and class; it has '
        self.refused(start + 'none of them', hosts=None)
        self.refused(start + 'fleet', hosts=None, fleet='f.yaml')
        self.refused(start + 'hosts and class', **{'class': 'epyc'})
        self.assertEqual('epyc', read(hosts=None, fleet='f.yaml', **{
            'class': 'epyc'}).host_class)

    def test_there_is_a_program(self):
        self.refused('programs: must name at least one program', programs=[])

    def test_programs_have_different_names(self):
        own = {'benchmark': 'site-script', 'minutes': 1}
        self.refused(
            "programs[1]: 'site-script' is also the name of a program before "
            'it; give it another one with the key name', programs=[own, own])
        self.assertEqual(['a', 'b'], [
            each.label for each in read(programs=[
                {**own, 'name': 'a'}, {**own, 'name': 'b'}]).programs])

    def test_the_number_of_choices_and_values_is_limited(self):
        self.refuse_choices('choices: must have 1 to 10 choices', {})
        self.refuse_choices(
            'choices: must have 1 to 10 choices',
            {f'c{number}': {'a': {'profile': {'smt': 'use'}}}
             for number in range(11)})
        self.refuse_choices(
            "choices['guests']: must have 1 to 3 values besides today",
            {'guests': {f'v{number}': {'guests_per_host': number}
                        for number in range(1, 5)}})
        self.refuse_choices(
            "choices['guests']: must have 1 to 3 values besides today",
            {'guests': {}})

    def test_a_name_is_a_word(self):
        self.refuse_choices(
            "choices['huge pages']: must be text such as huge-pages, not "
            "'huge pages'", {'huge pages': PLAIN['choices']['pages']})

    def test_yaml_words_must_be_quoted(self):
        self.refuse_choices(
            "choices['ept']: the key false must be in quotes",
            {'ept': {False: {'host': {'ept': '0'}}}})

    def test_today_changes_nothing(self):
        self.refuse_choices(
            "choices['pages']: must not name the value today, which every "
            'choice has', {'pages': {'today': {}}})
        self.refuse_choices("choices['pages']['big']: changes nothing",
                            {'pages': {'big': {}}})

    def test_the_keys_of_profiles_are_known(self):
        self.refuse_choices(
            "choices['pages']['1G'].profile: 'page_sise' is not a key of "
            'profiles that a choice can change (did you mean page_size?)',
            {'pages': {'1G': {'profile': {'page_sise': '1G'}}}})
        self.refuse_choices(
            "choices['pages']['1G'].profile: 'extra_specs' is not a key of "
            'profiles that a choice can change',
            {'pages': {'1G': {'profile': {'extra_specs': {}}}}})

    def test_settings_of_a_host_need_a_command(self):
        choices = {'ept': {'off': {'host': {'ept': '0'}}}}
        self.refuse_choices(
            "choices['ept']['off'].host: needs the key apply, the command "
            'that brings these settings to a host', choices)
        self.assertEqual(('./apply.sh',), read(
            choices=choices, apply=['./apply.sh']).apply)

    def test_two_choices_never_set_the_same(self):
        for what, change in (
                ('the profile key smt', {'profile': {'smt': 'leave'}}),
                ('the extra spec hw:pmu', {'extra_specs': {'hw:pmu': 'no'}}),
                ('the host setting ept', {'host': {'ept': '0'}}),
                ('guests_per_host', {'guests_per_host': 2})):
            self.refuse_choices(
                f"choices: 'a' and 'b' both set {what}; what is changed "
                'together must be one choice',
                {'a': {'x': change}, 'b': {'y': change}}, apply=['true'])

    def test_the_values_of_a_choice_may_set_the_same(self):
        read(choices={'guests': {'one': {'guests_per_host': 1},
                                 'two': {'guests_per_host': 2}}})

    def test_an_interaction_is_of_two_choices(self):
        self.refused("interactions[0]: 'page' is not a choice: choose from "
                     'pages, shares (did you mean pages?)',
                     interactions=[['page', 'shares']])
        for pair in (['pages'], ['pages', 'pages']):
            self.refused('interactions[0]: must have the names of two '
                         'different choices', interactions=[pair])


class TestReference(unittest.TestCase):
    def test_the_page_has_all_keys_of_the_document(self):
        page = pages.read('reference/experiment-document')
        for kind in (experiment.Experiment, experiment.TunedProgram,
                     experiment.ValueChange, experiment.Limits,
                     experiment.Never):
            for field in dataclasses.fields(kind):
                key = field.metadata.get('key', field.name)
                if key != 'schema_version':
                    self.assertRegex(page, rf'``{key}(:.*)?``')
