# SPDX-License-Identifier: Apache-2.0

"""Write verdicts for programs: JUnit for CI, and JSON lines for fleets.

Several processes may append to one file of JSON lines, each a whole line. A
line that a killed process has left unfinished is closed.
"""

import fcntl
import json
import os
import re
import stat
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.model import judgement

Word = judgement.VerdictResult

_FLAGS = (os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
          | os.O_CLOEXEC)
#: What XML 1.0 cannot contain.
_UNWRITABLE = re.compile('[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-'
                         '\U0010ffff]')


class TestCase(NamedTuple):
    """A test case of JUnit.

    :ivar text: why the word is not PASS, or what was found
    """

    host: str
    name: str
    word: judgement.VerdictResult | None
    text: str


def list_cases(found: acceptance.Acceptance) -> Iterator[TestCase]:
    """List the cases of an acceptance that has ended."""
    host, gate = found.host, found.gate
    yield TestCase(host, 'acceptance' if found.parts else 'quick gate',
                   found.result, found.reason or '')
    if gate is not None:
        for check in gate.checks:
            word = (None if check.passed is None else
                    Word.PASS if check.passed else Word.FAIL)
            yield TestCase(host, f'gate: {check.name}', word,
                           f'{check.found}; expected {check.expected}')
        for text in gate.unable:
            yield TestCase(host, f'gate: {text.partition(":")[0]}',
                           Word.INCONCLUSIVE, text)
        yield from list_figures(host, gate.verdict, 'gate: ')
    yield from list_figures(host, found.verdict)


def list_figures(host: str, verdict: judgement.Verdict | None,
                 prefix: str = '') -> Iterator[TestCase]:
    """List the cases of the figures of a verdict."""
    for figure in verdict.judgements if verdict else ():
        text = figure.reason or ''
        if figure.interval is not None and figure.limit is not None:
            text += (f' ratio {figure.interval.ratio:.3f}, limit '
                     f'{figure.limit:.3f}')
        yield TestCase(host, f'{prefix}{figure.label} {figure.metric}',
                       figure.result, text.strip())


def make_junit(cases: Iterable[TestCase]) -> str:
    """Write test cases as JUnit, with a suite for each host.

    A FAIL is a failure, and what decides nothing is skipped.
    """
    root = ElementTree.Element('testsuites')
    suites: dict[str, ElementTree.Element] = {}
    for case in cases:
        if case.host not in suites:
            suites[case.host] = ElementTree.SubElement(
                root, 'testsuite', name=_writable(case.host), tests='0',
                failures='0', skipped='0')
        suite = suites[case.host]
        element = ElementTree.SubElement(
            suite, 'testcase', classname=_writable(case.host),
            name=_writable(case.name))
        counted = ['tests']
        if case.word is not Word.PASS:
            tag = 'failure' if case.word is Word.FAIL else 'skipped'
            counted.append('failures' if tag == 'failure' else tag)
            ElementTree.SubElement(element, tag, message=_writable(
                f'{case.word or "not judged"}: {case.text}'))
        for name in counted:
            suite.set(name, str(int(suite.get(name, '0')) + 1))
    ElementTree.indent(root)
    return ElementTree.tostring(root, 'unicode') + '\n'


def append_lines(path: str, documents: Iterable[Any]) -> None:
    """Append documents to a file of JSON lines; create it if it is missing.

    :param documents: none only checks whether the file can be written
    :raises InvalidInput: if it cannot
    """
    text = ''.join(json.dumps(document, allow_nan=False) + '\n'
                   for document in documents)
    try:
        handle = os.open(path, _FLAGS | os.O_CREAT, 0o644)
        with os.fdopen(handle, 'r+b', buffering=0) as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise exception.InvalidInput(path, 'is not a file')
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            if text and size and os.pread(handle, 1, size - 1) != b'\n':
                text = '\n' + text
            if text:
                stream.write(text.encode())
                os.fsync(handle)
    except OSError as exc:
        raise exception.InvalidInput(
            path, f'cannot be written ({exc.strerror or exc})') from exc


def _writable(text: str) -> str:
    return _UNWRITABLE.sub('?', text)
