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

"""Read memory from sysfs: totals, huge pages and the page size."""

import re
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import sysfs_tree

_NODE = 'sys/devices/system/node'


def total_kib(tree: sysfs_tree.Tree, name: str) -> int:
    """Read MemTotal of a node or of the machine."""
    return _field(tree, name, 'MemTotal')


def pools(tree: sysfs_tree.Tree, directory: str, memory_kib: int,
          small_kib: int) -> tuple[host_model.PagePool, ...]:
    """Read the page pools of a node, or of a machine without nodes.

    :param directory: the directory of ``hugepages-2048kB`` and so on; missing
        if the kernel has no huge pages
    :returns: all pools; small pages are counted as the memory without huge
        pages, as libvirt does
    """
    huge = []
    for name in tree.names(directory):
        match = re.fullmatch('hugepages-([0-9]{1,12})kB', name)
        if match:
            huge.append(host_model.PagePool(
                int(match[1]),
                tree.number(f'{directory}/{name}/nr_hugepages', 2 ** 42)))
    rest = memory_kib - sum(pool.size_kib * pool.total for pool in huge)
    # A negative rest is a contradiction, which assemble reports.
    return (host_model.PagePool(small_kib, max(rest, 0) // small_kib), *huge)


def small_page_kib(tree: sysfs_tree.Tree, nodes: Sequence[int]) -> int:
    """Determine the size of a small page.

    The running kernel reports it. A copy does not, but it has the free
    memory both in KiB and in pages; both change all the time, so the quotient
    is rounded to a power of two. Without them, huge pages of 512 MiB identify
    an ARM kernel with pages of 64 KiB; otherwise 4 KiB is assumed.
    """
    running = tree.small_page_kib()
    if running is not None:
        return running
    for node in nodes:
        here = f'{_NODE}/node{node}'
        pages = re.search('^nr_free_pages ([0-9]{1,18})$',
                          tree.text(f'{here}/vmstat') or '', re.MULTILINE)
        # A small amount could change too much between the two files.
        if pages and int(pages[1]) > 1000:
            free_kib = _field(tree, f'{here}/meminfo', 'MemFree')
            for size_kib in (4, 8, 16, 32, 64):
                if 0.8 < free_kib / int(pages[1]) / size_kib < 1.25:
                    return size_kib
    huge = tree.names('sys/kernel/mm/hugepages')
    return 64 if 'hugepages-524288kB' in huge else host_model.SMALL_PAGE_KIB


def _field(tree: sysfs_tree.Tree, name: str, field: str) -> int:
    match = re.search(rf'^(?:Node +[0-9]+ )?{field}: +([0-9]{{1,18}}) kB$',
                      tree.need(name), re.MULTILINE)
    if match is None or int(match[1]) > assemble.MAX_MEMORY_KIB:
        raise exception.InvalidInput(
            f'{tree.where}: {name}', f'has no valid {field}')
    return int(match[1])
