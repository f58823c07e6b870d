# SPDX-License-Identifier: Apache-2.0

"""Parse the output of a benchmark into figures, or into a reason for refusal.

A parser is a module with ``KEYS``, the parameters that ``--expect`` may name,
and ``read(text, expect) -> Reading``, which raises ``InvalidOutput``. It has
no state, reads no files and never crashes: any bytes result in an Outcome.
It finds names and numbers. Their unit and direction are those that the
definition of the benchmark has.
"""

import dataclasses
import functools
import importlib
import math
import pkgutil
from collections.abc import Callable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import plug_ins
from hpcvirt import words
from hpcvirt.bench import parsers
from hpcvirt.bench.model import line_pattern
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import output_format
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import pattern
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

#: The entry points of other packages: a module like those of this package.
GROUP = 'hpcvirt.bench.parsers'


@dataclasses.dataclass(frozen=True, slots=True)
class Parser:
    """The output format of a program.

    :ivar read: turns a text and the expected parameters, normalized, into a
        Reading
    """

    keys: tuple[expectation.ParameterKey, ...]
    read: Callable[[str, Mapping[str, str]], reading.Reading]


def _find() -> dict[str, Parser]:
    """Find the parsers: the modules of this package with ``KEYS``."""
    modules = {
        entry.name: importlib.import_module(f'{parsers.__name__}.{entry.name}')
        for entry in pkgutil.iter_modules(parsers.__path__)}
    return {name: Parser(module.KEYS, module.read)
            for name, module in modules.items() if hasattr(module, 'KEYS')}


def parse(form: output_format.OutputFormat, raw: bytes,
          expect: Mapping[str, str],
          exit_status: int | None = None) -> outcome.Outcome:
    """Parse one output.

    :param form: what the definition of the benchmark says about it
    :param raw: the unchanged output; if it is larger than
        :data:`hpcvirt.bench.parsers.text.LIMIT_BYTES`, its beginning suffices
    :param expect: the requested parameters by name or alias
    :param exit_status: exit status of the program, None if it is unknown
    :raises InvalidInput: if ``expect`` is invalid or there is no such parser,
        never because of the output
    """
    parser = get(form.parser, form.lines)
    wanted = expectation.normalize(parser.keys, expect, form.benchmark)
    try:
        found = _read(parser, _decode(raw), wanted)
    except reading.InvalidOutput as exc:
        return outcome.Outcome(
            valid=False, reason=_explain(parser, raw, wanted, exc))
    reason = expectation.find_mismatch(parser.keys, wanted, found)
    if reason is None and exit_status not in (None, found.exit_status):
        reason = (f'the program ended with exit status {exit_status}, '
                  f'expected {found.exit_status}')
    metrics: dict[str, outcome.Metric] = {}
    # An output of another benchmark has other parameters and other figures:
    # the parameters say it better.
    if reason is None:
        try:
            metrics = _define(found, form)
        except reading.InvalidOutput as exc:
            reason = exc.reason
    return outcome.Outcome(
        valid=reason is None, reason=reason, metrics=metrics,
        parameters=found.parameters,
        remarks=() if reason else found.remarks,
        kinds={key.name: key.kind for key in parser.keys
               if key.name in found.parameters})


def _define(found: reading.Reading,
            form: output_format.OutputFormat) -> dict[str, outcome.Metric]:
    """Give each figure the unit and the direction of its definition.

    A definition need not have all figures that its parser finds.

    :raises InvalidOutput: if it has none of them, or if the output prints
        another unit
    """
    for figure in form.figures:
        unit = found.units.get(figure.name, figure.unit)
        reading.require(
            unit == figure.unit,
            f'{figure.name} is in {texts.quote(unit)[:40]}, but in '
            f'{figure.unit} in the definition of {form.benchmark}')
    metrics = {}
    for name, value in found.metrics.items():
        definition = metric_definition.find(form.figures, name)
        if definition is not None:
            metrics[name] = outcome.Metric(value, definition.unit,
                                           definition.direction)
    reading.require(
        metrics, f'the parser {form.parser} found '
        f'{texts.quote(", ".join(found.metrics))[:60]}, which the definition '
        f'of {form.benchmark} does not have')
    return metrics


