# SPDX-License-Identifier: Apache-2.0

"""The format ``table`` of rows: cliff's commands, drawn as all our tables."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import TextIO

from cliff import columns
from cliff.formatters import base

from hpcvirt import text_table
from hpcvirt.cmd import output


class TableFormatter(base.ListFormatter):
    """A formatter that fits the rows to the terminal, without options."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: the terminal says how wide a table may be."""

    def emit_list(self, column_names: Sequence[str],
                  data: Iterable[Sequence[Any]], stdout: TextIO,
                  _parsed_args: argparse.Namespace) -> None:
        """Draw the rows."""
        rows = list(data)
        numbers = [name for place, name in enumerate(column_names)
                   if rows and isinstance(rows[0][place], int | float)]
        stdout.write(text_table.draw(
            column_names, [list(map(_make_text, row)) for row in rows],
            numbers, output.width()))


def _make_text(cell: Any) -> str:
    if isinstance(cell, columns.FormattableColumn):
        cell = cell.human_readable()
    return '-' if cell is None else str(cell)
