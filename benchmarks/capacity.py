# SPDX-License-Identifier: Apache-2.0

"""Compare the capacity of random hosts with what Nova takes.

Counts flavors of all policies on random hosts in use, and fills the hosts with
Nova's own functions until they refuse::

    python3 -m benchmarks.capacity [HOSTS [SEED]]

Run it from the root of the repository where Nova is installed.
"""

import collections
import itertools
import random
import sys

from tests.functional import random_capacity


def main(number=300, seed=1):
    """Print the errors of hpcvirt and of the sums by the kind of flavor."""
    dice = random.Random(seed)
    found = collections.defaultdict(list)
    for _ in range(number):
        for figure in random_capacity.figures(dice):
            found[figure.kind].append(figure)
    found['all'] = list(itertools.chain.from_iterable(found.values()))
    print(f'{"":36}{"counts":>8}{"taken":>8}{"wrong":>8}{"by sums":>9}'
          f'{"wrong":>8}{"error":>8}')
    for kind, figures in sorted(found.items()):
        taken = sum(figure.taken for figure in figures)
        sums = sum(figure.by_sums for figure in figures)
        wrong = sum(figure.counted != figure.taken for figure in figures)
        promised = sum(figure.by_sums != figure.taken for figure in figures)
        error = f'{(sums - taken) / taken:.0%}' if taken else '-'
        print(f'{kind:36}{len(figures):8}{taken:8}{wrong:8}{sums:9}'
              f'{promised:8}{error:>8}')
    return int(any(figure.counted != figure.taken
                   or figure.by_sums != figure.promised
                   for figure in found['all']))


if __name__ == '__main__':
    sys.exit(main(*map(int, sys.argv[1:])))
