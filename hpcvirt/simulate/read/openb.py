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

"""Read the pods of Alibaba's GPU cluster, cluster-trace-gpu-v2023.

The files ``openb_pod_list_*.csv`` of [FGD-Weng-2023]. Nova gives whole GPUs,
so a pod that asks for a share of a GPU gets a whole one. A pod is requested
when it was created, and lives as long as it did from when it was scheduled.
"""

import math

from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

_COLUMNS = ('cpu_milli', 'memory_mib', 'num_gpu', 'gpu_milli',
            'creation_time', 'deletion_time', 'scheduled_time')
_WHOLE = 1000
_MOST_GPUS = 1024


def recognizes(first: str) -> bool:
    """Whether a log begins like this."""
    return set(_COLUMNS) <= set(tables.columns(first))


def read(log: logs.Log) -> workloads.Workload:
    """Read the pods that were scheduled.

    :raises InvalidInput: naming the line at fault
    """
    table = tables.Table(log)
    never = shares = 0
    for (milli, memory, gpus, gpu_milli, created, deleted,
         scheduled) in table.rows(*_COLUMNS):
        begin = table.time(created, 'creation_time')
        cpus = table.number(milli, 'cpu_milli', logs.MOST_CPUS * _WHOLE)
        mib = table.whole(memory, 'memory_mib', logs.MOST_MIB)
        count = table.whole(gpus, 'num_gpu', _MOST_GPUS)
        life = (table.time(deleted, 'deletion_time')
                - table.time(scheduled, 'scheduled_time')
                if deleted and scheduled else 0)
        if life <= 0:
            never += 1
            continue
        if count and table.number(gpu_milli, 'gpu_milli', 1e9) < _WHOLE:
            shares += 1
        log.add(begin, life, max(1, math.ceil(cpus / _WHOLE)), mib, 1, '', 0,
                count)
    return log.workload((
        *logs.counted(never, 'pod that was never scheduled or did not live',
                      'pods that were never scheduled or did not live',
                      'left out'),
        *logs.counted(shares, 'pod that asks for a share of a GPU',
                      'pods that ask for a share of a GPU',
                      'given a whole one')))
