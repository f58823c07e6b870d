# SPDX-License-Identifier: Apache-2.0

"""``python -m demo``: run the demonstration and print its results."""

import argparse
import importlib.metadata
import pathlib
import sys
import tempfile

from demo import checks
from demo import fleet
from demo import other_seeds
from demo import parts
from demo import report
from demo import strategies

#: The README shows the output for this seed, which is the first number; it was
#: not chosen for its result.
DEFAULT_SEED = 1

_FILLS = {plan.profile: f'fill:{plan.profile}' for plan in fleet.PLANS}
_PLACES = {name: f'place:{name}' for name in strategies.STRATEGIES}


def main(argv: list[str] | None = None) -> int:
    """Run the demonstration.

    :returns: 0 if all checks pass, 1 if one fails, 2 if the demonstration
        could not be completed
    """
    args = _parser().parse_args(argv)
    logs = pathlib.Path(tempfile.mkdtemp(prefix='hpcvirt-demo-'))
    running = parts.Parts(args.seed, logs)
    print(_opening(args.seed))
    try:
        results = running.run([*_PLACES.values(), *_FILLS.values()])
    except parts.PartFailed as exc:
        print(f'demo: {exc}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    fillings = {name: results[part] for name, part in _FILLS.items()}
    places = {name: results[part] for name, part in _PLACES.items()}
    others = other_seeds.outcomes(args.seed)
    text = '\n'.join([
        *report.heading('1. The hosts, from etc/hpcvirt/topologies'),
        *report.hosts(),
        *report.heading('2. Their flavors, created by hpcvirt flavor apply'),
        *report.flavors(fillings),
        *report.heading('3. Each flavor alone fills each kind of host'),
        *report.fills(fillings),
        *report.heading('4. Hosts filled with different sizes'),
        *report.drawings(fillings),
        *report.heading('5. The same requests, placed in three ways'),
        *report.about_requests(args.seed, places),
        *report.comparison(places),
        '',
        *report.maps(places),
        '',
        *report.large(places),
        '',
        *report.other_seeds(others),
        *report.heading('6. The requests that hpcvirt refused, and why'),
        *report.refusals(places['hpcvirt'], [
            filling['document'] for filling in fillings.values()])])
    found = checks.check(fillings, places, others)
    if args.seed == DEFAULT_SEED:
        found.append(checks.page(text))
    print('\n'.join([
        text,
        *report.heading('7. Checks'),
        *report.checks(found),
        '',
        f'  {running.seconds():.0f} s. The logs of Nova are in {logs}',
    ]))
    return int(any(against for _, against in found))


def _opening(seed: int) -> str:
    nova = importlib.metadata.version('nova')
    return (f'hpcvirt on an embedded Nova {nova}: API, conductor, scheduler,'
            ' Placement and six compute hosts\n'
            'with a fake libvirt in one process, without root, servers or'
            f' ports. {parts.at_a_time()} parts run in parallel, seed {seed}.'
            '\n')


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m demo', description='Generate flavors from host '
        'topologies, create them in an embedded Nova, fill the hosts, and '
        "place the same requests with hpcvirt and with Nova's own filter and "
        'weighers.')
    parser.add_argument(
        '--seed', type=int, default=DEFAULT_SEED,
        help='seed of the random requests (default: %(default)s)')
    return parser


if __name__ == '__main__':
    sys.exit(main())
