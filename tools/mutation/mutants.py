# SPDX-License-Identifier: Apache-2.0

"""List the deliberate faults of a module, made by Cosmic Ray.

Of its operators those are used that make the faults of a tired author: a
comparison that is off by one, a wrong sign, a condition that is turned round,
a bound that is one more or one less, an exception that is not caught, a loop
that is left too early. One is added, since nothing else removes the acting
step of a procedure: a call whose result nobody uses is left out.

What users cannot notice is left out: annotations, decorators, ``strict`` of
``zip``, and the numbers by which the words of a message are cut or rounded.
So are the values of limits, whose names begin with ``MAX_`` or ``MIN_``: they
are a choice, and a test could only repeat it. That a limit holds is tested.
"""

import ast
import collections
import dataclasses
import functools
import hashlib
import pathlib
import re
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray import ast as trees
from cosmic_ray import mutating
from cosmic_ray import plugins
from cosmic_ray.operators import operator

#: Position in a source: line, from 1, and column, from 0.
Position = tuple[int, int]

_LIMIT = re.compile('_?(MAX|MIN)_')

#: Operators of Cosmic Ray that are taken as they are.
_WHOLE = frozenset({
    'AddNot', 'ReplaceTrueWithFalse', 'ReplaceFalseWithTrue',
    'ReplaceAndWithOr', 'ReplaceOrWithAnd', 'ReplaceBreakWithContinue',
    'ReplaceContinueWithBreak', 'NumberReplacer',
    'ZeroIterationForLoop', 'ReplaceUnaryOperator_Delete_Not',
    'ReplaceUnaryOperator_Delete_USub', 'ReplaceUnaryOperator_USub_UAdd'})
#: One mistake for each sign: all pairs of signs would be 188 operators.
_SIGNS = frozenset(
    [f'ReplaceBinaryOperator_{pair}' for pair in (
        'Add_Sub', 'Sub_Add', 'Mul_Div', 'Div_Mul', 'FloorDiv_Mul',
        'Mod_FloorDiv', 'Pow_Mul', 'LShift_RShift', 'RShift_LShift',
        'BitOr_BitAnd', 'BitAnd_BitOr', 'BitXor_BitAnd')]
    + [f'ReplaceComparisonOperator_{pair}' for pair in (
        'Eq_NotEq', 'NotEq_Eq', 'Lt_LtE', 'LtE_Lt', 'Gt_GtE', 'GtE_Gt',
        'Lt_Gt', 'Gt_Lt', 'LtE_GtE', 'GtE_LtE', 'Is_IsNot', 'IsNot_Is')])


class DropCall(operator.Operator):
    """Leaves out a call whose result is not used, except of logs."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position,
                                                              Position]]:
        if self._is_call(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        return parso.parse(node.get_first_leaf().prefix + 'pass')

    @staticmethod
    def _is_call(node: Any) -> bool:
        if (node.type not in ('atom_expr', 'power')
                or node.parent.type != 'simple_stmt'):
            return False
        last = node.children[-1]
        return (last.type == 'trailer' and last.children[0].value == '('
                and not node.get_code().strip().startswith('LOG.'))

    @classmethod
    def examples(cls) -> tuple[operator.Example, ...]:
        return (operator.Example('f(x)', 'pass'),)


class CatchNothing(operator.Operator):
    """An operator that lets a handler of exceptions catch nothing.

    ExceptionReplacer of Cosmic Ray fails for exceptions of other modules.
    """

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position,
                                                              Position]]:
        if node.type == 'except_clause':
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        nothing = parso.parse('()').children[0]
        nothing.get_first_leaf().prefix = ' '
        node.children[1] = nothing
        return node

    @classmethod
    def examples(cls) -> tuple[operator.Example, ...]:
        return (operator.Example('try: f()\nexcept a.B as c: pass',
                                 'try: f()\nexcept () as c: pass'),)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a deliberate fault can be made.

    :ivar path: file of the module, below the root of the repository
    :ivar line: number of the line
    :ivar text: the line
    :ivar fault: name of the operator
    :ivar occurrence: number of the place among those of the operator in the
        module
    :ivar turn: number of the place among those of the operator in equal lines
    """

    path: str
    line: int
    text: str
    fault: str
    occurrence: int
    turn: int

    @property
    def module(self) -> str:
        """The name of the module."""
        return self.path.removesuffix('.py').replace('/', '.')

    def draw(self, seed: str) -> str:
        """Return a digest by whose order places are drawn.

        It depends on nothing but the line, so that a change elsewhere in the
        module does not draw others.
        """
        return hashlib.sha256('\0'.join((
            seed, self.path, self.text, self.fault,
            str(self.turn))).encode()).hexdigest()

    def change(self) -> str:
        """Return the module with the fault."""
        source = pathlib.Path(self.path).read_text(encoding='utf-8')
        return mutating.mutate_code(
            source, _list_operators()[self.fault](), self.occurrence) or source


