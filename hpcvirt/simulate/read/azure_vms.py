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

"""Read the table of virtual machines of the Azure public datasets.

The file ``vmtable.csv`` of 2017 (V1) and 2019 (V2), which has no header. V2
has classes instead of sizes; the open ones are taken as by its authors, more
than 24 CPUs as 30, and more than 64 GiB as 70. Source: [Azure-Cortez-2017].
"""

import re

from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

_NAMES = ('vmid', 'subscriptionid', 'deploymentid', 'vmcreated', 'vmdeleted',
          'maxcpu', 'avgcpu', 'p95maxcpu', 'vmcategory', 'vmcorecount',
          'vmmemory')
_CATEGORIES = frozenset({'Delay-insensitive', 'Interactive', 'Unknown'})
_OPEN_CPUS = {'>24': '30'}
_OPEN_GIB = {'>64': '70'}
#: Times are those of samples, which are 5 minutes apart.
_SAMPLE_S = 300


def recognizes(first: str) -> bool:
    """Whether a log begins like this."""
    fields = first.split(',')
    return len(fields) == len(_NAMES) and (
        fields[8].strip() in _CATEGORIES
        or bool(re.match('vmid', fields[0], re.IGNORECASE)))


def read(log: logs.Log) -> workloads.Workload:
    """Read the machines.

    :raises InvalidInput: naming the line at fault
    """
    header = log.first.lower().startswith('vmid')
    table = tables.Table(log, _NAMES)
    opened = 0
    rows = table.rows('vmcreated', 'vmdeleted', 'vmcorecount', 'vmmemory')
    if header:
        next(rows, None)
    for created, deleted, cores, gib in rows:
        begin = table.time(created, 'vmcreated')
        end = table.time(deleted, 'vmdeleted')
        opened += cores in _OPEN_CPUS or gib in _OPEN_GIB
        cpus = table.whole(_OPEN_CPUS.get(cores, cores), 'vmcorecount',
                           logs.MOST_CPUS, 1)
        memory = table.number(_OPEN_GIB.get(gib, gib), 'vmmemory',
                              logs.MOST_MIB)
        log.add(begin, max(end - begin, _SAMPLE_S), cpus,
                round(memory * 1024), 1, '', 0, 0)
    return log.workload(logs.counted(
        opened, 'machine of an open class', 'machines of an open class',
        'taken to have 30 CPUs, or 70 GiB'))
