# SPDX-License-Identifier: Apache-2.0

"""Write an audit for people, as a JSON document, and for NHC.

People read the worst and costliest findings first, and each rule once.

In the configuration of LBNL Node Health Check (NHC), each fault is a check
that fails with the finding. NHC evaluates the text of a check as shell code
without quotes around it, and passes the reason to its helpers in single
quotes: only characters without a meaning there are kept.
"""

import itertools
import re
import textwrap
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import bibliography
from hpcvirt import printable
from hpcvirt import words
from hpcvirt.audit import audit as audits
from hpcvirt.audit import finding

SCHEMA_VERSION = 1

#: All other characters are written as a space for NHC.
_UNSAFE = re.compile(r'[^A-Za-z0-9 ,.:;/_()=%+@-]')

#: The width for a pipe.
WIDTH = 79


def text(audit: audits.Audit, width: int | None) -> str:
    """Write an audit.

    :param width: the width of the terminal, None for a pipe; commands are
        never wrapped
    """
    lines = []
    for _, group in itertools.groupby(
            audit.findings, lambda item: (item.severity, item.code)):
        lines += [*_group(tuple(group), width or WIDTH), '']
    lines.append(f'{audit.host}: {_summary(audit)}')
    return printable.lines(lines)


def _summary(audit: audits.Audit) -> str:
    counts = audits.counts(audit)
    found = [words.count_noun(
        count, 'unknown fact' if severity is finding.Severity.UNKNOWN
        else severity) for severity, count in counts.items() if count]
    return (f'{", ".join(found) or "no finding"}; '
            f'{len(audit.checked)} rules checked')


def _group(items: Sequence[finding.Finding], width: int) -> Iterator[str]:
    first = items[0]
    yield f'{first.severity.upper()} {first.code}'
    for item in items:
        yield from _wrap(f'Found: {item.found}', width)
        yield from _wrap(f'Expected: {item.expected}', width)
    for cost in dict.fromkeys(item.cost for item in items if item.cost):
        yield from _wrap(f'Cost: {cost}', width)
    sources = ' '.join(bibliography.get(key).citation
                       for key in first.sources)
    yield from _wrap(f'Why: {first.why}. {sources}'.rstrip(), width)
    for line in _join_changes([item.change for item in items]):
        yield from (_wrap(line, width, '    ', '    # ')
                    if line.startswith('#') else [f'    {line}'])


def _join_changes(changes: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write the first lines that several changes share once, before them.

    The last lines that they share come once, after them.
    """
    left = [change[_count_common(change, before):] for before, change
            in itertools.pairwise([(), *changes])]
    for change, after in itertools.pairwise([*left, ()]):
        yield from change[:len(change) - _count_common(
            change[::-1], after[::-1])]


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the lines that are alike from the beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(
        lambda pair: pair[0] == pair[1], pairs))


def _wrap(line: str, width: int, first: str = '  ',
          more: str = '    ') -> list[str]:
    return textwrap.wrap(
        line, width, initial_indent=first, subsequent_indent=more,
        break_on_hyphens=False, break_long_words=False)


def make_document(audit: audits.Audit) -> dict[str, Any]:
    """Turn an audit into dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'host': audit.host,
        'clean': audit.is_clean,
        'counts': {severity.value: count for severity, count
                   in audits.counts(audit).items()},
        'findings': [{
            'code': item.code, 'severity': item.severity.value,
            'found': item.found, 'expected': item.expected, 'why': item.why,
            'sources': list(item.sources), 'change': list(item.change),
            'cost': item.cost,
        } for item in audit.findings],
        'checked': list(audit.checked),
    }


def nhc_lines(audit: audits.Audit) -> list[str]:
    """Write one line for each finding; notes are comments."""
    found = [f'# {_plain(audit.host)}: audited by hpcvirt']
    for item in audit.findings:
        cost = f'; cost: {item.cost}' if item.cost else ''
        line = _plain(f'hpcvirt {item.code} ({item.severity}): '
                      f'{item.found}; expected: {item.expected}{cost}')
        found.append(f'* || die 1 "{line}"'
                     if item.severity in finding.FAULTS else f'# {line}')
    return found


def _plain(text: str) -> str:
    text = text.replace('[', '(').replace(']', ')').replace("'", '')
    return ' '.join(_UNSAFE.sub(' ', text).split())
