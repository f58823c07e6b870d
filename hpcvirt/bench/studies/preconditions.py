# SPDX-License-Identifier: Apache-2.0

"""The settings that a case requires, and a check whether they were set.

Operators set nested paging, SMT and transparent huge pages by hand. The
studies measure the effect of these settings, so that figures under other
settings cannot be compared.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.bench.model import record
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study

#: Setting to the facts in the environment of a sample that show it.
_FACTS = {'nested_paging': ('kvm.ept', 'kvm.npt'), 'smt': ('cpu.smt',),
          'ksm': ('pages.ksm',)}
_NAMES = {'nested_paging': 'nested paging', 'smt': 'SMT', 'ksm': 'KSM'}
#: KSM has a state 2, off and with all pages unmerged.
_STATES = {'1': 'on', 'Y': 'on', '0': 'off', '2': 'off', 'N': 'off'}
#: Pages of a case to the choice in ``transparent_hugepage/enabled``.
THP = {'small': 'never', 'large': 'always'}

_INSTRUCTIONS: Mapping[str, Mapping[str, str]] = {
    'nested_paging': {
        'on': 'Host: nested paging on, ept=1 of kvm_intel or npt=1 of '
              'kvm_amd (the default); see /sys/module/kvm_*/parameters.',
        'off': 'Host: nested paging off, "options kvm_intel ept=0" or '
               '"options kvm_amd npt=0" in /etc/modprobe.d, then reboot; '
               'never leave it off in production.'},
    'smt': {
        'on': 'Host: SMT on, in the firmware and without nosmt on the '
              "kernel's command line.",
        'off': 'Host: SMT off, in the firmware or by nosmt on the '
               "kernel's command line, then reboot."},
    'ksm': {
        'on': 'Host: KSM on, "echo 1 > /sys/kernel/mm/ksm/run" or ksmtuned.',
        'off': 'Host: KSM off, "systemctl stop ksm ksmtuned" and "echo 2 > '
               '/sys/kernel/mm/ksm/run".'},
    'memory': {
        'uma': 'Host: one NUMA cell, by node interleaving in the firmware; '
               'then read its topology again.'},
    'numad': {'off': 'Host: numad off, "systemctl stop numad".'},
    'services': {
        'on': 'Host and guests: the usual services of the site running.',
        'off': 'Host and guests: services stopped that are not needed, such '
               'as monitoring, configuration management and cron; the native '
               'side is measured without them too.'},
    'pages': {
        'small': 'Host, for the native side: "never" in '
                 '/sys/kernel/mm/transparent_hugepage/enabled; "study '
                 'run" sets it in the guests.',
        'large': 'Host, for the native side: "always" in '
                 '/sys/kernel/mm/transparent_hugepage/enabled; "study '
                 'run" sets it in the guests.'},
    'device': {
        'emulated': 'Image: hw_vif_model=e1000.',
        'virtio': 'Image: hw_vif_model=virtio, or no hw_vif_model.',
        'sriov': 'Networks: on a physical network with virtual functions.',
        'passthrough': 'Networks: on a physical network whose devices are '
                       'passed through whole.'},
}


def instructions(case: study.Case) -> Iterator[str]:
    """Yield what to set before the case is run, one sentence per setting."""
    settings = {**case.host_settings, 'pages': case.guests.pages,
                'device': case.guests.device}
    for name, sentences in _INSTRUCTIONS.items():
        if settings.get(name) in sentences:
            yield sentences[settings[name]]


def find_unmet(*runs: record.Run) -> tuple[str, ...]:
    """Return the settings that were not as the cases of the runs require.

    Settings that a machine does not report, and cases that no study has any
    more, are ignored.

    :returns: one clause each
    """
    clauses: list[str] = []
    for run in runs:
        for case in _cases(run):
            for sample in run.samples:
                clauses += _check_sample(case, sample)
    return tuple(dict.fromkeys(clauses))


def describe_unmet(result: record.Result) -> list[str]:
    """Return a line for each run of a result with such settings."""
    return [f'{run.label}: not as {run.study}/{run.case} requires: '
            f'{"; ".join(clauses)}'
            for run in result.runs if (clauses := find_unmet(run))]


def _cases(run: record.Run) -> list[study.Case]:
    cases: list[study.Case] = []
    for study_ in study_catalogue.studies():
        if study_.id == run.study:
            cases += [case for case in study_.cases if case.id == run.case]
    return cases


def _check_sample(case: study.Case, sample: record.Sample) -> Iterator[str]:
    if sample.side is record.Side.NATIVE:
        for name, wanted in case.host_settings.items():
            for fact in _FACTS.get(name, ()):
                for value in sample.facts(fact):
                    state = _STATES.get(value, wanted)
                    if state != wanted:
                        yield f'{_NAMES[name]} was {state}'
    wanted = THP.get(case.guests.pages, '')
    for value in sample.facts('pages.thp'):
        chosen = re.search(r'\[(\w+)\]', value)
        if wanted and chosen and chosen[1] != wanted:
            yield (f'transparent huge pages were "{chosen[1]}" on the '
                   f'{sample.side.value} side')
