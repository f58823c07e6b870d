# SPDX-License-Identifier: Apache-2.0

"""Read an output whose figures stand on lines that a definition describes.

The parser ``pattern`` of a definition has no format of its own: the keys
``pattern``, ``required_lines``, ``forbidden_lines`` and ``echo_patterns`` of
the definition say what the lines are.
"""

from hpcvirt.bench.model import line_pattern
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts


def keys(rules: line_pattern.LineRules,
         ) -> tuple[expectation.ParameterKey, ...]:
    """Return the keys of the parameters that the lines print."""
    return tuple(expectation.word(name, 'printed by the program')
                 for name in rules.parameters)


def read(rules: line_pattern.LineRules, text: str) -> reading.Reading:
    """Read an output.

    :raises InvalidOutput: if it is cut off, has a line that it must not have,
        or has no figure or several
    """
    lines = [line for line in text.split('\n')
             if len(line) <= line_pattern.MAX_LINE]
    _refuse_forbidden(rules, lines)
    # Without a newline, the last line may be cut off.
    complete = lines[:-1]
    for wanted in rules.required:
        reading.require(
            any(wanted in line for line in complete),
            f'no complete line with "{texts.quote(wanted)}": the output is '
            'not complete', reading.Missing)
    metrics = {}
    for name, pattern in rules.figures.items():
        metrics[name] = reading.figure(
            _find_word(pattern, complete, name), name)
    return reading.Reading(metrics, {
        name: _find_word(pattern, complete, name)
        for name, pattern in rules.parameters.items()})


def _refuse_forbidden(rules: line_pattern.LineRules,
                      lines: list[str]) -> None:
    forbidden = [words.casefold() for words in rules.forbidden]
    for line in lines:
        folded = line.casefold()
        if any(words in folded for words in forbidden):
            raise reading.InvalidOutput(texts.quote(line))


def _find_word(pattern: str, lines: list[str], name: str) -> str:
    """Return what a pattern finds, the same on each line that it fits."""
    compiled = line_pattern.compile_pattern(pattern, name)
    found: dict[str, None] = {}
    for line in lines:
        match = compiled.fullmatch(line.strip())
        if match is not None:
            found[match[1]] = None
    reading.require(found, f'no complete line of {name}: the output is not '
                    'complete, or has another form', reading.Missing)
    words = [texts.quote(word)[:40] for word in found]
    reading.require(len(words) == 1, f'{len(words)} different values of '
                    f'{name}: {", ".join(words[:3])}')
    return next(iter(found))
