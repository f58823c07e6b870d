# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
               if sample.arm is record.Arm.NATIVE]
    cpus = {sample.environment.get('server.host_cpus')
            for sample in run.samples if sample.arm is record.Arm.GUEST}
    return {
        'label': run.label,
        'purpose': run.purpose,
        'word': judged.verdict.word,
        'samples': len(run.samples),
        'launches': len({sample.launch_id for sample in run.samples
                         if sample.arm is record.Arm.GUEST}),
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
