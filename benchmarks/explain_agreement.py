# SPDX-License-Identifier: Apache-2.0

"""Compare the verdicts of ``hpcvirt explain`` with nova-scheduler.

Each fleet is an embedded Nova with random hosts, aggregates, traits and
instances, which get random requests. nova-scheduler and explain must name the
same hosts, and the weights of explain must have the order of the scheduler::

    python3 -m benchmarks.explain_agreement [FLEETS [REQUESTS [SEED]]]

Run it from the root of the repository, with the environment "functional".
"""

import sys
import unittest

from tests.functional import test_fleet_agreement


def main(fleets=100, requests=100, seed=1):
    """Compare; the exit status is 1 if anything differs."""
    kind = test_fleet_agreement.AgreementTest
    kind.requests, kind.reasons = requests, False
    kind.most_hosts = test_fleet_agreement.MAX_HOSTS
    for number in range(seed, seed + fleets):
        kind.seed = number
        result = unittest.TestResult()
        kind('test_explain_says_what_the_scheduler_does').run(result)
        for _, text in (*result.errors, *result.failures):
            print(text[-6000:], file=sys.__stdout__)
        print(f'seed {number}: {dict(kind.tally)}', file=sys.__stdout__,
              flush=True)
        if not result.wasSuccessful():
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(*map(int, sys.argv[1:])))
