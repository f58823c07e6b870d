# SPDX-License-Identifier: Apache-2.0

"""A valid definition of a benchmark, as its file has it."""

import copy

#: The origin of a bound, which a definition must give.
BOUND = {'metric': 'turns', 'kind': 'measured', 'line': 'table 1',
         'source': 'CERN-HEPiX-2015', 'conditions': 'one host'}
#: The definition.
GOOD = {
    'name': 'spin', 'title': 'Spin', 'summary': 'Turns.', 'parser': 'hpcc',
    'licence': 'MIT', 'validity': 'always',
    'obtain': [{'by': 'apt', 'packages': ['spin']}],
    'variants': [{
        'name': 'mpi', 'ranks': 'per-cpu', 'threads': 'one',
        'binding': 'one rank per core',
        'command': ['mpirun', '-np', '{ranks}', '{hosts}', 'spin', '{N}',
                    '{data}/x']}],
    'metrics': [{'name': 'turns', 'unit': '1/s', 'direction': 'up',
                 'help': 'turns', 'primary': True}],
    'size': {'N': {'rule': 'hpl-order', 'help': 'order',
                   'multiple_of': 80}},
    'paths': [{'name': 'data', 'help': 'where x is'}],
    'files': {'in.txt': 'N = {N}\n'},
    'echo': {'N': '{N}'}, 'expect': {'version': '1'},
    'bounds': [BOUND | {'at_least': 0.95}],
}


def change(*path, to):
    """Copy the valid definition, with another value at a path."""
    document = copy.deepcopy(GOOD)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return document
