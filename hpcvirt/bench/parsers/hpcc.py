# SPDX-License-Identifier: Apache-2.0

"""Read ``hpccoutf.txt`` of HPC Challenge 1.0 to 1.5.

The summary at the end has the figures. The sections before it have residuals,
validations and some of the figures again. An output counts if it has both,
they agree, and they are of one run, the requested one.
"""

import math
import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

#: ``--expect`` key, name in the summary, other names, help.
_ECHOED = (
    ('N', 'HPL_N', ('order',), "order of HPL's matrix"),
    ('NB', 'HPL_NB', ('block',), 'block size'),
    ('P', 'HPL_nprow', (), 'rows of the process grid'),
    ('Q', 'HPL_npcol', (), 'columns of the process grid'),
    ('ranks', 'CommWorldProcs',
     ('np', 'nprocs', 'procs', 'processes', 'mpi_ranks'), 'MPI ranks'),
    ('stream_size', 'STREAM_VectorSize', (), "elements of STREAM's arrays"),
    ('stream_threads', 'STREAM_Threads', ('threads',), 'threads of STREAM'),
    ('random_access_size', 'RandomAccess_N', (),
     "words of RandomAccess's table per rank"),
    ('dgemm_size', 'DGEMM_N', (), "order of DGEMM's matrices"),
    ('fft_size', 'FFT_N', (), "length of StarFFT's vector"),
)

KEYS = (
    *(expectation.ParameterKey(key, expectation.Kind.WHOLE, text,
                               (name, *aliases))
      for key, name, aliases, text in _ECHOED),
    expectation.word('version', 'such as 1.5.0'),
)

_UP = reading.UP
_DOWN = reading.DOWN

#: Figures that every version prints and every run measures.
_ALWAYS = {
    'HPL_Tflops': ('Tflop/s', _UP),
    'StarDGEMM_Gflops': ('Gflop/s', _UP),
    'SingleDGEMM_Gflops': ('Gflop/s', _UP),
    'PTRANS_GBs': ('GB/s', _UP),
    'MPIRandomAccess_GUPs': ('GUP/s', _UP),
    'StarRandomAccess_GUPs': ('GUP/s', _UP),
    'SingleRandomAccess_GUPs': ('GUP/s', _UP),
    'StarSTREAM_Copy': ('GB/s', _UP),
    'StarSTREAM_Scale': ('GB/s', _UP),
    'StarSTREAM_Add': ('GB/s', _UP),
    'StarSTREAM_Triad': ('GB/s', _UP),
    'SingleSTREAM_Copy': ('GB/s', _UP),
    'SingleSTREAM_Scale': ('GB/s', _UP),
    'SingleSTREAM_Add': ('GB/s', _UP),
    'SingleSTREAM_Triad': ('GB/s', _UP),
}

#: Versions that do not print all figures.
_OLD = {('1', minor) for minor in '0123'}
#: Figures that these versions may lack.
_LATER = {
    'MPIRandomAccess_LCG_GUPs': ('GUP/s', _UP),
    'StarRandomAccess_LCG_GUPs': ('GUP/s', _UP),
    'SingleRandomAccess_LCG_GUPs': ('GUP/s', _UP),
    'StarFFT_Gflops': ('Gflop/s', _UP),
    'SingleFFT_Gflops': ('Gflop/s', _UP),
    'MPIFFT_Gflops': ('Gflop/s', _UP),
}

#: Figures that need two ranks: a single rank prints -1.
_BETWEEN_RANKS = {
    'MinPingPongLatency_usec': ('us', _DOWN),
    'AvgPingPongLatency_usec': ('us', _DOWN),
    'MaxPingPongLatency_usec': ('us', _DOWN),
    'NaturallyOrderedRingLatency_usec': ('us', _DOWN),
    'RandomlyOrderedRingLatency_usec': ('us', _DOWN),
    'MinPingPongBandwidth_GBytes': ('GB/s', _UP),
    'AvgPingPongBandwidth_GBytes': ('GB/s', _UP),
    'MaxPingPongBandwidth_GBytes': ('GB/s', _UP),
    'NaturallyOrderedRingBandwidth_GBytes': ('GB/s', _UP),
    'RandomlyOrderedRingBandwidth_GBytes': ('GB/s', _UP),
}

