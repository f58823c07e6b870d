# SPDX-License-Identifier: Apache-2.0

"""Read files of the operating system as the programs that get them do.

Each function reads what its program would, or refuses the file: it never reads
another value. ``tests.system.deployment.syntax`` compares them with the
programs. Nothing here knows which files hpcvirt writes.
"""

import configparser
import fnmatch
import re
import shlex
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import cpuset

#: Section and option of a unit -> its values in order.
Unit = Mapping[tuple[str, str], Sequence[str]]
#: The key, the attribute, the operator and the value of a term of a rule.
Term = tuple[str, str, str, str]

_GRUB = re.compile(
    r'[ \t]*(?:#.*)?\n'
    r'|[ \t]*GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX'
    r'((?:[ ](?:[^"$`\\\r]|\\")*)?)"(?:[ \t]+#.*|[ \t]*)\n')
#: What systemd replaces in words, or takes for the end of a command.
_EXPANDED = re.compile(r'[\\%$]')
_SYSCTL_NAME = re.compile(r'-?(\w+(?:[.][\w-]+)+|\w+(?:/[\w-]+)+)', re.ASCII)
_MODULE_TERM = re.compile(r'[\w-]+(?:=[\w.,:-]*)?', re.ASCII)
_TMPFILE = re.compile(
    r'w!?\s+((?:/[\w-]+)+)(?:\s+-){4}\s+([\w.-]+)', re.ASCII)
