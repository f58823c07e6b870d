# SPDX-License-Identifier: Apache-2.0

"""A host that "hpcvirt host supervise --once" has learned already."""

import json
import pathlib
import time

from hpcvirt import serialization
from hpcvirt.health import readings
from hpcvirt.health import supervision


def write(folder: pathlib.Path, host: str, score: float) -> list[str]:
    """Write what the host exports now, as after a pause of 15 minutes.

    :returns: the arguments of the command
    """
    (folder / 'classes').write_text(json.dumps({'all': [host]}))
    (folder / f'{host}.prom').write_text(
        f'{readings.TIME} {time.time()}\n'
        f'{readings.SCORE}{{sign="cpu-shootdowns",unit="cpu7"}} {score}\n')
    state = folder / 'state'
    record = (json.loads(state.read_text()) if state.exists()
              else serialization.dump(supervision.FleetRecord(hosts={
                  host: supervision.HostRecord(since=0.0)})))
    state.write_text(json.dumps({**record, 'time': time.time() - 900}))
    return ['host', 'supervise', '--classes', str(folder / 'classes'),
            '--textfiles', str(folder), '--state', str(state), '--once']
