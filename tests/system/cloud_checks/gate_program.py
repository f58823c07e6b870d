# SPDX-License-Identifier: Apache-2.0

"""Stand in for the programs of the quick gate on a simulated host.

It is called as ``mpirun``, ``hpcc`` or ``fio``, and prints what these print,
with the figures of a machine whose speed the file ``speed`` beside it says: 1
is that of its class. The figures of two runs differ by up to half a percent.
"""

import json
import pathlib
import random
import sys

HERE = pathlib.Path(sys.argv[0]).parent

#: What HPCC prints about sizes, in the order of hpccinf.txt.
_SIZES = ('HPL_N', 'HPL_NB', 'HPL_nprow', 'HPL_npcol')
_LINES = (5, 7, 10, 11)

#: The figures of HPCC. Those of the class are 1, each in its unit.
_FIGURES = ['HPL_Tflops', 'PTRANS_GBs', 'MPIFFT_Gflops']
for _which in ('Star', 'Single'):
    _FIGURES += [f'{_which}DGEMM_Gflops', f'{_which}FFT_Gflops']
    for _what in ('Copy', 'Scale', 'Add', 'Triad'):
        _FIGURES.append(f'{_which}STREAM_{_what}')
for _which in ('Star', 'Single', 'MPI'):
    _FIGURES += [f'{_which}RandomAccess_GUPs',
                 f'{_which}RandomAccess_LCG_GUPs']
for _which in ('MinPingPong', 'AvgPingPong', 'MaxPingPong',
               'NaturallyOrderedRing', 'RandomlyOrderedRing'):
    _FIGURES += [f'{_which}Latency_usec', f'{_which}Bandwidth_GBytes']


def main() -> None:
    """Play the program by whose name this one is called."""
    speed = float((HERE / 'speed').read_text())
    if pathlib.Path(sys.argv[0]).name == 'fio':
        play_fio(speed)
    elif sys.argv[-1] == 'hpcc':
        play_hpcc(speed, sys.argv[sys.argv.index('-np') + 1])


def play_hpcc(speed: float, ranks: str) -> None:
    """Write hpccoutf.txt."""
    given = pathlib.Path('hpccinf.txt').read_text().splitlines()
    sizes = [given[line].split()[0] for line in _LINES]
    figures = {}
    for name in _FIGURES:
        is_time = name.endswith('_usec')
        figures[name] = vary(1 / speed if is_time else speed)
    summary = [
        'VersionMajor=1', 'VersionMinor=5', 'VersionMicro=0', 'Success=1',
        f'CommWorldProcs={ranks}']
    for name, size in zip(_SIZES, sizes, strict=True):
        summary.append(f'{name}={size}')
    for name, figure in figures.items():
        summary.append(f'{name}={figure:.9g}')
    rate = figures['HPL_Tflops'] * 1e3
    check = '||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.004 ......'
    lines = [
        'Begin of HPL section.',
        f'WR11C2R4 {" ".join(sizes)} 1.00 {rate:.9e}',
        f'{check} PASSED', 'End of HPL section.',
        'Begin of Summary section.', *summary,
        'End of Summary section.', 'End of HPC Challenge tests.', '']
    pathlib.Path('hpccoutf.txt').write_text('\n'.join(lines))


def play_fio(speed: float) -> None:
    """Print the JSON of fio."""
    json.dump({'fio version': 'fio-3.33', 'jobs': [
        {'jobname': 'write', 'error': 0,
         'write': {'bw_bytes': vary(speed * 5e8)}},
        {'jobname': 'read', 'error': 0,
         'read': {'lat_ns': {'mean': vary(8e4 / speed)}}}]}, sys.stdout)


def vary(figure: float) -> float:
    """Change a figure by up to half a percent."""
    return figure * random.uniform(0.995, 1.005)


if __name__ == '__main__':
    main()
