# SPDX-License-Identifier: Apache-2.0

"""Run parts of the demonstration, one after the other in this process.

``python -m demo.worker SEED DIRECTORY`` reads the names of parts from its
standard input, one per line. For each part it prints JSON lines: ``{"say":
...}`` while it works, and at the end ``{"result": ...}`` or ``{"broken":
...}``. The logs of Nova go to a file in DIRECTORY for each part.
"""

import functools
import json
import logging
import os
import pathlib
import sys
from typing import Any
from typing import TextIO

from demo import filling
from demo import fleet
from demo import parts
from demo import sequence
from demo import session as sessions

_FORMAT = '%(asctime)s %(levelname)s %(name)s: %(message)s'


def main(seed: str, directory: str) -> int:
    """Run parts: ``fill:PROFILE`` or ``place:STRATEGY``."""
    channel = os.fdopen(os.dup(sys.stdout.fileno()), 'w', encoding='utf-8')
    for line in sys.stdin:
        part = line.strip()
        _redirect_output(pathlib.Path(directory, parts.log_name(part)))
        kind, _, name = part.partition(':')
        try:
            result = _fill(name, channel) if kind == 'fill' else _place(
                name, int(seed), channel)
        except sessions.Broken as exc:
            logging.getLogger(__name__).error('%s', exc)
            _send(channel, 'broken', str(exc).strip().splitlines()[-1])
            return 1
        _send(channel, 'result', result)
    return 0


def _fill(profile: str, channel: TextIO) -> dict[str, Any]:
    plan = next(each for each in fleet.PLANS if each.profile == profile)
    return sessions.run('hpcvirt', (plan,), _logged(functools.partial(
        filling.each_flavor, say=functools.partial(_send, channel, 'say'))))


def _place(strategy: str, seed: int, channel: TextIO) -> dict[str, Any]:
    return sessions.run(strategy, fleet.PLANS, _logged(functools.partial(
        sequence.place, seed=seed,
        say=functools.partial(_send, channel, 'say'))))


def _logged(job: Any) -> Any:
    """Write the log of a job to stderr, which is the log file here.

    Nova's fixtures remove all other handlers when a session starts.
    """
    def run(session: sessions.Session) -> dict[str, Any]:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(_FORMAT))
        handler.addFilter(lambda record: record.levelno >= logging.INFO
                          or record.name.startswith('hpcvirt'))
        logging.getLogger().addHandler(handler)
        result: dict[str, Any] = job(session)
        return result
    return run


def _send(channel: TextIO, kind: str, what: object) -> None:
    print(json.dumps({kind: what}), file=channel, flush=True)


def _redirect_output(log: pathlib.Path) -> None:
    """Redirect stdout and stderr to a log."""
    sys.stdout.flush()
    with log.open('a') as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
