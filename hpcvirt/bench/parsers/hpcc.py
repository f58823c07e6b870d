# SPDX-License-Identifier: Apache-2.0

"""Read ``hpccoutf.txt`` of HPC Challenge 1.0 to 1.5.

The summary at the end has the figures. The sections before it have residuals,
validations, and some of the figures again. An output is valid if the summary
and the sections are complete and agree, and are of a single run.
"""

import math
import re
from collections.abc import Iterator
from collections.abc import Mapping

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
    *(expectation.whole(key, text, name, *aliases)
      for key, name, aliases, text in _ECHOED),
    expectation.word('version', 'such as 1.5.0'),
)

#: Figures that every version prints and every run measures.
_ALWAYS = (
    'HPL_Tflops', 'StarDGEMM_Gflops', 'SingleDGEMM_Gflops', 'PTRANS_GBs',
    'MPIRandomAccess_GUPs', 'StarRandomAccess_GUPs',
    'SingleRandomAccess_GUPs',
    'StarSTREAM_Copy', 'StarSTREAM_Scale', 'StarSTREAM_Add',
    'StarSTREAM_Triad', 'SingleSTREAM_Copy', 'SingleSTREAM_Scale',
    'SingleSTREAM_Add', 'SingleSTREAM_Triad',
)

#: Versions that do not print all figures.
_OLD = {('1', minor) for minor in '0123'}
#: Figures that these versions may lack.
_LATER = (
    'MPIRandomAccess_LCG_GUPs', 'StarRandomAccess_LCG_GUPs',
    'SingleRandomAccess_LCG_GUPs', 'StarFFT_Gflops', 'SingleFFT_Gflops',
    'MPIFFT_Gflops',
)

#: Figures that need two ranks: a single rank prints -1.
_PATTERNS = ('MinPingPong', 'AvgPingPong', 'MaxPingPong',
             'NaturallyOrderedRing', 'RandomlyOrderedRing')
_BETWEEN_RANKS = (
    *(f'{pattern}Latency_usec' for pattern in _PATTERNS),
    *(f'{pattern}Bandwidth_GBytes' for pattern in _PATTERNS),
)

#: Section to the line in it that repeats a figure of the summary.
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
#: N, NB, P, Q, time and rate; NVIDIA's HPL adds the rate per GPU.
HPL_ROW = re.compile(
    r'^W\S+ +(\d+) +(\d+) +(\d+) +(\d+) +(\S+) +(\S+)(?: +\(.*\))?[ \t]*$',
    re.MULTILINE)
HPL_CHECK = re.compile(r'^\|\|Ax-b\|\|.*\.{6} *(\w+)[ \t]*$', re.MULTILINE)
_SKIPPED = re.compile(r'^ +([1-9]\d*) tests skipped because', re.MULTILINE)
_FAILED = re.compile(
    r'^.*(?:\bFAILED\b|\(failed\)|Failed Validation|Failed to allocate|'
    r'Memory allocation failed|Node\(s\) with error [1-9]|'
    r'^ +[1-9]\d* tests completed and failed).*$', re.MULTILINE)

