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

"""Cut out of a host what its guests may have, for the generator to divide.

The generator divides whole hosts and says how these must be set. Where a host
shares its machine with everything else, as in DevStack, its settings come
first: some CPUs are dedicated, some pages of 2 MiB are reserved, and flavors
are wanted that tile just these.

``guest_part.py TOPOLOGY PART PROFILE [CPUS]`` reads a topology document, and
writes a smaller one, and the profile to plan it with. Where the host has no
pages of 2 MiB, guests get half of its memory in normal pages.
"""

import json
import pathlib
import sys
from typing import Any

from hpcvirt.model import cpuset

#: What the generator is to leave of each cell, so that it plans the rest.
HOST_MIB = 256
#: What is cut off belongs to the host: emulators and all.
PROFILE = """\
smallest_cores: 1
memory_step_mib: 64
guest_overhead_mib: 0
guest_overhead_mib_per_vcpu: 0
guest_overhead_permille: 0
"""


def main(topology: str, part: str, profile: str, cpus: str = '') -> int:
    """Read a document, write two files."""
    document = json.loads(pathlib.Path(topology).read_text('utf-8'))
    wanted = cpuset.parse(cpus, 'CPUs of guests') if cpus else None
    choices = cut(document, wanted)
    pathlib.Path(part).write_text(json.dumps(document), 'utf-8')
    pathlib.Path(profile).write_text(PROFILE + choices, 'utf-8')
    return 0


def cut(document: dict[str, Any], wanted: frozenset[int] | None) -> str:
    """Take away from a topology what guests may not have.

    :param wanted: CPUs; None leaves them all
    :returns: further lines of the profile
    """
    cells = document['cells']
    for cell in cells:
        for key in ('siblings', 'llc'):
            groups = [[cpu for cpu in group if wanted is None
                       or cpu in wanted] for group in cell.get(key, [])]
            cell[key] = [group for group in groups if group]
        cell['cpus'] = [cpu for cpu in cell['cpus']
                        if wanted is None or cpu in wanted]
    if not any(cell['pages'].get('2048') for cell in cells):
        least = min(cell['memory_mib'] for cell in cells if cell['cpus'])
        return f'page_size: 4K\nhost_reserve_mib_per_cell: {least // 2}\n'
    for cell in cells:
        cell['memory_mib'] = 2 * cell['pages'].get('2048', 0) + HOST_MIB
        cell['pages'] = {'4': cell['memory_mib'] * 256, '2048': 0}
    return f'host_reserve_mib_per_cell: {HOST_MIB}\n'


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
