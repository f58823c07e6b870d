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

"""Plans of cases as a table for people."""

from collections.abc import Sequence

from hpcvirt import text_table
from hpcvirt.bench.studies import scaling
from hpcvirt.flavors import memory
from hpcvirt.replication import case_plan


def table(cases: Sequence[case_plan.CasePlan | scaling.Refusal],
          width: int | None) -> str:
    """Draw what each case is on the hosts of a site.

    Cases that the hosts cannot run follow below, with the reason.

    :param width: columns of the terminal, None for no limit
    """
    rows = [_row(each) for each in cases
            if isinstance(each, case_plan.CasePlan)]
    text = text_table.draw(
        ('Case', 'Guests', 'MiB each', 'Cells', 'CPUs', 'Pages', 'Launch',
         'Networks', 'Settings'), rows, {'MiB each', 'Cells'},
        width) if rows else ''
    refused = [f'{each.case.id} cannot be run: it {each.reason}\n'
               for each in cases if isinstance(each, scaling.Refusal)]
    return text + ''.join(refused)


def _row(planned: case_plan.CasePlan) -> tuple[str, ...]:
    scaled = planned.scaled
    case, guests = scaled.case, scaled.case.guests
    cells, pages, cpus = '-', 'any', 'floating'
    if scaled.guest is not None:
        cells, cpus = str(len(scaled.guest.cells)), 'pinned'
        pages = memory.page_name(scaled.guest.cells[0].page_kib or 0)
    settings = ' '.join(f'{name}={value}' for name, value
                        in case.host_settings.items())
    network = f'{guests.networks} {guests.device}'.strip()
    return (case.id, scaled.shape, str(scaled.memory_mib), cells, cpus,
            pages, case.launch or '-',
            network if guests.networks else '-', settings or '-')