#: Matrix elements per rank of the default problem, which HPCC runs if it
#: cannot use hpccinf.txt: 50 MiB of doubles (1.5.0 on 1, 2 and 4 ranks).
_DEFAULT_ELEMENTS = 50 * 2 ** 20 / 8


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read ``hpccoutf.txt``."""
    for marker, what in ((_SUMMARY, 'summary'), (_END, 'end marker')):
        seen = len(marker.findall(text))
        reading.require(seen, f'no {what}: the output is not complete',
                        reading.Missing)
        reading.require(seen == 1, f'{seen} runs in one file: HPCC appends to '
                        'hpccoutf.txt, remove it before each run')
    sections = _sections(text)
    reading.require('Summary' in sections, 'the summary is not complete')
    summary = _summary(sections['Summary'])
    failed = _FAILED.search(text)
    because = failed[0].strip()[:100] if failed else ''
    reading.require(summary.get('Success') == '1', ': '.join(filter(None, (
        f'Success={summary.get("Success", "")[:20]}', because))))
    reading.require(not failed, f'a check failed: {because}')
    parameters = dict(_parameters(summary))
    _check_hpl(sections.get('HPL', ''), summary)
    ranks = reading.whole(parameters['ranks'], 'the number of ranks')
    if 'N' not in expect:
        _check_not_default(summary, ranks)
    metrics = _metrics(summary, ranks)
    for section, (pattern, name) in _AGAIN.items():
        _check_again(sections.get(section, ''), pattern, name, metrics)
    return reading.Reading(metrics, parameters, remarks=() if ranks > 1 else (
        'one rank: HPCC measured no latency or bandwidth',))


def _sections(text: str) -> dict[str, str]:
    """Return the complete sections by name."""
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
        if equals:
            reading.require(name not in found,
                            f'{name} occurs twice in the summary')
            found[name] = value.strip()
    return found


def _parameters(summary: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, name, _, _ in _ECHOED:
        # A version that does not set a size prints -1.
        if key in ('N', 'NB', 'P', 'Q', 'ranks') or (
                name in summary and summary[name] != '-1'):
            yield key, str(reading.whole(summary.get(name, ''), name))
    parts = [summary.get(f'Version{part}', '')
             for part in ('Major', 'Minor', 'Micro')]
    if all(parts):
        yield 'version', '.'.join(parts)


def _check_hpl(section: str, summary: Mapping[str, str]) -> None:
    checks = HPL_CHECK.findall(section)
    reading.require(checks, "no residual check of HPL's solution",
                    reading.Missing)
    reading.require(set(checks) == {'PASSED'},
                    "the residual check of HPL's solution did not pass")
    skipped = _SKIPPED.search(section)
    if skipped is not None:
        raise reading.InvalidOutput(f'{skipped[1]} HPL tests were skipped')
    shape = tuple(summary.get(name, '') for name in
                  ('HPL_N', 'HPL_NB', 'HPL_nprow', 'HPL_npcol'))
    rates = [reading.figure(row[6], 'Gflops of HPL')
             for row in HPL_ROW.finditer(section)
             if row.group(1, 2, 3, 4) == shape]
    reading.require(rates, "HPL's table has no row of the size that the "
                    'summary names')
    summed = reading.figure(summary.get('HPL_Tflops', ''), 'HPL_Tflops') * 1e3
    reading.require(
        any(math.isclose(rate, summed, rel_tol=0.005) for rate in rates),
        f'HPL_Tflops={summary["HPL_Tflops"][:40]} is not the rate in '
        f"HPL's table ({rates[-1]:g} Gflop/s)")


def _check_not_default(summary: Mapping[str, str], ranks: int) -> None:
    """Refuse the default problem, which HPCC runs for want of an input."""
    order = reading.whole(summary['HPL_N'], 'HPL_N')
    largest = math.sqrt(ranks * _DEFAULT_ELEMENTS)
    reading.require(
        summary.get('HPL_order') != 'C' or summary['HPL_NB'] != '80'
        or not 0.9 * largest <= order <= largest,
        f'this is the default problem of HPCC (N={order}, NB=80, '
        'column-major), which it runs if hpccinf.txt is missing, '
        'unreadable or needs more ranks than were started; if you '
        f'requested it, use --expect N={order}')


def _metrics(summary: Mapping[str, str],
             ranks: int) -> dict[str, float]:
    wanted = [*_ALWAYS, *_LATER]
    if ranks > 1:
        wanted += _BETWEEN_RANKS
    if (summary.get('VersionMajor'), summary.get('VersionMinor')) in _OLD:
        wanted = [name for name in wanted
                  if name in _ALWAYS or name in summary]
    metrics = {}
    for name in wanted:
        reading.require(name in summary, f'no {name} in the summary')
        metrics[name] = reading.figure(summary[name], name)
    return metrics


def _check_again(section: str, pattern: str, name: str,
                 metrics: Mapping[str, float]) -> None:
    match = re.search(pattern, section, re.MULTILINE)
    if match is None or name not in metrics:
        return
    value = metrics[name]
    printed = reading.real(match[1], f'{name} in its section')
    # Sections print six decimals, the summary prints six significant digits.
    reading.require(abs(printed - value) <= 1e-6 + 1e-4 * value,
                    f'{name} is {value:g} in the summary and {match[1][:40]} '
                    'in its section')
