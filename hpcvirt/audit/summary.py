# SPDX-License-Identifier: Apache-2.0

"""Summarise the audits of many hosts.

Two things are of interest in a fleet: on how many hosts each finding is, and
in which versions and settings the hosts of one class differ.
"""

import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import printable
from hpcvirt import words
from hpcvirt.audit import audit as audits
from hpcvirt.audit import fact
from hpcvirt.audit import facts as facts_module
from hpcvirt.audit import finding
from hpcvirt.audit import report
from hpcvirt.topology.alike import classes

#: Parameters that say where the system of a host is.
_OWN_PARAMETERS = ('BOOT_IMAGE', 'initrd', 'ip', 'resume', 'root')


def _list_parameters(facts: facts_module.Facts) -> Iterable[str]:
    return (word for word in fact.unwrap(facts.kernel.command_line)
            if not word.startswith('rd.')
            and word.partition('=')[0] not in _OWN_PARAMETERS)


#: What is compared, besides firmware and the options of nova-compute.
_SUBJECTS: Mapping[str, Callable[[facts_module.Facts], object]] = {
    'kernel': lambda facts: facts.kernel.release,
    'kernel parameters': _list_parameters,
    'microcode': lambda facts: facts.cpu.microcode,
    'SMT': lambda facts: facts.cpu.smt,
    'frequency': lambda facts: {
        f'{item.driver} {item.governor} {item.preference or ""}'.rstrip()
        for item in fact.unwrap(facts.cpu.frequencies)},
    'idle states': lambda facts: {
        item.name for item in fact.unwrap(facts.cpu.idle_states)},
    'no_turbo': lambda facts: facts.cpu.no_turbo,
    'boost': lambda facts: facts.cpu.boost,
    'KSM': lambda facts: getattr(fact.unwrap(facts.memory.ksm), 'run', None),
    'transparent huge pages': lambda facts: facts.memory.thp,
    'huge pages': lambda facts: [
        f'cell {item.cell}: {item.total} of {words.format_size(item.size_kib)}'
        for item in fact.unwrap(facts.memory.huge_pages)],
    'swappiness': lambda facts: facts.memory.swappiness,
    'NUMA balancing': lambda facts: facts.memory.numa_balancing,
    'TuneD profile': lambda facts: facts.kernel.tuned_profile,
    'IOMMU': lambda facts: facts.devices.iommu_types,
}


def make_document(found: Sequence[audits.Audit],
                  facts: Sequence[facts_module.Facts]) -> dict[str, Any]:
    """Summarise audits, with each of them, for programs.

    :param facts: of the same hosts
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
        'differences': list(_compare(facts)),
        'hosts': [report.make_document(audit) for audit in found],
    }


def _compare(facts: Sequence[facts_module.Facts]) -> Iterable[dict[str, Any]]:
    values = {item.name: _list_values(item) for item in facts}
    for group in classes.group(item.host for item in facts if not isinstance(
            item.host, fact.UnknownFact)):
        hosts = [*group.hosts, *(name for variant in group.odd
                                 for name in variant.hosts)]
        for subject in dict.fromkeys(
                key for name in hosts for key in values[name]):
            by_value: dict[str, list[str]] = {}
            for name in hosts:
                by_value.setdefault(values[name].get(subject, 'none'),
                                    []).append(name)
            if len(by_value) > 1:
                yield {'class': hosts, 'subject': subject, 'values': [
                    {'value': value, 'hosts': names} for value, names in
                    sorted(by_value.items(), key=lambda item: -len(item[1]))]}


def _list_values(facts: facts_module.Facts) -> dict[str, str]:
    """Write what is compared of a host: subject -> value."""
    found = {subject: _format(fact.fact(functools.partial(read, facts)))
             for subject, read in _SUBJECTS.items()}
    if isinstance(facts.devices.firmware, fact.UnknownFact):
        found['firmware'] = 'unknown'
    else:
        found |= {name if name == 'BIOS' else f'firmware of {name}': version
                  for name, version in facts.devices.firmware.items()}
    if isinstance(facts.nova, facts_module.NovaFacts):
        found |= {f'[{group}]{option}': ', '.join(values) for
                  (group, option), values in facts.nova.options.items()}
    return found


def _format(value: object) -> str:
    if isinstance(value, fact.UnknownFact):
        return 'unknown'
    if value is None or isinstance(value, bool):
        return {None: 'none', True: 'yes', False: 'no'}[value]
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ', '.join(sorted(map(str, value))) or 'none'
    return str(value)


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
    clean = sum(host['clean'] for host in document['hosts'])
    faulty = number - clean
    return printable.lines([*lines, '', (
        f'{number} hosts: {clean} without faults, {faulty} with faults')])
