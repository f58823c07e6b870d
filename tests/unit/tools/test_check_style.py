# SPDX-License-Identifier: Apache-2.0

"""Rules of the project, on a small tree that breaks them."""

import contextlib
import pathlib

import testtools

from tests.builders import folders
from tools import check_style


class TestTree(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.tree = folders.make(self)
        directory = contextlib.chdir(self.tree)
        directory.__enter__()
        self.addCleanup(directory.__exit__, None, None, None)
        for name in check_style.BROAD_TESTS:
            self.write(f'tests/unit/{name}')

    def write(self, name, text=''):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_module_that_decides_needs_a_test_of_its_name(self):
        self.write('hpcvirt/fit/cell.py', 'def fits():\n    return True\n')
        self.write('hpcvirt/fit/nouns.py', 'class Noun:\n'
                   '    def __init__(self):\n        pass\n')
        self.assertEqual(
            ['hpcvirt/fit/cell.py:1: there is no tests/unit/fit/test_cell.py'],
            list(check_style.untested()))
        self.write('tests/unit/fit/test_cell.py')
        self.assertEqual([], list(check_style.untested()))

    def test_the_test_of_a_prefix_can_import_the_module(self):
        self.write('hpcvirt/fit/cell_room.py',
                   'def fits():\n    return True\n')
        for text in ('from hpcvirt.fit import cell\n', ''):
            self.write('tests/unit/fit/test_cell.py', text)
            self.assertIn('there is no tests/unit/fit/test_cell_room.py',
                          ''.join(check_style.untested()))
        self.write('tests/unit/fit/test_cell.py',
                   'from hpcvirt.fit import cell_room\n')
        self.assertEqual([], list(check_style.untested()))

    def test_a_package_has_no_test_beside_its_folder(self):
        self.write('hpcvirt/fit/cell_room.py',
                   'def fits():\n    return True\n')
        self.write('tests/unit/test_fit.py',
                   'from hpcvirt.fit import cell_room\n')
        self.assertEqual(
            ['tests/unit/test_fit.py:1: there is no module fit to test'],
            list(check_style.mirror()))
        self.assertIn('there is no tests/unit/fit/test_cell_room.py',
                      ''.join(check_style.untested()))

    def test_modules_beside_the_package_have_tests_of_their_path(self):
        for module in ('demo/page.py', 'tests/system/cloud/fleet.py'):
            self.write(module)
        for test in ('demo/test_page.py', 'system/cloud/test_fleet.py'):
            self.write(f'tests/unit/{test}')
        self.assertEqual([], list(check_style.mirror()))

    def test_a_test_needs_a_module_of_its_name(self):
        self.assertEqual([], list(check_style.mirror()))
        self.write('tests/unit/fit/test_cell.py')
        finding, = check_style.mirror()
        self.assertEqual('tests/unit/fit/test_cell.py:1: there is no module '
                         'fit/cell to test', finding)

    def test_an_exception_that_is_not_needed_is_reported(self):
        broad = min(check_style.BROAD_TESTS)
        (self.tree / 'tests/unit' / broad).unlink()
        finding, = check_style.mirror()
        self.assertIn(f'take {broad} out of BROAD_TESTS', finding)

    def test_unit_tests_start_no_processes(self):
        self.write('hpcvirt/fit/cell.py')
        self.write('tests/unit/fit/test_cell.py', '\nimport subprocess\n')
        finding, = check_style.mirror()
        self.assertIn('tests/unit/fit/test_cell.py:2: subprocess', finding)

    def test_a_public_class_name_is_unique(self):
        self.write('hpcvirt/a.py', 'class Host:\n    pass\n')
        self.write('hpcvirt/fit/b.py', '\nclass Host:\n    pass\n')
        self.write('hpcvirt/fit/c.py', 'class _Cell:\n    pass\n')
        self.write('hpcvirt/fit/d.py', 'class _Cell:\n    pass\n')
        self.write('hpcvirt/fit/e.py', 'class _Group:\n    class Host:\n'
                   '        pass\n')
        self.assertEqual(
            ['hpcvirt/fit/b.py:2: class Host is also in hpcvirt/a.py:1'],
            list(check_style.class_names()))

    def test_a_module_has_at_most_700_lines(self):
        self.write('hpcvirt/fit/long.py', '\n' * 700)
        self.assertEqual([], list(check_style.layout()))
        self.write('hpcvirt/fit/long.py', '\n' * 701)
        self.assertEqual(
            ['hpcvirt/fit/long.py:700: has 701 lines, over 700'],
            list(check_style.layout()))

    def write_code(self, text, name='hpcvirt/fit/new.py'):
        self.write(name, text)

    def test_code_has_no_comprehension_with_two_for(self):
        self.write('hpcvirt/fit/good.py', 'a = [[x for x in y] for y in z]\n')
        self.write_code('\na = {x: y for x in z\n     for y in x}\n')
        finding, = check_style.readability()
        self.assertIn('hpcvirt/fit/new.py:2: write a loop', finding)

    def test_code_has_no_conditional_expression_inside_another(self):
        self.write('hpcvirt/fit/good.py', 'a = 1 if b else 2, 3 if c else 4\n')
        self.write_code('a = (1 if b else\n     f(2 if c else 3))\n')
        finding, = check_style.readability()
        self.assertIn('hpcvirt/fit/new.py:1: write an "if"', finding)

    def test_an_enum_has_one_name(self):
        self.write('hpcvirt/model/side.py', 'class Side(enum.StrEnum):\n'
                   "    LEFT = 'left'\n\n\nclass Point:\n    pass\n")
        self.write_code('_Side = side.Side\n_POINT = side.Point\n'
                        '_LEFT = side.Side.LEFT\n\n\n'
                        'def turn():\n    name: type = Side\n'
                        '    from hpcvirt.model.side import Side as Way\n')
        self.assertEqual(
            [f'hpcvirt/fit/new.py:{line}: call the enum by its own name'
             for line in (1, 7, 8)],
            list(check_style.readability()))

    def test_tests_are_free_of_the_rules_for_readable_code(self):
        text = 'a = [x for y in z for x in y]\n'
        self.write_code(text, name='tests/unit/fit/test_cell.py')
        self.assertEqual([], list(check_style.readability()))
        self.write_code(text, name='tools/new.py')
        finding, = check_style.readability()
        self.assertIn('tools/new.py:1:', finding)

    def test_a_function_begins_with_a_verb_or_a_noun(self):
        for name in ('of_host', 'closed', 'given_devices', 'as_ever',
                     'size_in_words'):
            self.assertTrue(check_style.NO_VERB.match(name), name)
        for name in ('format_host', 'need', 'dedicated_cpus', 'offset'):
            self.assertFalse(check_style.NO_VERB.match(name), name)
        self.write('hpcvirt/cmd/a.py', 'def of_host():\n    pass\n\n\n'
                   'def _closed():\n    pass\n')
        finding, = check_style.module(pathlib.Path('hpcvirt/cmd/a.py'))
        self.assertIn('a.py:1: of_host does not begin', finding)

    def test_parsers_read_numbers_in_one_way(self):
        text = 'size = int(word) + float(word)\n'
        for name, number in (('bench/parsers/stream', 2),
                             ('bench/parsers/reading', 0), ('bench/run', 0)):
            self.write(f'hpcvirt/{name}.py', text)
            self.assertEqual(number, len(list(check_style.module(
                pathlib.Path(f'hpcvirt/{name}.py')))))

    def test_limits_are_called_min_and_max(self):
        self.write('hpcvirt/cmd/a.py', '_MOST_ROWS = 3\nMAX_ROWS = 3\n'
                   'LEAST_ROWS: int = 1\n')
        self.assertEqual(
            ['hpcvirt/cmd/a.py:1: call _MOST_ROWS MIN_ or MAX_',
             'hpcvirt/cmd/a.py:3: call LEAST_ROWS MIN_ or MAX_'],
            list(check_style.module(pathlib.Path('hpcvirt/cmd/a.py'))))

    def test_texts_have_no_phrases_that_stop_a_reader(self):
        self.write('hpcvirt/cmd/a.py', '"""Fits on cells, of\nwhich one."""\n'
                   '#: At most so\n#: many.\nprint("Stops also "\n'
                   '      "if full.")\n')
        self.write('doc/source/a.rst', 'As ever.\n\n'
                   'A case of which half runs, in as many cells as ever more\n'
                   'hosts have; in summary, whatever it is.\n')
        self.assertEqual(
            ["doc/source/a.rst:1: say it without 'As ever'",
             "hpcvirt/cmd/a.py:1: say it without ', of which'",
             "hpcvirt/cmd/a.py:3: say it without 'so many'",
             "hpcvirt/cmd/a.py:5: say it without 'also if'"],
            list(check_style.phrases()))
