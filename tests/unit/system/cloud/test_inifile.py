# SPDX-License-Identifier: Apache-2.0

from tests.system.cloud import inifile
from tests.unit.system.cloud import cloud_case


class InifileTest(cloud_case.CloudCase):
    def test_option_with_several_lines(self):
        path = self.path / 'x.conf'
        inifile.write(path, inifile.merge(
            {'a': {'one': '1', 'two': ['x', 'y']}},
            {'a': {'one': True}, 'b': {'three': 3}}))
        self.assertEqual('[a]\none = true\ntwo = x\ntwo = y\n\n'
                         '[b]\nthree = 3\n', path.read_text())
