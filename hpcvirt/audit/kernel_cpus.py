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

"""Read the lists of CPUs on the kernel command line.

``all`` is every CPU, ``N`` the last one, ``0-15:2/4`` the first two of every
four, and words before the list are flags (``isolcpus=managed_irq,2-7``).
"""

import re
from collections.abc import Iterable

_TERM = re.compile(r'(all|N|[0-9]{1,5})(?:-(N|[0-9]{1,5})'
                   r'(?::([0-9]{1,5})/([1-9][0-9]{0,4}))?)?')


def of_parameter(command_line: Iterable[str], name: str,
                 existing: frozenset[int]) -> frozenset[int]:
    """Return the CPUs of a parameter; none if it is not given.

    :param existing: the CPUs of the host
    """
    found: frozenset[int] = frozenset()
    for word in command_line:
        key, _, value = word.partition('=')
        if key == name:
            found = members(value, existing)
    return found


def members(text: str, existing: frozenset[int]) -> frozenset[int]:
    """Read a list; what is no term of a list is a flag."""
    last = max(existing, default=0)
    found: set[int] = set()
    for term in text.split(','):
        match = _TERM.fullmatch(term)
        if match is None:
            continue
        if match[1] == 'all':
            return existing
        low = last if match[1] == 'N' else int(match[1])
        high = (low if match[2] is None
                else last if match[2] == 'N' else int(match[2]))
        used, group = int(match[3] or 1), int(match[4] or 1)
        found.update(cpu for cpu in existing
                     if low <= cpu <= high and (cpu - low) % group < used)
    return frozenset(found)
