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

"""Stop what a run left running at its targets.

Nothing that was measured is lost: samples that are finished are in the store,
and a job that has ended but was not collected yet stays where it is.
"""

import dataclasses
import posixpath
import re

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job as jobs
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import private_directory


@dataclasses.dataclass(frozen=True, slots=True)
class Stopped:
    """What was done at a place.

    :ivar stopped: number of jobs that were stopped
    :ivar ended: number of jobs that had ended, and are kept
    """

    stopped: int = 0
    ended: int = 0


def stop(place: executor.Executor, run_id: str,
         parent: str = private_directory.PARENT) -> Stopped:
    """Stop the jobs of a run at a place, with all that they started.

    :raises Unreachable: if the place does not answer
    """
    directory = private_directory.of_run(parent, run_id)
    done = place.run(['sh', '-c', job_scripts.LIST, 'list', directory])
    if done.status:
        raise exception.Unreachable(
            f'{place.name}: cannot read {directory}: '
            + done.stderr.decode('utf-8', 'replace'))
    found = Stopped()
    for name in done.stdout.decode('ascii', 'replace').split():
        if not re.fullmatch(r'[0-9.]+', name):
            continue
        job = jobs.Job(place, posixpath.join(directory, name))
        if isinstance(job.poll(), jobs.Ended):
            job.stop()
            found = dataclasses.replace(found, ended=found.ended + 1)
        else:
            job.remove()
            found = dataclasses.replace(found, stopped=found.stopped + 1)
    return found
