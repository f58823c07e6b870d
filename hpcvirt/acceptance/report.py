# SPDX-License-Identifier: Apache-2.0

"""Write the report of an acceptance: text for a support ticket, or JUnit."""

import shlex
import textwrap
from collections.abc import Iterable
from collections.abc import Iterator
from xml.etree import ElementTree

from hpcvirt import printable
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import text

_WORDS = {True: 'good', False: 'FAIL', None: 'unknown'}

#: Mail programs and ticket systems would break longer lines.
WIDTH = 78


def render(found: acceptance.Acceptance, outputs: str,
           hosts: int = 1) -> str:
    """Write the report of an acceptance that has ended.

    :param outputs: the directory of raw outputs
    :param hosts: number of hosts that were judged, including this one
    """
    blocks = [_lines(_summary(found, hosts)),
              _block('Machine', _machine(found)),
              _block('Measured', _measured(found)),
              *_gate(found), *_figures(found.verdict, found.native),
              _block('Audit', _audit(found)),
              f'To repeat it\n\n{_command(found.command)}\n' + _lines([
                  f'All outputs of the programs are below {outputs}.'], '  ')]
    return '\n'.join(blocks)


def _summary(found: acceptance.Acceptance, hosts: int) -> Iterator[str]:
    yield f'{found.result}: host {found.host} against {found.against}'
    if found.reason:
        yield f'Reason: {found.reason}'
    if found.overhead is not None:
        yield ('Programs in guests take at most '
               f'{found.overhead:.1%} longer than natively, by the upper end '
               'of the interval of the worst figure.')
    if hosts > 1:
        yield (f'This is one of {hosts} hosts that were judged, each by '
               'itself. If all of them were exactly at their bounds, up to '
               f'{hosts * stats.PROMISED:.2g} would pass, and up to as many '
               'fail, by chance. A host far from its bound does so less '
               'often.')
    if found.traits:
        yield 'Traits: ' + ', '.join(found.traits)
    if found.repaired:
        yield f'Repaired before it was measured: {found.repaired}'
    yield f'Begun {found.began_at}, ended {found.ended_at}'


def _machine(found: acceptance.Acceptance) -> Iterator[str]:
    if not found.machine:
        yield 'not read: the document names neither native nor gate'
    for name, value in found.machine.items():
        yield f'{name}: {value}'


def _measured(found: acceptance.Acceptance) -> Iterator[str]:
    for part in found.parts:
        yield (f'{part.instances} x {part.flavor}, all at once: '
               + (f'{", ".join(found.benchmarks)}; result {part.result}'
                  if part.result else 'not finished'))
    yield f'against: {found.against}'
    if found.verdict is not None:
        yield f'method: {found.verdict.method}'
        for clause in found.verdict.differences:
            yield f'differs between host and guest: {clause}'


def _gate(found: acceptance.Acceptance) -> Iterator[str]:
    gate = found.gate
    if gate is None:
        return
    lines = [f'{gate.result} on {gate.target}'
             + (f'; results {", ".join(gate.results)}' if gate.results
                else '')]
    lines += [f'not measured: {why}' for why in gate.unable]
    lines += [f'{_WORDS[check.passed]} {check.name}: {check.found}' + (
        f'; expected {check.expected}' if check.passed is False else '')
        for check in gate.checks]
    yield _block('Quick gate', lines)
    yield from _figures(gate.verdict, '', 'Figures of the gate')


def _figures(verdict: judgement.Verdict | None, native: str,
             title: str = 'Figures') -> Iterator[str]:
    judged = verdict.judgements if verdict else ()
    if not judged:
        return
    table = text.draw_figures(
        judged, other='Native' if native else 'Class', width=WIDTH)
    yield f'{title}\n\n{textwrap.indent(table, "  ")}' + _lines(
        (f'{figures}: {note}' for figures, note in text.notes(judged)), '  ')


def _audit(found: acceptance.Acceptance) -> Iterator[str]:
    if found.audit is None:
        yield 'none was given'
    elif acceptance.is_sound(found.audit):
        yield 'no fault'
    for each in found.audit or ():
        yield (f'{each.severity} {each.code}: found {each.found}; expected '
               f'{each.expected}')


def _command(command: str) -> str:
    """Break a command into lines between its words, with backslashes."""
    lines = ['']
    for word in map(shlex.quote, shlex.split(command)):
        if len(lines[-1]) + len(word) + 5 > WIDTH and lines[-1]:
            lines.append('')
        lines[-1] += f'{" " if lines[-1] else ""}{word}'
    text = ' \\\n'.join('  ' + ('  ' if number else '') + line
                        for number, line in enumerate(lines))
    return printable.escape(text, '\n') + '\n'


def _block(title: str, lines: Iterable[str]) -> str:
    return f'{title}\n\n' + _lines(lines, '  ')


def _lines(lines: Iterable[str], indent: str = '') -> str:
    return ''.join(
        textwrap.fill(printable.escape(line), WIDTH,
                      initial_indent=indent,
                      subsequent_indent=indent + '  ',
                      break_long_words=False, break_on_hyphens=False) + '\n'
        for line in lines)


def make_junit(found: acceptance.Acceptance) -> str:
    """Write an acceptance as a suite of JUnit.

    A FAIL is a failure. What decides nothing is skipped.
    """
    cases = list(_cases(found))
    suite = ElementTree.Element(
        'testsuite', name=found.host, timestamp=found.began_at,
        tests=str(len(cases)),
        failures=str(sum(word is judgement.VerdictResult.FAIL
                         for _, word, _ in cases)),
        skipped=str(sum(word not in (judgement.VerdictResult.PASS,
                                     judgement.VerdictResult.FAIL)
                        for _, word, _ in cases)))
    for name, word, why in cases:
        case = ElementTree.SubElement(
            suite, 'testcase', classname=found.host,
            name=printable.escape(name))
        if word is not judgement.VerdictResult.PASS:
            is_failure = word is judgement.VerdictResult.FAIL
            ElementTree.SubElement(
                case, 'failure' if is_failure else 'skipped',
                message=printable.one_line(f'{word or "unknown"}: {why}'))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, 'unicode') + '\n'


def _cases(found: acceptance.Acceptance,
           ) -> Iterator[tuple[str, judgement.VerdictResult | None, str]]:
    yield 'acceptance' if found.parts else 'quick gate', found.result, (
        found.reason or '')
    verdicts = [('', found.verdict)]
    if found.gate is not None:
        verdicts.append(('gate: ', found.gate.verdict))
        for check in found.gate.checks:
            word = None
            if check.passed is not None:
                word = (judgement.VerdictResult.PASS if check.passed
                        else judgement.VerdictResult.FAIL)
            yield (f'gate: {check.name}', word,
                   f'{check.found}; expected {check.expected}')
        for why in found.gate.unable:
            yield (f'gate: {why.partition(":")[0]}',
                   judgement.VerdictResult.INCONCLUSIVE, why)
    for prefix, verdict in verdicts:
        for figure in verdict.judgements if verdict else ():
            ratio = (f'; the ratio is {figure.interval.ratio:.3f}'
                     if figure.interval else '')
            yield (f'{prefix}{figure.label} {figure.metric}', figure.result,
                   f'{figure.reason}{ratio}')
