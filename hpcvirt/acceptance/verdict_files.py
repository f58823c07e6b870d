# SPDX-License-Identifier: Apache-2.0

"""Write the verdicts of acceptances for programs: JUnit and JSON lines."""

import json
import os
import stat
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt import printable
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.model import judgement

Word = judgement.VerdictResult


def make_junit(found: acceptance.Acceptance) -> str:
    """Write an acceptance as a suite of JUnit.

    A FAIL is a failure. What decides nothing is skipped.
    """
    cases = list(_cases(found))
    suite = ElementTree.Element(
        'testsuite', name=found.host, timestamp=found.began_at,
        tests=str(len(cases)),
        failures=str(sum(word is Word.FAIL for _, word, _ in cases)),
        skipped=str(sum(word not in (Word.PASS, Word.FAIL)
                        for _, word, _ in cases)))
    for name, word, text in cases:
        case = ElementTree.SubElement(
            suite, 'testcase', classname=found.host,
            name=printable.escape(name))
        if word is not Word.PASS:
            ElementTree.SubElement(
                case, 'failure' if word is Word.FAIL else 'skipped',
                message=printable.one_line(f'{word or "unknown"}: {text}'))
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
            yield f'gate: {check.name}', (
                None if check.passed is None else
                Word.PASS if check.passed else Word.FAIL
            ), f'{check.found}; expected {check.expected}'
        for why in found.gate.unable:
            yield f'gate: {why.partition(":")[0]}', Word.INCONCLUSIVE, why
    for prefix, verdict in verdicts:
        for figure in verdict.judgements if verdict else ():
            ratio = (f'; the ratio is {figure.interval.ratio:.3f}'
                     if figure.interval else '')
            yield (f'{prefix}{figure.label} {figure.metric}', figure.result,
                   f'{figure.reason}{ratio}')


def append_line(path: str, document: Any) -> None:
    """Append a document to a file of JSON lines; create it if it is missing.

    Several processes may do so at once. A line that a killed process has left
    unfinished is closed.

    :param document: None only checks whether the file can be written
    :raises InvalidInput: if it cannot
    """
    line = json.dumps(document, allow_nan=False) + '\n'
    with output_file.appending(path, 0o644) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise exception.InvalidInput(path, 'is not a file')
        if document is not None:
            output_file.append(stream, line.encode())
