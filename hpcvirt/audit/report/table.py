# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Write an audit for people: the worst first, each rule once."""

import itertools
import textwrap
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import bibliography
from hpcvirt import printable
from hpcvirt.audit import audit as audits
from hpcvirt.audit import finding

#: The width for a pipe.
WIDTH = 79


def text(audit: audits.Audit, width: int | None) -> str:
    """Write an audit.

    :param width: the width of the terminal, None for a pipe; commands are
        never wrapped
    """
    lines = []
    for (_, code), group in itertools.groupby(
            sorted(audit.findings, key=_order), _order):
        lines += [*_group(code, tuple(group), width or WIDTH), '']
    lines.append(f'{audit.host}: {_summary(audit)}')
    return printable.lines(lines)


def _order(item: finding.Finding) -> tuple[int, str]:
    return finding.ORDER.index(item.severity), item.code


def _summary(audit: audits.Audit) -> str:
    counts = audits.counts(audit)
    words = [f'{count} {severity}' for severity, count in counts.items()
             if count]
    return (f'{", ".join(words) or "no finding"}; '
            f'{len(audit.checked)} rules have an answer')


def _group(code: str, items: Sequence[finding.Finding],
           width: int) -> Iterator[str]:
    first = items[0]
    yield f'{first.severity.upper()} {code}'
    for item in items:
        yield from _paragraph('Found: ', item.found, width)
        yield from _paragraph('Expected: ', item.expected, width)
    sources = ' '.join(bibliography.get(key).citation
                       for key in first.sources)
    yield from _paragraph('Why: ', f'{first.why}. {sources}'.rstrip(), width)
    # What several findings end with comes once, after them.
    changes = [line for item in items for line in item.change]
    for line in reversed(dict.fromkeys(reversed(changes))):
        if line.startswith('#'):
            yield from textwrap.wrap(
                line, width, initial_indent='    ',
                subsequent_indent='    # ', break_on_hyphens=False,
                break_long_words=False)
        else:
            yield f'    {line}'


def _paragraph(heading: str, words: str, width: int) -> list[str]:
    return textwrap.wrap(
        f'{heading}{words}', width, initial_indent='  ',
        subsequent_indent='    ', break_on_hyphens=False,
        break_long_words=False)
