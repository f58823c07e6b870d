# SPDX-License-Identifier: Apache-2.0

"""Remove what terminals and launchers add to an output, and quote from it."""

import re

#: Larger outputs are refused; real ones have less than a thousandth of this.
LIMIT_BYTES = 64 * 2 ** 20

#: Colours and cursor movements (ECMA-48), window titles.
_ESCAPES = re.compile(
    r'\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|'
    r'\x1b[@-Z\\^_]')
_OVERLONG = re.compile(r'^.{4097,}$', re.MULTILINE)
#: The prefix of mpirun --tag-output, ``[1,0]<stdout>:``; that of Open MPI 5
#: includes the job's name.
_TAG = re.compile(
    r'^\[(?:[^\]\s]{1,200}@)?\d+,\d+\]<(?:stdout|stderr)>: ?', re.MULTILINE)
#: The prefix of srun --label, ``0: ``, and that of mpiexec -l, ``[0] ``.
#: A time such as 10:00:00 is no label.
_LABEL = re.compile(r' *\d+:(?!\d\d:) ?|\[\d+\] ?')


def clean(raw: bytes) -> str:
    """Decode an output and remove colours, tags and carriage returns.

    Bytes that are not UTF-8 become U+FFFD, which no parser accepts in a
    figure.
    """
    text = raw.decode('utf-8', 'replace').removeprefix('\ufeff')
    if '\x1b' in text:
        text = _ESCAPES.sub('', text)
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    return _without_label(_TAG.sub('', text))


def _without_label(text: str) -> str:
    """Remove the label of a rank if all lines have the same label.

    The rows of NetPIPE also begin with a number, but with different ones.
    """
    first = _LABEL.match(text)
    if first is None:
        return text
    label = first[0].rstrip()
    lines = text.splitlines()
    if len(lines) < 2 or not all(
            line.startswith(label) or not line.strip() for line in lines):
        return text
    bare = '\n'.join(line[len(label):].removeprefix(' ') for line in lines)
    return bare + '\n' if text.endswith('\n') else bare


def drop_long_lines(text: str) -> str:
    """Remove lines that are too long for figures and take long to search."""
    return _OVERLONG.sub('', text)


#: What loggers write before a line and change from line to line: times,
#: levels, words in brackets. A separator and one space may follow each.
_LOGGED = re.compile(
    r'(?:(?:\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)?'
    r'(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|'
    r'[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|'
    r'(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR)\b|\[[^\]\n]{1,60}\])'
    r'(?: ?[:|>-](?= |$))? ?){1,8}')
#: The end of a prefix that is the same before each line.
_PREFIX_END = re.compile(r'.*(?:(?<!\d)[:|>\]] ?|[ \t])', re.DOTALL)
#: Fewer lines may have the same beginning by chance.
_MIN_PREFIXED = 3


def strip_prefixes(text: str) -> tuple[str, str] | None:
    """Remove what a logger or an indentation puts before each line.

    :returns: the first prefix and the text without prefixes, None if a line
        has none
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < _MIN_PREFIXED:
        return None
    bare = lines
    # A host or a program may stand before the time or after it.
    for _ in range(3):
        bare = _without_common(_without_logged(bare))
    prefix = lines[0].removesuffix(bare[0])
    if not prefix or not any(line.strip() for line in bare):
        return None
    # Lines without text are of no use to any parser.
    return prefix, '\n'.join(bare) + ('\n' if text.endswith('\n') else '')


def _without_logged(lines: list[str]) -> list[str]:
    heads = [_LOGGED.match(line) for line in lines]
    if None in heads:
        return lines
    return [line[head.end():] for line, head in zip(lines, heads, strict=True)
            if head is not None]


def _without_common(lines: list[str]) -> list[str]:
    filled = [line for line in lines if line.strip()]
    # What the first and the last line in alphabetical order share, all share.
    first, last = min(filled, default=''), max(filled, default='')
    count = 0
    for one, other in zip(first, last, strict=False):
        if one != other:
            break
        count += 1
    common = _PREFIX_END.match(first[:count])
    if common is None:
        return lines
    return [line[common.end():] for line in lines]


#: Error messages of programs and launchers, the clearest first.
_COMPLAINTS = tuple(re.compile('(?im)' + pattern) for pattern in (
    r'mpirun has detected an attempt to run as root',
    r'This test requires exactly two processes',
    r'not enough slots available',
    r'Need at least \d+ processes for these tests',
    r'cannot open file hpccinf\.txt',
    r'error while loading shared libraries: .*',
    r'command not found',
    r'Error in routine .*',
    r'Fatal error.*',
    r'Out of memory.*',
    r'Memory allocation failed.*',
    r'Segmentation fault.*',
    r'Bus error.*',
    r'Illegal instruction.*',
    r'Killed\b.*',
    r'MPI_ABORT was invoked.*',
    r'FATAL CALLED FROM.*',
    r'No such file or directory',
    r'Permission denied',
    r'^[^\w\n]{0,20}ERROR\b.*\w{3}.*',
))


def complaint(text: str) -> str | None:
    """Find the line that says what went wrong; None if there is none.

    Use it only if the result is missing: MPI libraries print such lines in
    good runs, too.
    """
    for pattern in _COMPLAINTS:
        match = pattern.search(text)
        if match is not None:
            return line_at(text, match.start())
    return None


def line_at(text: str, offset: int) -> str:
    """Quote the line at an offset of a text."""
    begin = text.rfind('\n', 0, offset) + 1
    end = text.find('\n', offset)
    return quote(text[begin:] if end < 0 else text[begin:end])


def quote(line: str) -> str:
    """Shorten a piece of an output and make it printable."""
    folded = ' '.join(line[:400].split())
    printable = ''.join(c if c.isprintable() else '?' for c in folded)
    return printable if len(printable) <= 120 else printable[:117] + '...'
