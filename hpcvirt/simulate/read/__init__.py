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

"""Read workloads: logs of batch systems and clouds, and public traces.

The form is recognized by the content, never by the name of the file. Files
that gzip has compressed are expanded.

To add a form, write a module with its reader, and add one line to ``_FORMS``.
"""

import dataclasses
from collections.abc import Callable

from hpcvirt import exception
from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import azure_packing
from hpcvirt.simulate.read import azure_vms
from hpcvirt.simulate.read import boots_csv
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import openb
from hpcvirt.simulate.read import swf


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """A form of workloads.

    :ivar name: the value of the argument that says the form
    :ivar words: what it is, for messages
    :ivar recognizes: whether a log begins like this
    :ivar read: reads the log, or raises InvalidInput
    """

    name: str
    words: str
    recognizes: Callable[[str], bool]
    read: Callable[[logs.Log], workloads.Workload]


_FORMS = (
    _Form('boots', 'CSV of boots and deletions', boots_csv.recognizes,
          boots_csv.read),
    _Form('openb', "pods of Alibaba's openb trace", openb.recognizes,
          openb.read),
    _Form('azure-packing', 'Azure trace for packing',
          azure_packing.recognizes, azure_packing.read),
    _Form('azure-vms', 'vmtable.csv of Azure', azure_vms.recognizes,
          azure_vms.read),
    _Form('swf', 'Standard Workload Format', swf.recognizes, swf.read),
)

#: The forms that can be named.
FORMS = ('auto', *(form.name for form in _FORMS))


def workload(path: str, form: str = 'auto',
             machine: tuple[int, int] = logs.MACHINE) -> workloads.Workload:
    """Read a workload.

    :param path: a file, or ``-`` for standard input
    :param form: one of ``FORMS``
    :param machine: CPUs and MiB of a machine, for logs that have parts of a
        machine
    :raises InvalidInput: naming the file, and the line if one is at fault
    """
    log = logs.Log(path, machine)
    for candidate in _FORMS:
        if form == candidate.name or (
                form == 'auto' and candidate.recognizes(log.first)):
            return candidate.read(log)
    forms = ', '.join(f'{known.words} ({known.name})' for known in _FORMS)
    raise exception.InvalidInput(
        log.where, f'has an unknown form; expected one of: {forms}')
