# SPDX-License-Identifier: Apache-2.0

"""Print the results in a store with their verdicts as JSON.

The cloud's Python environment runs it. The arguments are the database and the
directory of outputs.
"""

import json
import sys

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores


def main(url, data):
    """Print one object for each run."""
    store = stores.Store(url, data)
    print(json.dumps([_run(verdict.judge_result(store.result(entry.id)), run)
                      for entry in store.entries()
                      for run in store.result(entry.id).runs]))
    store.close()


def _run(judged, run):
    natives = [sample for sample in run.samples
               if sample.side is record.Side.NATIVE]
    cpus = {sample.environment.get('server.host_cpus')
            for sample in run.samples if sample.side is record.Side.GUEST}
    return {
        'label': run.label,
        'purpose': run.purpose,
        'result': judged.verdict.result,
        'samples': len(run.samples),
        'launches': len({sample.launch_id for sample in run.samples
                         if sample.side is record.Side.GUEST}),
        # The upper end of what the guest reaches of native.
        'high': {one.metric: one.interval.high
                 for one in judged.verdict.judgements
                 if one.label == run.label and one.interval},
        # Whether native runs were confined to the CPUs of the guest.
        'confined': len(cpus) == 1 and None not in cpus and all(
            any(word.rpartition('=')[2] in cpus
                for word in sample.command[:3])
            for sample in natives),
    }


if __name__ == '__main__':
    main(*sys.argv[1:])
