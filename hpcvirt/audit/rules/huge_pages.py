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

"""Rules about huge pages: as the flavors need them, on every cell."""

from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit import finding
from hpcvirt.audit.fact import known
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Subject
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import host_state
from hpcvirt.flavors import memory

_ERROR = finding.Severity.ERROR
_WARNING = finding.Severity.WARNING

#: Cells differ by a few pages that the kernel or the firmware took.
UNEVEN_PERCENT = 5


def _reserved(subject: Subject) -> Mapping[int, Mapping[int, int]]:
    """Count pages: size in KiB -> cell -> pages that stay reserved."""
    found: dict[int, dict[int, int]] = {}
    for pool in known(subject.facts.memory.huge_pages):
        found.setdefault(pool.size_kib, {})[pool.cell] = (
            pool.total - pool.surplus)
    return found


def _command(cell: int, size: int, count: int) -> str:
    place = f'/sys/devices/system/node/node{cell}/hugepages'
    return f'echo {count} > {place}/hugepages-{size}kB/nr_hugepages'


def _as_needed(subject: Subject) -> Iterator[Violation]:
    plan = subject.plan
    if plan is None or subject.profile is None:
        return
    lasting = ' '.join(
        f'{item.name}={item.value}' for item in host_state.of(
            plan, subject.profile).parameters if 'hugepages' in item.name)
    small = memory.small_page_kib(plan.host)
    reserved = _reserved(subject)
    needed = {(cell, size): count
              for cell, pages in plan.settings.pages.items()
              for size, count in pages.items() if size != small}
    present = {(cell, size): count for size, cells in reserved.items()
               for cell, count in cells.items()}
    for cell, size in sorted(needed.keys() | present.keys()):
        count, has = needed.get((cell, size), 0), present.get((cell, size), 0)
        if count != has:
            name = memory.page_name(size).upper()
            yield Violation(
                f'cell {cell} has {has} pages of {name}',
                f'{count} pages, as the flavors need them',
                (_command(cell, size, count),
                 ('# lasting, on the kernel command line of Linux 5.16 or '
                  f'newer: {lasting or "no hugepages="}')),
                _ERROR if has < count else _WARNING)


def _even(subject: Subject) -> Iterator[Violation]:
    if subject.plan:
        return  # Each cell is compared with its plan.
    cells = {cell.id: len(cell.cpus & subject.dedicated or cell.cpus)
             for cell in subject.host.cells if cell.cpus}
    found = False
    for size, counts in sorted(_reserved(subject).items()):
        found = found or any(counts.values())
        own = {cell: counts.get(cell, 0) for cell in cells}
        most = max(own.values(), default=0)
        if (len(set(cells.values())) == 1
                and min(own.values()) * 100 < most * (100 - UNEVEN_PERCENT)):
            name = memory.page_name(size).upper()
            least = min(own, key=lambda cell: own[cell])
            yield Violation(
                f'cell {least} has {own[least]} pages of {name}, another has '
                f'{most}', 'as many on each cell',
                (_command(least, size, most),
                 ('# lasting: hugepages=CELL:COUNT,... on the kernel command '
                  'line of Linux 5.16 or newer')))
    if not found and subject.dedicated:
        yield Violation(
            'no huge pages are reserved', 'huge pages for the memory of '
            'guests',
            ('# hpcvirt host audit --profile default says how many',))


RULES = (
    Rule('huge-pages', _ERROR,
         'With a profile: each cell has as many huge pages as its flavors '
         'need (a warning if it has more).',
         'Nova refuses guests that find no pages, and pages that no guest '
         'can use are lost to the host', ('Nova-Hugepages',), _as_needed),
    Rule('huge-pages-even', _WARNING,
         'Without a profile: there are huge pages, and cells with as many '
         f'CPUs have as many of them (within {UNEVEN_PERCENT} %).',
         'guests are sized for equal cells; pages of 1 GB were uneven over '
         'the cells when memory was nearly full',
         ('CERN-HEPiX-2015', 'VMware-Memory-2010', 'Linux-Hugetlb'),
         _even),
)
