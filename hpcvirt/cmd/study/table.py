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

"""Studies as tables of text: scaled to hosts, and with a site's figures."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import text_table
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import scaling
from hpcvirt.cmd import terminal
from hpcvirt.cmd.study import site
from hpcvirt.flavors import memory


def scaled(cases: Sequence[site.Planned | scaling.Refusal]) -> str:
    """What each case is on the hosts of a site."""
    rows = [_scaled_row(found) for found in cases
            if isinstance(found, site.Planned)]
    text = text_table.draw(
        ('Case', 'Guests', 'MiB each', 'Cells', 'CPUs', 'Pages', 'Launch',
         'Networks', 'Settings'), rows, {'MiB each', 'Cells'},
        terminal.width()) if rows else ''
    refused = [f'{found.case.id} cannot be run: it {found.reason}\n'
               for found in cases if isinstance(found, scaling.Refusal)]
    return text + ''.join(refused)


def _scaled_row(found: site.Planned) -> tuple[str, ...]:
    made = found.scaled
    guests = made.case.guests
    settings = ' '.join(f'{name}={value}' for name, value
                        in made.case.host_settings.items())
    network = f'{guests.networks} {guests.device}'.strip()
    cells, pages, cpus = '-', 'any', 'floating'
    if made.guest is not None:
        cells, cpus = str(len(made.guest.cells)), 'pinned'
        pages = memory.page_name(made.guest.cells[0].page_kib or 0)
    return (made.case.id, made.shape, str(made.memory_mib), cells, cpus,
            pages, made.case.launch or '-',
            network if guests.networks else '-', settings or '-')


def compared(found: Iterable[comparison.Beside]) -> str:
    """Published figures with the site's own below each."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        rows += _published(one)
        for own in one.own:
            rows += _own(own)
    return text_table.draw(
        ('Case', 'Figure', 'By', 'Native', 'Guest', 'Unit', 'Guest / native',
         'Better', 'Pairs', 'With'), rows, {'Native', 'Guest', 'Pairs'},
        terminal.width())


def _published(one: comparison.Beside) -> Iterator[tuple[str, ...]]:
    row = one.row
    state = '' if one.own else 'not yet run'
    if row is None:
        yield (one.case.id, 'no figure', 'published', '-', '-', '', '-', '',
               '', state)
        return
    native, guest, ratio = row.figures
    yield (row.case, row.title, 'published', native, guest, row.unit, ratio,
           row.direction, '', state or row.benchmark)


def _own(own: comparison.Own) -> Iterator[tuple[str, ...]]:
    with_what = own.benchmark + (' (stand-in)' if own.stand_in else '')
    ratio = text.interval(own.interval)
    if own.reason:
        ratio = own.reason if own.interval is None else (
            f'{ratio}, {own.reason}')
    yield ('', 'mean' if own.parts else '', own.host,
           text.figure(own.native), text.figure(own.guest), own.unit, ratio,
           '', str(own.pairs),
           '; '.join((f'{with_what} {own.shape}'.rstrip(), *own.unmet)))
    for part in own.parts:
        yield ('', f'  {part.name}', '', text.figure(part.native),
               text.figure(part.guest), part.unit,
               text.interval(part.interval), part.direction, '', '')
