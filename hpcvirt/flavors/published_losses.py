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

"""What a guest of some size is known to lose against its host.

Figures of the studies as they print them, for a guest with NUMA cells,
pinning, 2 MB pages and nested paging on. They hold for the machines of the
studies; on others they tell what to expect, and a benchmark tells the truth.
"""

import dataclasses
import fractions

HS06_STUDY = '[CERN-HEPiX-2015]'
NPB_STUDY = '[LBNL-Partitioning]'


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A loss in percent of the host's own figure.

    :ivar low: in the better case
    :ivar high: in the worse case
    :ivar configuration: what was measured
    """

    low: float
    high: float
    configuration: str
    source: str


#: HS06 rate lost on a 32-core host, by the share of the host that one guest
#: takes: four guests of 8 cores and so on. Table "VM sizes (cores)", column
#: "After", of the study.
BY_SHARE = (
    (fractions.Fraction(1, 4), Loss(3.3, 3.3, '4x8', HS06_STUDY)),
    (fractions.Fraction(1, 2), Loss(4.6, 4.6, '2x16', HS06_STUDY)),
    (fractions.Fraction(3, 4), Loss(5.0, 5.0, '1x24', HS06_STUDY)),
    (fractions.Fraction(1), Loss(3.0, 6.0, '1x32', HS06_STUDY)),
)

#: NAS Parallel Benchmarks, time added by one guest per socket of a NUMA host
#: whose guests share memory: "On Numa nodes 40% -> 3%".
PER_SOCKET = Loss(3.0, 3.0, 'one per socket', NPB_STUDY)


def expected(pcpus: int, host_pcpus: int,
             one_per_package: bool) -> tuple[Loss, ...]:
    """The figures that come closest to a guest.

    :param pcpus: dedicated CPUs of the guest
    :param host_pcpus: those of the host
    :param one_per_package: the guest is one package
    """
    share = fractions.Fraction(pcpus, host_pcpus)
    found = next((loss for limit, loss in BY_SHARE if share <= limit),
                 BY_SHARE[-1][1])
    return (found, PER_SOCKET) if one_per_package else (found,)
