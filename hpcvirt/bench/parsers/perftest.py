# SPDX-License-Identifier: Apache-2.0

"""Read perftest 4 to 24: ``ib_write_bw``, ``ib_write_lat`` and their kin.

The columns depend on the test, and the units on its options. Latency that is
measured for a duration (``-D``) has the mean, but no median.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('test', 'such as write_bw, read_lat or send_bibw'),
    *expectation.SIZES,
    expectation.word('statistic', 'mean, if -D measured the latency'),
    expectation.word('gpu', 'that has the messages, such as cuda=0, or none'),
)

_ONLY_MEAN = 'the latency is the mean, since the output has no median'
#: Column to Gbit/s: MB and MiB are both 2^20 bytes.
_GBIT_S = {'BW average[Gb/sec]': 1.0, 'BW average[MB/sec]': 2 ** 20 * 8e-9,
           'BW average[MiB/sec]': 2 ** 20 * 8e-9}

_TITLE = reading.line(
    r' *(?:RDMA_)?(Write|Read|Send)( Bidirectional)? (BW|Latency) Test')
#: The columns, the rows, and the line below, without which rows are missing.
_TABLE = reading.line(r' *(#bytes +#iter.*)\n((?:[^#\n-].*\n)+)-{40,}$')
_COLUMN = re.compile(r'#\w+|tps average|(?:[\w.%]+ )?[\w.%]+\[\S+?\]')
_MEDIAN = 't_typical[usec]'
_MEAN = 't_avg[usec]'
_ROW = reading.line(r' *(\d+[ \t]+\d+[ \t].*)$')
#: The GPU with the messages: of CUDA and alike, of ROCm.
_GPU = reading.line(r'\[pid = \d+, dev = (\d+)\] device name = .*\n'
                    r'creating (\w+) Ctx')
_ROCM = reading.line(r'Using ROCm Device with ID: (\d+),')
_DMABUF = reading.line(r'using DMA-BUF for GPU buffer')
_FAILED = reading.line(r'.*(?:Completion with error|Failed status).*$')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of the client or of the server."""
    reading.refuse(text, _FAILED)
    title = reading.find(_TITLE, text, 'no title of a test')
    reading.check_single(text, _TITLE)
    table = reading.find(_TABLE, text, 'no complete table: the output is not '
                         'complete, or of the server and the client')
    columns = _COLUMN.findall(table[1])
    rows = [row.split() for row in _ROW.findall(table[2])]
    reading.require(rows and {len(row) for row in rows} == {len(columns)},
                    'no rows, or a row is truncated')
    sizes = reading.read_sizes(row[0] for row in rows)
    metrics = {}
    column = next((column for column in columns if column in _GBIT_S), '')
    latency = _MEDIAN if _MEDIAN in columns else _MEAN
    if title[3] == 'Latency':
        reading.require(latency in columns,
                        f'no column {_MEDIAN} or {_MEAN}')
    else:
        reading.require(column, 'no column "BW average"')
    for size, row in zip(sizes, rows, strict=True):
        cells = dict(zip(columns, row, strict=True))
        if title[3] == 'Latency':
            name = f'latency_us[{size}]'
            metrics[name] = reading.figure(cells[latency], name)
            continue
        name = f'bandwidth_gbit_s[{size}]'
        metrics[name] = reading.figure(cells[column], name) * _GBIT_S[column]
    kind = 'bw'
    if title[3] == 'Latency':
        kind = 'lat'
    elif title[2]:
        kind = 'bibw'
    parameters = {'test': f'{title[1].lower()}_{kind}',
                  'gpu': _find_gpu(text), **reading.describe_sizes(sizes)}
    remarks = reading.check_ends(sizes, expect, 2, 8388608)
    if kind == 'lat' and latency == _MEAN:
        parameters['statistic'] = 'mean'
        remarks = (*remarks, _ONLY_MEAN)
    return reading.Reading(metrics, parameters, remarks=remarks)


def _find_gpu(text: str) -> str:
    found = _GPU.search(text)
    rocm = _ROCM.search(text)
    if found is not None:
        gpu = f'{found[2].lower()}={found[1]}'
    elif rocm is not None:
        gpu = f'rocm={rocm[1]}'
    else:
        return 'none'
    return f'{gpu},dmabuf' if _DMABUF.search(text) else gpu