#: Section to the line that repeats a figure of the summary.
_AGAIN = {
    'MPIRandomAccess': (r'^(\S+) Billion\S* Updates    per second',
                        'MPIRandomAccess_GUPs'),
    'StarRandomAccess': (r'^Average GUP/s (\S+)', 'StarRandomAccess_GUPs'),
    'SingleRandomAccess': (r'^Single GUP/s (\S+)',
                           'SingleRandomAccess_GUPs'),
    'StarDGEMM': (r'^Average Gflop/s (\S+)', 'StarDGEMM_Gflops'),
    'SingleDGEMM': (r'^Single DGEMM Gflop/s (\S+)', 'SingleDGEMM_Gflops'),
    'StarSTREAM': (r'^Average Triad GB/s (\S+)', 'StarSTREAM_Triad'),
    'SingleSTREAM': (r'^Single STREAM Triad GB/s (\S+)',
                     'SingleSTREAM_Triad'),
    'StarFFT': (r'^Average Gflop/s (\S+)', 'StarFFT_Gflops'),
    'SingleFFT': (r'^Single FFT Gflop/s (\S+)', 'SingleFFT_Gflops'),
}

_BORDER = re.compile(r'^(Begin|End) of (\w+) section\.', re.MULTILINE)
_END = re.compile(r'^End of HPC Challenge tests\.', re.MULTILINE)
_SUMMARY = re.compile(r'^Begin of Summary section\.', re.MULTILINE)
_HPL_ROW = re.compile(
    r'^W\S+ +(\d+) +(\d+) +(\d+) +(\d+) +(\S+) +(\S+)[ \t]*$',
    re.MULTILINE)
_HPL_CHECK = re.compile(r'^\|\|Ax-b\|\|.*$', re.MULTILINE)
_SKIPPED = re.compile(r'^ +([1-9]\d*) tests skipped because', re.MULTILINE)
_FAILED = re.compile(
    r'^.*(?:\bFAILED\b|\(failed\)|Failed Validation|Failed to allocate|'
    r'Memory allocation failed|Node\(s\) with error [1-9]|'
    r'^ +[1-9]\d* tests completed and failed).*$', re.MULTILINE)