def find_places(path: pathlib.Path) -> list[Place]:
    """List all places of a module, in the order of their lines."""
    source = path.read_text(encoding='utf-8')
    lines = source.splitlines()
    nodes = list(trees.ast_nodes(trees.get_ast(source)))
    tree = ast.parse(source)
    left_out = [_locate(node) for node in (
        *_find_annotations(tree), *_find_limits(tree))]
    turns: collections.Counter[tuple[str, str]] = collections.Counter()
    found = []
    for fault, kind in _list_operators().items():
        places = []
        for node in nodes:
            places += [(node, begin)
                       for begin, _ in kind().mutation_positions(node)]
        for occurrence, (node, begin) in enumerate(places):
            if any(first <= begin < last for first, last in left_out) or (
                    fault == 'NumberReplacer' and _is_in(node, 'fstring')):
                continue
            if _is_in(node, 'decorator') or _is_strict(node):
                continue
            text = lines[begin[0] - 1].strip()
            found.append(Place(str(path), begin[0], text, fault, occurrence,
                               turns[text, fault]))
            turns[text, fault] += 1
    return sorted(found, key=lambda each: (each.line, each.fault,
                                           each.occurrence))


def draw(places: Iterable[Place], count: int, seed: str) -> list[Place]:
    """Draw a sample, which is the same as long as the lines are."""
    return sorted(places, key=lambda each: each.draw(seed))[:count]


@functools.cache
def _list_operators() -> dict[str, type[operator.Operator]]:
    """Return the operators by their names."""
    found = {'DropCall': DropCall, 'CatchNothing': CatchNothing}
    for name in plugins.operator_names():
        short = name.rpartition('/')[2]
        if short in _WHOLE | _SIGNS:
            found[short] = plugins.get_operator(name)
    if missing := (_WHOLE | _SIGNS) - found.keys():
        raise LookupError(f'Cosmic Ray has no {", ".join(sorted(missing))}')
    return found


def _is_in(node: Any, kind: str) -> bool:
    """Whether a node is a part of another one, for example a decorator."""
    while node is not None and node.type != kind:
        node = node.parent
    return node is not None


def _is_strict(node: Any) -> bool:
    """Whether a node is the value of ``zip(..., strict=True)``."""
    return (node.parent is not None and node.parent.type == 'argument'
            and node.parent.children[0].get_code().strip() == 'strict')


def _find_annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the annotations of a module."""
    for node in ast.walk(tree):
        for name in ('annotation', 'returns'):
            found = getattr(node, name, None)
            if isinstance(found, ast.expr):
                yield found


def _find_limits(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the values of the limits of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(target, ast.Name) and _LIMIT.match(target.id):
                yield node.value


def _locate(node: ast.expr) -> tuple[Position, Position]:
    """Return where an expression begins and ends."""
    return ((node.lineno, node.col_offset),
            (node.end_lineno or 0, node.end_col_offset or 0))
