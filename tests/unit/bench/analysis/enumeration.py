# SPDX-License-Identifier: Apache-2.0

"""Chances of rank sums, by trying every order and every sign."""

import collections


def arrangements(left):
    """Yield all orders of some things of several kinds."""
    if not any(left.values()):
        yield ()
    for kind in [kind for kind, count in left.items() if count]:
        for rest in arrangements(left - collections.Counter([kind])):
            yield (kind, *rest)


def subset_sums(values):
    """Return the sum of each subset, in an order that the length defines."""
    sums = [0]
    for value in values:
        sums += [each + value for each in sums]
    return sums


def chance_of_any(counts, rank_sums):
    """Return the chance that any look has at most its rank sum.

    Each loss is of the first look that has it; all orders of the losses by
    size are equally likely, and so are all signs.
    """
    stages = [stage for stage, (count, before)
              in enumerate(zip(counts, (0, *counts), strict=False))
              for _ in range(count - before)]
    found = total = 0
    for order in arrangements(collections.Counter(stages)):
        ranks = [[sum(other <= look for other in order[:place + 1])
                  if stage <= look else 0
                  for place, stage in enumerate(order)]
                 for look in range(len(counts))]
        sums = [subset_sums(each) for each in ranks]
        total += 1 << counts[-1]
        found += sum(any(each <= most for each, most
                         in zip(together, rank_sums, strict=True))
                     for together in zip(*sums, strict=True))
    return found / total
