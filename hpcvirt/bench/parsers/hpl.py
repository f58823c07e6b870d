# SPDX-License-Identifier: Apache-2.0

"""Read HPL 2 of netlib, Intel and NVIDIA: one problem of one size."""

from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import hpcc
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('N', 'order of the matrix', 'order'),
    expectation.whole('NB', 'block size', 'block'),
    expectation.whole('P', 'rows of the process grid'),
    expectation.whole('Q', 'columns of the process grid'),
)

_COLUMNS = reading.line(r'T/V +N +NB +P +Q +Time +(\w)flops\b')
_PASSED = reading.line(r' +(\d+) tests completed and passed')
_FAILED = reading.line(
    r' +[1-9]\d* tests (?:completed and failed|skipped because).*$')
_END = reading.line(r'End of Tests\.')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output or ``HPL.out``."""
    reading.refuse(text, _FAILED)
    reading.find(_END, text, 'no "End of Tests.": the output is not complete')
    checks = hpcc.HPL_CHECK.findall(text)
    rows = hpcc.HPL_ROW.findall(text)
    reading.require(
        {*checks} == {'PASSED'} and len(rows) == 1
        and _PASSED.findall(text) == ['1'],
        f'{len(rows)} results and the residual checks {", ".join(checks)}, '
        'not one result that passed')
    order, block, grid_rows, grid_columns, _, gflops = rows[0]
    columns = _COLUMNS.search(text)
    return reading.Reading(
        {'gflops': reading.figure(gflops, 'Gflops')},
        {'N': order, 'NB': block, 'P': grid_rows, 'Q': grid_columns},
        units={'gflops': f'{columns[1]}flop/s'} if columns else {})