_UDEV_TERM = re.compile(r'\s*([A-Z]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*'
                        r'"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
#: What rules may compare, and what they may set with which operators.
_MATCHED = {('ACTION', ''), ('SUBSYSTEM', ''), ('KERNEL', ''),
            ('KERNELS', ''), ('SUBSYSTEMS', ''), ('ATTR', 'type')}
_ASSIGNED = {('ATTR', 'sriov_numvfs'): ('=',), ('RUN', ''): ('=', '+=')}


def _refuse(where: str, line: str) -> exception.InvalidInput:
    return exception.InvalidInput(
        where, f'has {line[:60]!r}, which is not understood')


def read_grub(text: str, where: str) -> str:
    """Read what a script of a shell appends to GRUB_CMDLINE_LINUX."""
    text = text.rstrip('\n') + '\n'
    found = ''
    position = 0
    while position < len(text):
        match = _GRUB.match(text, position)
        if match is None:
            raise _refuse(where, text[position:].partition('\n')[0])
        found += (match[1] or '').replace('\\"', '"')
        position = match.end()
    return found


def _join_lines(text: str, comments: str, joint: str) -> Iterator[str]:
    """Join each line that ends with a backslash with the next one.

    A comment is skipped, also among lines that are joined.

    :param joint: what takes the place of the backslash
    """
    kept = ''
    for line in text.split('\n'):
        own = line.strip()
        if own and own[0] in comments:
            continue
        kept += line
        slashes = len(kept) - len(kept.rstrip('\\'))
        if slashes % 2:
            kept = kept[:-1] + joint
            continue
        yield kept
        kept = ''
    yield kept


def read_unit(text: str, where: str) -> Unit:
    """Read a unit of systemd."""
    found: dict[tuple[str, str], list[str]] = {}
    section = ''
    for joined in _join_lines(text, '#;', ' '):
        line = joined.strip()
        if not line:
            continue
        if line.startswith('[') and line.endswith(']'):
            section = line[1:-1]
            continue
        option, equals, value = line.partition('=')
        if not equals or not section:
            raise exception.InvalidInput(
                where, f'has the line {line!r}, which systemd ignores')
        found.setdefault((section, option.strip()), []).append(value.strip())
    return found


def drop_former(values: Sequence[str]) -> list[str]:
    """Return the values after the last empty one, which takes back others."""
    found: list[str] = []
    for value in values:
        if value:
            found.append(value)
        else:
            found.clear()
    return found


def read_names(value: str, where: str) -> list[str]:
    """Read the names of units; quotes would be parts of them."""
    if re.search('["\']', value) or _EXPANDED.search(value):
        raise _refuse(where, value)
    return value.split()


def read_words(value: str, where: str) -> list[str]:
    """Divide a value of systemd into words, which may be in quotes."""
    try:
        found = shlex.split(value)
    except ValueError:
        found = []
    if not found or _EXPANDED.search(value):
        raise _refuse(where, value)
    return found


def read_cpus(text: str, where: str) -> frozenset[int]:
    """Read a list of CPUs, which have spaces or commas between them."""
    if '^' in text:
        raise exception.InvalidInput(
            where, f'has {text!r}, and only Nova knows ^')
    return cpuset.parse(re.sub(r'[\s,]+', ',', text.strip()), where)


def read_environment(unit: Unit, name: str, where: str) -> str | None:
    """Read a variable that a service gets from a file that has no others."""
    found = None
    for section, option in unit:
        if (section, option) != ('Service', 'Environment'):
            raise _refuse(where, option)
    for value in drop_former(unit.get(('Service', 'Environment'), ())):
        for word in read_words(value, where):
            own, equals, text = word.partition('=')
            if not equals:
                raise _refuse(where, word)
            if own == name:
                found = text
    return found


def read_sysctls(text: str, where: str) -> dict[str, str]:
    """Read the values of /proc/sys, by their names with dots."""
    found = {}
    for line in text.split('\n'):
        own = line.strip()
        if not own or own[0] in '#;':
            continue
        name, equals, value = own.partition('=')
        match = _SYSCTL_NAME.fullmatch(name.strip())
        if match is None or not equals:
            raise _refuse(where, own)
        found[match[1].replace('/', '.')] = value.strip()
    return found


def read_modules(text: str, where: str) -> dict[str, str]:
    """Read the options of modules: MODULE.OPTION -> value."""
    found = {}
    # A comment that ends with a backslash takes the next line with it.
    for joined in _join_lines(text, '', ''):
        line = joined.strip(' \t')
        if not line or line.startswith('#'):
            continue
        command, *terms = re.split('[ \t]+', line)
        if command != 'options' or len(terms) < 2:
            raise _refuse(where, line)
        if not all(map(_MODULE_TERM.fullmatch, terms)):
            raise _refuse(where, line)
        module = terms[0].replace('-', '_')
        for term in terms[1:]:
            name, _, value = term.partition('=')
            found[f'{module}.{name}'] = value
    return found


def read_tmpfiles(text: str, where: str) -> dict[str, str]:
    """Read what systemd-tmpfiles writes at boot: path -> text."""
    found: dict[str, str] = {}
    for line in text.split('\n'):
        own = line.strip()
        if not own or own.startswith('#'):
            continue
        match = _TMPFILE.fullmatch(own)
        if match is None or match[1] in found:
            raise _refuse(where, own)
        found[match[1]] = match[2]
    return found


def read_profile(text: str, where: str) -> dict[str, str]:
    """Read a profile of TuneD: SECTION.OPTION -> value."""
    # As tuned.profiles.loader makes its parser.
    parser = configparser.RawConfigParser(
        delimiters=('=',), inline_comment_prefixes=('#',), strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(text)
    except configparser.Error:
        raise exception.InvalidInput(
            where, 'is no profile that TuneD takes') from None
    found = {}
    for section in parser.sections():
        for option, value in parser.items(section):
            if '$' in value:
                raise _refuse(where, value)
            found[f'{section}.{option}'] = value
    return found


def read_rules(text: str, where: str) -> list[list[Term]]:
    """Read rules of udev that compare and set what is known here."""
    rules = []
    for line in _join_udev_lines(text):
        terms: list[Term] = []
        position = 0
        while position < len(line):
            match = _UDEV_TERM.match(line, position)
            if match is None:
                raise exception.InvalidInput(
                    where, f'has a rule that udev refuses: {line[:60]!r}')
            term = match[1], match[2] or '', match[3], match[4]
            if not _is_known(term):
                raise _refuse(where, match[0])
            terms.append(term)
            position = match.end()
        if terms:
            rules.append(terms)
    return rules


def _join_udev_lines(text: str) -> Iterator[str]:
    """Join lines as udev does, which drops the spaces before each."""
    kept = ''
    for line in text.split('\n'):
        own = line.lstrip()
        if own.startswith('#'):
            continue
        kept += own
        if kept.endswith('\\'):
            kept = kept[:-1]
            continue
        yield kept.rstrip()
        kept = ''


def _is_known(term: Term) -> bool:
    key, attribute, operator, value = term
    if operator in ('==', '!='):
        return bool((key, attribute) in _MATCHED and value
                    and not re.search(r'\\|\[\^', value))
    return operator in _ASSIGNED.get((key, attribute), ())


def apply_rules(rules: Iterable[Iterable[Term]],
                event: Mapping[tuple[str, str], str],
                ) -> dict[tuple[str, str], str]:
    """Return what rules set at an event; later ones replace earlier."""
    found: dict[tuple[str, str], str] = {}
    for rule in rules:
        assigned = {}
        for key, attribute, operator, value in rule:
            if operator not in ('==', '!='):
                assigned[key, attribute] = value.replace('\\"', '"')
                continue
            given = event.get((key, attribute), '')
            matches = any(fnmatch.fnmatchcase(given, each)
                          for each in value.split('|'))
            if matches != (operator == '=='):
                break
        else:
            found.update(assigned)
    return found
