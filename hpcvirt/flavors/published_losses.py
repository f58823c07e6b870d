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
must confirm. The loss of one guest per socket that [LBNL-Partitioning] states
is not among them: its hypervisor and its MPI were modified.
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


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A loss in percent of the host's own figure.

    :ivar low: the loss in the better case
    :ivar high: the loss in the worse case
    :ivar configuration: the measured guests, number x vCPUs
    :ivar place: where the figure is in the document of the study
    """

    low: float
    high: float
    configuration: str
    study: Study
    place: str


_PLACE = 'slide on the "Kilo-1" configuration, column "After"'
#: HS06 rate lost on a 32-core host, by the share of the host that one guest
#: takes: 4x8 is four guests of 8 cores.
BY_SHARE = (
    (fractions.Fraction(1, 4), Loss(3.3, 3.3, '4x8', HS06_STUDY, _PLACE)),
    (fractions.Fraction(1, 2), Loss(4.6, 4.6, '2x16', HS06_STUDY, _PLACE)),
    (fractions.Fraction(3, 4), Loss(5.0, 5.0, '1x24', HS06_STUDY, _PLACE)),
    (fractions.Fraction(1), Loss(3.0, 6.0, '1x32', HS06_STUDY, _PLACE)),
)


def expected(pcpus: int, host_pcpus: int) -> Loss:
    """Find the figure that applies to a guest.

    A share between two measured ones gets the figure of the larger share.

    :param pcpus: the dedicated CPUs of the guest
    :param host_pcpus: the dedicated CPUs of the host
    """
    share = fractions.Fraction(pcpus, host_pcpus)
    return next((loss for limit, loss in BY_SHARE if share <= limit),
                BY_SHARE[-1][1])