def _decode(raw: bytes) -> str:
    reading.require(
        len(raw) <= texts.LIMIT_BYTES,
        f'the output is larger than {texts.LIMIT_BYTES >> 20} MiB')
    content = texts.clean(raw)
    if content.lstrip().startswith('{'):
        return content
    return texts.drop_long_lines(content)


def _explain(parser: Parser, raw: bytes, wanted: Mapping[str, str],
             refusal: reading.InvalidOutput) -> str:
    """Return the reason of a refusal, or the prefixes that caused it.

    The parser finds no line of an output that a logger wrote, or that is
    indented, and so seems to be incomplete. Without the prefixes, it reads
    the output, or refuses it with a reason that is about its content. Some
    programs write logs: what is refused for its content has that reason.
    """
    if not isinstance(refusal, reading.Missing):
        return refusal.reason
    stripped = texts.strip_prefixes(_decode(raw))
    if stripped is None:
        return refusal.reason
    prefix, content = stripped
    try:
        _read(parser, content, wanted)
    except reading.InvalidOutput as exc:
        if isinstance(exc, reading.Missing):
            return refusal.reason
    if prefix.isspace():
        return ('each line is indented, which the program does not do: give '
                'its output without the indentation')
    shown = texts.quote(prefix)
    return (f'each line has a prefix such as "{shown}", which is not from the '
            'program: give its output without the prefixes')


def _read(parser: Parser, content: str,
          wanted: Mapping[str, str]) -> reading.Reading:
    reading.require(content.strip(), 'the output is empty')
    try:
        found = parser.read(content, wanted)
        for key in parser.keys:
            if key.name in found.parameters and (
                    key.kind is outcome.ParameterType.WHOLE):
                reading.whole(found.parameters[key.name], key.name)
    except reading.Missing as exc:
        complaint = texts.complaint(content)
        if complaint is None:
            raise
        raise reading.Missing(
            f'{exc.reason}; the output says: {complaint}') from exc
    for name, value in found.metrics.items():
        reading.require(math.isfinite(value) and value > 0,
                        f'{name} is {value}')
    reading.require(found.metrics, 'the output has no figure')
    return found


def get(name: str, lines: line_pattern.LineRules | None = None) -> Parser:
    """Return a parser of hpcvirt, or one that another package adds.

    The parsers of hpcvirt take precedence.

    :param lines: the lines that a definition describes; it then needs no
        other parser
    :raises InvalidInput: if there is no such parser
    """
    if lines is not None:
        return Parser(pattern.keys(lines),
                      lambda text, _expect: pattern.read(lines, text))
    if name in PARSERS:
        return PARSERS[name]
    return find_added(name)


@functools.cache
def find_added(name: str) -> Parser:
    """Return the parser of another package."""
    found = plug_ins.find(GROUP, name)
    if found is None:
        known = [*PARSERS, *plug_ins.names(GROUP)]
        raise exception.InvalidInput(
            name, 'no such parser, neither of hpcvirt nor an entry point of '
            f'{GROUP}{words.nearest(name, known)}')
    keys = getattr(found, 'KEYS', None)
    if not isinstance(keys, tuple) or not all(
            isinstance(key, expectation.ParameterKey) for key in keys):
        raise exception.InvalidInput(
            f'parser {name}', 'has no KEYS, a tuple of ParameterKey')
    if not callable(getattr(found, 'read', None)):
        raise exception.InvalidInput(f'parser {name}', 'has no function read')
    return Parser(keys, functools.partial(_read_safely, name, found.read))


def _read_safely(name: str, read: Callable[[str, Mapping[str, str]], object],
                 text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Call a parser of another package, which may fail in any way."""
    try:
        found = read(text, expect)
        if not isinstance(found, reading.Reading):
            raise reading.InvalidOutput(
                f'the parser {name} returned no Reading')
        for value in found.metrics.values():
            # It raises an error if it gets no number.
            math.isfinite(value)
        words_found = (*found.metrics, *found.parameters.values(),
                       *found.units.values())
        reading.require(
            all(isinstance(word, str) for word in words_found),
            f'the parser {name} returned a name, a parameter or a unit that '
            'is no text')
    except reading.InvalidOutput:
        raise
    except Exception as exc:
        raise reading.InvalidOutput(texts.quote(
            f'the parser {name} failed ({type(exc).__name__}: {exc})'
        )) from exc
    return found


#: The parsers by the names of their modules, to which definitions refer.
PARSERS = _find()
