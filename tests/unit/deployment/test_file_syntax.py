# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.deployment import file_syntax

OWN = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX'


class FileSyntaxTest(unittest.TestCase):
    """What programs read: the check ``deployment`` asks the programs."""

    def check(self, read, cases, refused):
        for text, found in cases.items():
            with self.subTest(text):
                self.assertEqual(found, read(text, 'x'))
        for text in refused:
            with self.subTest(text), self.assertRaisesRegex(
                    exception.InvalidInput, '^x: '):
                read(text, 'x')

    def test_a_script_only_appends_words(self):
        self.check(file_syntax.read_grub, {
            f'# c\\\n\n{OWN} a=1" # c\n{OWN} b=\\"2\\""\n': ' a=1 b="2"',
            '': ''}, (
                f"{OWN} a=1\"'b'", OWN.replace('"', "'") + " a=1'",
                f'{OWN} a=1";', f'{OWN} a=$(b)"', f'{OWN} a \\\n b"',
                f'{OWN} a=1"\r', f'{OWN}X"'))

    def test_a_comment_of_a_unit_never_goes_on(self):
        def read(text, where):
            return file_syntax.read_unit(f'[A]\n{text}\n', where)
        self.check(read, {
            '# c \\\nb=1': {('A', 'b'): ['1']},
            'b=1 \\\n# c\n 2': {('A', 'b'): ['1   2']},
            'b=1\\\\\nb=2': {('A', 'b'): ['1\\\\', '2']},
            'b=1\nb=\nb = 2': {('A', 'b'): ['1', '', '2']},
            'b=1 \\': {('A', 'b'): ['1']}}, ('b', 'b:1'))
        self.assertEqual(['2'], file_syntax.drop_former(['1', '', '2']))

    def test_words_may_be_in_quotes_but_names_of_units_not(self):
        self.check(file_syntax.read_words, {
            'a "b c" \'d\'e': ['a', 'b c', 'de']},
            ('', '"a', 'a\\x20', '%i', '$A'))
        self.check(file_syntax.read_names, {'a  b': ['a', 'b'], '': []},
                   ('"a"', '%i'))

    def test_the_last_variable_counts(self):
        def read(text, where):
            unit = file_syntax.read_unit(f'[Service]\n{text}\n', where)
            return file_syntax.read_environment(unit, 'A', where)
        self.check(read, {
            'Environment=A=1 "A=2 3"': '2 3', "Environment='B=1'": None,
            'Environment=A=1\nEnvironment=\nEnvironment=B=1': None},
            ('Environment=A', 'EnvironmentFile=x'))

    def test_names_of_sysctls_have_dots_or_slashes(self):
        self.check(file_syntax.read_sysctls, {
            '-vm/swappiness = 1\n; a.b=1\n#': {'vm.swappiness': '1'},
            'a.b=1\na.b=2 # c': {'a.b': '2 # c'}},
            ('a.b', 'a.*=1', '- a.b=1', 'a/b.c=1', '=1'))

    def test_a_comment_of_modprobe_goes_on(self):
        self.check(file_syntax.read_modules, {
            '# c \\\noptions a b=1': {},
            'options a-b \\\n c=1\td': {'a_b.c': '1', 'a_b.d': ''},
            'options a b=1\noptions a b=2': {'a.b': '2'}},
            ('options a', 'options a b="c"', 'options a b=1\r', 'alias a b'))

    def test_a_path_is_written_once(self):
        self.check(file_syntax.read_tmpfiles, {
            'w! /a/b - - - - 2\n# c': {'/a/b': '2'}}, (
                'w /a - - - - 2\nw /a - - - - 1', 'w+ /a - - - - 2',
                'w /a* - - - - 2', 'w /a - - - - \\x32', 'w //a - - - - 2'))

    def test_a_profile_has_the_last_value_of_each_section(self):
        self.check(file_syntax.read_profile, {
            '[a]\nB=1 # c\nB=2\n[c]\nB=\n 3': {'a.B': '2', 'c.B': '\n3'}},
            ('b=1', '[a]\nb:1', '[a]\nb=${c}'))

    def test_rules_set_only_virtual_functions_and_programs(self):
        four = 'ATTR{sriov_numvfs}="4"'
        term = 'ATTR', 'sriov_numvfs', '=', '4'
        self.check(file_syntax.read_rules, {
            f'# c \\\nKERNEL=="a", \\\n# c\n  {four}': [
                [('KERNEL', '', '==', 'a'), term]],
            f'{four},\n\n{four}': [[term], [term]]}, (
                f'{four} {four}', f'GOTO="e", {four}', f'DRIVER=="", {four}',
                'ATTR{sriov_numvfs}-="4"', 'ATTR{sriov_numvfs}=="4"',
                f'KERNEL=="", {four}', f'KERNEL=="[^a]", {four}'))
        rules = file_syntax.read_rules(
            f'KERNEL=="a|b", {four}\nKERNEL!="a", RUN+="\\"c\\""\n', 'x')
        for name, found in (('a', {('ATTR', 'sriov_numvfs'): '4'}),
                            ('c', {('RUN', ''): '"c"'})):
            self.assertEqual(found, file_syntax.apply_rules(
                rules, {('KERNEL', ''): name}))
