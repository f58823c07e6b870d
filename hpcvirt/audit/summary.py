# SPDX-License-Identifier: Apache-2.0

"""Summarise the audits of many hosts.

Two things are of interest in a fleet: on how many hosts each finding is, and
in which versions and settings the hosts of one class differ.
"""

import collections
import contextlib
import functools
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import printable
from hpcvirt import words
from hpcvirt.audit import audit as audits
from hpcvirt.audit import fact
from hpcvirt.audit import finding
from hpcvirt.audit import report
from hpcvirt.audit.reading.cpu import Frequency
from hpcvirt.audit.reading.host import HostFacts
from hpcvirt.audit.reading.memory import HugePagePool
from hpcvirt.audit.reading.memory import Ksm
from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import classes
from hpcvirt.topology.alike import differences

#: What is compared, by part and fact.
_SETTINGS = {
    'cpu': {'smt': 'SMT', 'frequencies': 'frequency', 'no_turbo': 'no_turbo',
            'boost': 'boost', 'idle_states': 'idle states',
            'microcode': 'microcode', 'address_bits': 'address bits'},
    'memory': {'ksm': 'KSM', 'thp': 'transparent huge pages',
               'huge_pages': 'huge pages', 'swappiness': 'swappiness',
               'numa_balancing': 'NUMA balancing'},
    'kernel': {'release': 'kernel', 'command_line': 'kernel parameters',
               'tuned_profile': 'TuneD profile'},
    'hardware': {'iommu_types': 'IOMMU'},
}

#: Parameters that say where the system of a host is.
_OWN_PARAMETERS = ('BOOT_IMAGE=', 'initrd=', 'ip=', 'rd.', 'resume=', 'root=')

#: The topology of a host, and what is compared of it: subject -> value.
Description = tuple[host_model.Host, Mapping[str, str]]


def make_document(found: Sequence[audits.Audit],
                  described: Sequence[Description | None]) -> dict[str, Any]:
    """Summarise audits, with each of them, for programs.

    :param described: the same hosts
    """
    where: dict[tuple[int, str, str], list[str]] = {}
    for audit in found:
        for key in {(finding.ORDER.index(item.severity), item.code,
                     item.found if item.code == audits.UNKNOWN else '')
                    for item in audit.findings}:
            where.setdefault(key, []).append(audit.host)
    return {
        'schema_version': report.SCHEMA_VERSION,
        'clean': all(audit.is_clean for audit in found),
        'summary': [{'severity': finding.ORDER[order].value, 'code': code,
                     'unknown': unknown, 'hosts': hosts}
                    for (order, code, unknown), hosts in sorted(
                        where.items(), key=lambda item: (
                            item[0][0], -len(item[1]), item[0]))],
        'differences': list(_compare(
            [item for item in described if item])),
        'hosts': [report.make_document(audit) for audit in found],
    }


def _compare(described: Sequence[Description]) -> Iterator[dict[str, Any]]:
    values = {host.name: found for host, found in described}
    for hosts in _group(host for host, _ in described):
        subjects = itertools.chain.from_iterable(
            values[name] for name in hosts)
        for subject in dict.fromkeys(subjects):
            by_value: dict[str, list[str]] = {}
            for name in hosts:
                by_value.setdefault(values[name].get(subject, 'none'),
                                    []).append(name)
            if len(by_value) > 1:
                yield {'class': hosts, 'subject': subject, 'values': [
                    {'value': value, 'hosts': names} for value, names in
                    sorted(by_value.items(), key=lambda item: -len(item[1]))]}


def _group(hosts: Iterable[host_model.Host]) -> list[list[str]]:
    """List the hosts of each class; NPS and SNC are settings and no class."""
    found: list[tuple[host_model.Host, list[str]]] = []
    for group in classes.group(hosts):
        members = next((names for example, names in found if {
            item.subject for item in differences.compare_hosts(
                group.example, example)} == {'cells'}), [])
        if not members:
            found.append((group.example, members))
        members += group.hosts
        for variant in group.odd:
            members += variant.hosts
    return [members for _, members in found]


def describe(facts: HostFacts) -> Description | None:
    """Read what is compared of a host; None if its topology is not known."""
    try:
        host = facts.host
    except fact.NotKnown:
        return None
    found: dict[str, str] = {}
    for part, names in _SETTINGS.items():
        for name, subject in names.items():
            found[subject] = _format(fact.fact(functools.partial(
                getattr, getattr(facts, part), name)))
    found['cells per socket (NPS, SNC)'] = _format(collections.Counter(
        cell.socket for cell in host.cells if cell.cpus).values())
    try:
        found |= {
            name if name == 'BIOS' else f'firmware of {name}': version
            for name, version in facts.hardware.firmware.items()}
    except fact.NotKnown:
        found['firmware'] = 'unknown'
    with contextlib.suppress(fact.NotKnown):
        found |= {f'[{group}]{option}': ', '.join(values)
                  for (group, option), values in (
                      facts.nova.options.items() if facts.nova else ())}
    return host, found


def _format(value: object) -> str:
    """Write a value, or the values of several CPUs, cells or devices."""
    match value:
        case fact.UnknownFact():
            return 'unknown'
        case None:
            return 'none'
        case Ksm():
            return str(value.run)
        case str(name), int():  # an idle state
            return name
        case Frequency():
            return ' '.join(filter(None, (value.driver, value.governor,
                                          value.preference)))
        case HugePagePool():
            return (f'{value.total} of {words.format_size(value.size_kib)} in '
                    f'cell {value.cell}')
        case str() | int():
            return str(value)
    assert isinstance(value, Iterable)  # noqa: S101
    return ', '.join(sorted({
        text for text in map(_format, value)
        if not text.startswith(_OWN_PARAMETERS)})) or 'none'


def text(document: Mapping[str, Any]) -> str:
    """Write the summary for people."""
    number = len(document['hosts'])
    lines = [f'{item["severity"].upper()} {item["code"]}: '
             + (f'{item["unknown"]}: ' if item['unknown'] else '')
             + f'{len(item["hosts"])} of {number} hosts '
             f'({words.shorten_names(item["hosts"])})'
             for item in document['summary']]
    before: list[str] = []
    for item in document['differences']:
        if item['class'] != before:
            before = item['class']
            names = words.join_names(before, 'hosts')
            lines += ['', f'Differences within the class of {names}:']
        lines.append(f'  {item["subject"]}')
        lines += [f'    {each["value"]}: '
                  f'{words.join_names(each["hosts"], "hosts")}'
                  for each in item['values']]
    faulty = sum(not host['clean'] for host in document['hosts'])
    return printable.lines([*lines, '', (
        f'{number} hosts: {number - faulty} without faults, '
        f'{faulty} with faults')])