#: Matrix elements per rank of the default problem, which HPCC runs when it
#: cannot use hpccinf.txt: 50 MiB of doubles (1.5.0 on 1, 2 and 4 ranks).
_DEFAULT_ELEMENTS = 50 * 2 ** 20 / 8


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read ``hpccoutf.txt``.

    :raises InvalidOutput: if it is not the whole output of one good run
    """
    for marker, what in ((_SUMMARY, 'summary'), (_END, 'end marker')):
        seen = len(marker.findall(text))
        if seen == 0:
            raise reading.InvalidOutput(
                f'no {what}: the output is not complete')
        if seen > 1:
            raise reading.InvalidOutput(
                f'{seen} runs in one file: HPCC appends to hpccoutf.txt, '
                'remove it before each run')
    sections = _sections(text)
    if 'Summary' not in sections:
        raise reading.InvalidOutput('the summary is not complete')
    summary = _summary(sections['Summary'])
    if summary.get('Success') != '1':
        raise reading.InvalidOutput(_why_no_success(text, summary))
    failed = _FAILED.search(text)
    if failed is not None:
        raise reading.InvalidOutput(
            f'a check failed: {failed[0].strip()[:100]}')
    parameters = dict(_parameters(summary))
    _check_hpl(sections.get('HPL', ''), summary)
    if 'N' not in expect:
        _check_not_default(summary)
    metrics, remarks = _metrics(summary, int(parameters['ranks']))
    for section, (pattern, name) in _AGAIN.items():
        _check_again(sections.get(section), pattern, name, metrics)
    return reading.Reading(metrics, parameters, remarks=remarks)


def _sections(text: str) -> dict[str, str]:
    """Find the sections that have a begin and an end, by name."""
    found: dict[str, str] = {}
    open_name, begin = '', 0
    for border in _BORDER.finditer(text):
        if border[1] == 'Begin':
            open_name, begin = border[2], border.end()
        elif border[2] == open_name:
            found[open_name] = text[begin:border.start()]
            open_name = ''
    return found


def _summary(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in section.splitlines():
        name, equals, value = line.strip().partition('=')
        if not equals:
            continue
        if name in found:
            raise reading.InvalidOutput(f'{name} occurs twice in the summary')
        found[name] = value.strip()
    return found


def _why_no_success(text: str, summary: Mapping[str, str]) -> str:
    failed = _FAILED.search(text)
    because = f': {failed[0].strip()[:100]}' if failed is not None else ''
    return f'Success={summary.get("Success", "")[:20]}{because}'


def _parameters(summary: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, name, _, _ in _ECHOED:
        # -1 is a size that this version does not set.
        if key in ('N', 'NB', 'P', 'Q', 'ranks') or (
                name in summary and summary[name] != '-1'):
            yield key, str(reading.whole(summary.get(name, ''), name))
    parts = [summary.get(f'Version{part}', '')
             for part in ('Major', 'Minor', 'Micro')]
    if all(parts):
        yield 'version', '.'.join(parts)


def _check_hpl(section: str, summary: Mapping[str, str]) -> None:
    checks = [line.split()[-1] for line in _HPL_CHECK.findall(section)]
    if not checks:
        raise reading.Missing("no residual check of HPL's solution")
    if set(checks) != {'PASSED'}:
        raise reading.InvalidOutput(
            "the residual check of HPL's solution did not pass")
    skipped = _SKIPPED.search(section)
    if skipped is not None:
        raise reading.InvalidOutput(f'{skipped[1]} HPL tests were skipped')
    shape = tuple(summary.get(name, '') for name in
                  ('HPL_N', 'HPL_NB', 'HPL_nprow', 'HPL_npcol'))
    rates = [reading.figure(row[6], 'Gflops of HPL')
             for row in _HPL_ROW.finditer(section)
             if (row[1], row[2], row[3], row[4]) == shape]
    if not rates:
        raise reading.InvalidOutput(
            "HPL's table has no row of the size that the summary names")
    summed = reading.figure(summary.get('HPL_Tflops', ''), 'HPL_Tflops') * 1e3
    if not any(reading.is_near(rate, summed, 0.005) for rate in rates):
        raise reading.InvalidOutput(
            f'HPL_Tflops={summary["HPL_Tflops"][:40]} is not the rate in '
            f"HPL's table ({rates[-1]:g} Gflop/s)")


def _check_not_default(summary: Mapping[str, str]) -> None:
    """Refuse the default problem, which HPCC runs if its input is unusable."""
    ranks = reading.whole(summary.get('CommWorldProcs', ''), 'CommWorldProcs')
    order = reading.whole(summary.get('HPL_N', ''), 'HPL_N')
    largest = math.sqrt(ranks * _DEFAULT_ELEMENTS)
    if (summary.get('HPL_order') == 'C' and summary.get('HPL_NB') == '80'
            and 0.9 * largest <= order <= largest):
        raise reading.InvalidOutput(
            f'this is the default problem of HPCC (N={order}, NB=80, '
            'column-major), which it runs if hpccinf.txt is missing, '
            'unreadable or needs more ranks than were started; if you '
            f'requested it, use --expect N={order}')


def _metrics(summary: Mapping[str, str], ranks: int) -> tuple[
        dict[str, outcome.Metric], tuple[str, ...]]:
    wanted = {**_ALWAYS, **_LATER}
    remarks: tuple[str, ...] = ()
    if ranks > 1:
        wanted.update(_BETWEEN_RANKS)
    else:
        remarks = ('one rank: HPCC measured no latency or bandwidth',)
    if (summary.get('VersionMajor'), summary.get('VersionMinor')) in _OLD:
        wanted = {name: rule for name, rule in wanted.items()
                  if name in _ALWAYS or name in summary}
    metrics = {}
    for name, (unit, direction) in wanted.items():
        if name not in summary:
            raise reading.InvalidOutput(f'no {name} in the summary')
        metrics[name] = outcome.Metric(
            reading.figure(summary[name], name), unit, direction)
    return metrics, remarks


def _check_again(section: str | None, pattern: str, name: str,
                 metrics: Mapping[str, outcome.Metric]) -> None:
    match = re.search(pattern, section or '', re.MULTILINE)
    if match is None or name not in metrics:
        return
    value = metrics[name].value
    printed = reading.real(match[1], f'{name} in its section')
    # Sections print six decimals, the summary six digits.
    if abs(printed - value) > 1e-6 + 1e-4 * value:
        raise reading.InvalidOutput(
            f'{name} is {value:g} in the summary and {match[1][:40]} in its '
            'section')
