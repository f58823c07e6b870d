# SPDX-License-Identifier: Apache-2.0

"""Parse the output of a benchmark into figures, or into a reason for refusal.

A parser is a module with ``KEYS``, the parameters that ``--expect`` may name,
and ``read(text, expect) -> Reading``, which raises ``InvalidOutput``. It has
no state, reads no files and never crashes: any bytes result in an Outcome.
"""

import dataclasses
import importlib
import math
import pkgutil
from collections.abc import Callable
from collections.abc import Mapping

from hpcvirt.bench import parsers
from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text


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


def parse(name: str, raw: bytes, expect: Mapping[str, str],
          exit_status: int | None = None,
          where: str | None = None) -> outcome.Outcome:
    """Parse one output.

    :param name: name of the parser, a key of :data:`PARSERS`
    :param raw: the unchanged output; if it is larger than
        :data:`hpcvirt.bench.parsers.text.LIMIT_BYTES`, its beginning suffices
    :param expect: the requested parameters by name or alias
    :param exit_status: exit status of the program, None if it is unknown
    :param where: the subject of an error, the parser by default
    :raises InvalidInput: if ``expect`` is invalid, never because of the output
    """
    parser = PARSERS[name]
    wanted = expectation.normalize(parser.keys, expect, where or name)
    try:
        found = _read(parser, _decode(raw), wanted)
    except reading.InvalidOutput as exc:
        return outcome.Outcome(
            valid=False, reason=_explain(parser, raw, wanted, exc))
    reason = expectation.find_mismatch(parser.keys, wanted, found)
    if reason is None and exit_status not in (None, found.exit_status):
        reason = (f'the program ended with exit status {exit_status}, '
                  f'expected {found.exit_status}')
    return outcome.Outcome(
        valid=reason is None, reason=reason,
        metrics={} if reason else found.metrics, parameters=found.parameters,
        remarks=() if reason else found.remarks,
        kinds={key.name: key.kind for key in parser.keys
               if key.name in found.parameters})


def _decode(raw: bytes) -> str:
    reading.require(
        len(raw) <= text.LIMIT_BYTES,
        f'the output is larger than {text.LIMIT_BYTES >> 20} MiB')
    words = text.clean(raw)
    if words.lstrip().startswith('{'):
        return words
    return text.drop_long_lines(words)


def _explain(parser: Parser, raw: bytes, wanted: Mapping[str, str],
             refusal: reading.InvalidOutput) -> str:
    """Return the reason of a refusal, or the prefixes that caused it.

    The parser finds no line of an output that a logger wrote, or that is
    indented, and so seems to be incomplete. Without the prefixes, it reads
    the output, or refuses it with a reason that is about its content.
    """
    if len(raw) > text.LIMIT_BYTES:
        return refusal.reason
    stripped = text.strip_prefixes(_decode(raw))
    if stripped is None:
        return refusal.reason
    prefix, words = stripped
    try:
        _read(parser, words, wanted)
    except reading.InvalidOutput as exc:
        is_about_content = not isinstance(exc, reading.Missing)
        was_missing = isinstance(refusal, reading.Missing)
        if not (is_about_content and was_missing):
            return refusal.reason
    if prefix.isspace():
        return ('each line is indented, which the program does not do: give '
                'its output without the indentation')
    return (f'each line has a prefix such as "{text.quote(prefix)}", which is '
            'not from the program: give its output without the prefixes')


def _read(parser: Parser, words: str,
          wanted: Mapping[str, str]) -> reading.Reading:
    reading.require(words.strip(), 'the output is empty')
    try:
        found = parser.read(words, wanted)
        for key in parser.keys:
            if key.name in found.parameters and (
                    key.kind is outcome.ParameterType.WHOLE):
                reading.whole(found.parameters[key.name], key.name)
    except reading.Missing as exc:
        complaint = text.complaint(words)
        if complaint is None:
            raise
        raise reading.Missing(
            f'{exc.reason}; the output says: {complaint}') from exc
    for name, metric in found.metrics.items():
        reading.require(math.isfinite(metric.value) and metric.value > 0,
                        f'{name} is {metric.value}')
    reading.require(found.metrics, 'the output has no figure')
    return found


#: The parsers by the names of their modules, to which definitions refer.
PARSERS = _find()
