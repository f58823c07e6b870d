# SPDX-License-Identifier: Apache-2.0

"""Clean the text of an output from what terminals and launchers add."""

import re

#: No benchmark that hpcvirt knows writes a thousandth of this. Reading one
#: byte more is enough to tell that an output is larger.
LIMIT_BYTES = 64 * 2 ** 20

#: Colours and cursor movements (ECMA-48), window titles.
_ESCAPES = re.compile(
    r'\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|'
    r'\x1b[@-Z\\^_]')
_OVERLONG = re.compile(r'^.{4097,}$', re.MULTILINE)
#: mpirun --tag-output: ``[1,0]<stdout>:`` before every line; Open MPI 5 puts
#: the job's name into it.
_TAG = re.compile(
    r'^\[(?:[^\]\s]{1,200}@)?\d+,\d+\]<(?:stdout|stderr)>: ?', re.MULTILINE)
#: ``0: `` of srun --label, ``[0] `` of mpiexec -l.
_LABEL = re.compile(r' *\d+: ?|\[\d+\] ?')


def clean(raw: bytes) -> str:
    """Decode an output and remove colours, tags and carriage returns.

    Anything can be decoded: bytes that are not text become U+FFFD, and no
    parser accepts such a line as a figure.
    """
    text = raw.decode('utf-8', 'replace').removeprefix('\ufeff')
    if '\x1b' in text:
        text = _ESCAPES.sub('', text)
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    return _without_label(_TAG.sub('', text))


def _without_label(text: str) -> str:
    """Remove the label of a rank if all lines have the same.

    The rows of NetPIPE also begin with a number, but each with another one.
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
    """Remove lines that are too long to hold figures.

    They are dumps or not text at all, and take long to search.
    """
    return _OVERLONG.sub('', text)


#: What programs and launchers say when they fail, the clearest first.
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

    It is only of use if the result is missing: MPI libraries also print
    complaints in good runs.
    """
    for pattern in _COMPLAINTS:
        match = pattern.search(text)
        if match is not None:
            return line_at(text, match.start())
    return None


def line_at(text: str, offset: int) -> str:
    """Quote the line of the text around an offset."""
    begin = text.rfind('\n', 0, offset) + 1
    end = text.find('\n', offset)
    return quote(text[begin:] if end < 0 else text[begin:end])


def quote(line: str) -> str:
    """Make a piece of an output short and printable, to quote it."""
    folded = ' '.join(line[:400].split())
    printable = ''.join(c if c.isprintable() else '?' for c in folded)
    return printable if len(printable) <= 120 else printable[:117] + '...'
