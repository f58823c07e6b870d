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

"""The performance that guests lose against their host, as studies measured it.

The figures are those that the studies print, for guests with NUMA cells,
pinned CPUs, 2 MB pages and nested paging. They are measurements of the
studies' machines. On other machines they are an estimate, which a benchmark
must confirm.
"""

import dataclasses
import fractions

from hpcvirt import bibliography


@dataclasses.dataclass(frozen=True, slots=True)
class Study:
    """A published study.

    :ivar measured: what its figures are
    """

    document: bibliography.Document
    measured: str


HS06_STUDY = Study(
    bibliography.get('CERN-HEPiX-2015'),
    'HS06 rate lost by guests of a 32-core host with pinned CPUs, NUMA cells '
    'and 2 MB pages')
NPB_STUDY = Study(bibliography.get('LBNL-Partitioning'),
                  'time added to the NAS Parallel Benchmarks')


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A loss in percent of the host's own figure.

    :ivar low: the loss in the better case
    :ivar high: the loss in the worse case
    :ivar configuration: the measured guests, number x vCPUs
    """

    low: float
    high: float
    configuration: str
    study: Study


#: HS06 rate lost on a 32-core host, by the share of the host that one guest
#: takes: 4x8 is four guests of 8 cores. From the column "After" of the study's
#: table "VM sizes (cores)".
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
    """Find the figures that apply to a guest.

    A share between two measured ones gets the figure of the larger share.

    :param pcpus: the dedicated CPUs of the guest
    :param host_pcpus: the dedicated CPUs of the host
    :param one_per_package: whether the guest takes exactly one package
    """
    share = fractions.Fraction(pcpus, host_pcpus)
    found = next((loss for limit, loss in BY_SHARE if share <= limit),
                 BY_SHARE[-1][1])
    return (found, PER_SOCKET) if one_per_package else (found,)
