# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

from tests.unit.tools.cloud import cloud_case
from tools.cloud import inifile


class InifileTest(cloud_case.CloudCase):

    def test_option_with_several_lines(self):
        path = self.path / 'x.conf'
        inifile.write(path, inifile.merge(
            {'a': {'one': '1', 'two': ['x', 'y']}},
            {'a': {'one': True}, 'b': {'three': 3}}))
        self.assertEqual('[a]\none = true\ntwo = x\ntwo = y\n\n'
                         '[b]\nthree = 3\n', path.read_text())
