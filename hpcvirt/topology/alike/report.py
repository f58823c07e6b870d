# SPDX-License-Identifier: Apache-2.0

"""Print classes of hosts, as text and as JSON."""

import collections
import textwrap
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import classes
from hpcvirt.topology.alike import hardware_features


def table(groups: Sequence[classes.HostClass], width: int | None) -> str:
    """Write classes as text."""
    lines: list[str] = []
    for number, group in enumerate(groups, 1):
        hosts = words.count_noun(len(group.hosts), 'host')
        lines += [
            f'Class {number}: {hosts}, {_facts(group.example)}',
            f'  {", ".join(group.hosts)}',
            *_variants('Odd hosts:', group.odd),
            *_variants('The same devices on the same cells, in other slots:',
                       group.slots), '']
    return '\n'.join(_wrapped(lines, width)).rstrip() + '\n'


def document(groups: Sequence[classes.HostClass]) -> list[dict[str, Any]]:
    """Write classes as dicts, lists, numbers and strings."""
    return [serialization.dump(group) | {'example': group.example.name}
            for group in groups]


def _variants(title: str, variants: Sequence[classes.HostVariant],
              ) -> Iterator[str]:
    if variants:
        yield f'  {title}'
    for variant in variants:
        yield f'    {", ".join(variant.hosts)}: ' + '; '.join(
            item.what for item in variant.differences)


def _facts(host: host_model.Host) -> str:
    cores = sum(len(cell.siblings) for cell in host.cells)
    threads = host.threads_per_core
    memory = ' + '.join(
        (f'{number} x ' if number > 1 else '') + f'{mib / 1024:.4g}'
        for mib, number in _runs(hardware_features.memory(host)))
    parts = [host.processor or '',
             '' if host_model.Unknown.SOCKETS in host.unknown
             else words.count_noun(len(host.sockets), 'socket'),
             words.count_noun(len(host.cells), 'cell'),
             words.count_noun(cores, 'core')
             + (f' of {threads} threads' if threads > 1 else ''),
             f'{memory} GiB']
    parts += [f'{number} x {vendor}:{product}' for (vendor, product, _), number
              in sorted(collections.Counter(map(
                  hardware_features.kind,
                  hardware_features.devices(host))).items())]
    return ', '.join(filter(None, parts))


def _runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """Count neighbours whose memory may consist of the same modules."""
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and hardware_features.is_close(runs[-1][0], value):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return runs


def _wrapped(lines: Sequence[str], width: int | None) -> Iterator[str]:
    for line in lines:
        indent = ' ' * (len(line) - len(line.lstrip()))
        if width is None or not line:
            yield line
            continue
        yield from textwrap.wrap(line.strip(), width, initial_indent=indent,
                                 subsequent_indent=f'{indent}  ',
                                 break_on_hyphens=False)
