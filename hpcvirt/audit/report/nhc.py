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

"""Write an audit as configuration of LBNL Node Health Check (NHC).

Each fault is a check that fails with the finding. NHC evaluates the text of a
check as shell code without quotes around it, and passes the reason to its
helpers in single quotes: only characters that mean nothing there are kept.
"""

import re

from hpcvirt.audit import audit as audits
from hpcvirt.audit import finding

#: What is none of these is written as a space.
_UNSAFE = re.compile(r'[^A-Za-z0-9 ,.:;/_()=%+@-]')


def lines(audit: audits.Audit) -> list[str]:
    """Write one line for each finding; notes are comments."""
    found = [f'# {_plain(audit.host)}: audited by hpcvirt']
    for item in audit.findings:
        words = _plain(f'hpcvirt {item.code} ({item.severity}): '
                       f'{item.found}; expected: {item.expected}')
        found.append(f'* || die 1 "{words}"'
                     if item.severity in finding.FAULTS else f'# {words}')
    return found


def _plain(text: str) -> str:
    text = text.replace('[', '(').replace(']', ')').replace("'", '')
    return ' '.join(_UNSAFE.sub(' ', text).split())
