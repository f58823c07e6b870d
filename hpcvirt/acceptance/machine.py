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

"""Read what the firmware of a machine says of it, for a vendor."""

from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor

#: Name of a fact to the file below /sys/class/dmi/id; only root may read the
#: serial number.
_DMI = {'vendor': 'sys_vendor', 'product': 'product_name',
        'serial number': 'product_serial', 'firmware': 'bios_version',
        'firmware date': 'bios_date', 'board': 'board_name'}
_SCRIPT = """
for name; do
  read -r value 2>/dev/null < "/sys/class/dmi/id/$name" &&
    echo "$name=$value"
done
:
"""
#: Facts of a sample that describe the machine as well.
_FACTS = {'CPU': 'cpu.model', 'microcode': 'cpu.microcode',
          'CPUs online': 'cpu.online', 'SMT': 'cpu.smt', 'kernel': 'kernel',
          'kernel command line': 'kernel.cmdline'}


def read(place: executor.Executor) -> dict[str, str]:
    """Read it; what the machine does not say is left out.

    :raises Unreachable: if the place does not answer
    """
    dmi = environment.parse(place.run(
        ['sh', '-c', _SCRIPT, 'dmi', *_DMI.values()]).stdout)
    facts = environment.facts(place)
    return {name: source[key] for names, source in ((_DMI, dmi),
                                                    (_FACTS, facts))
            for name, key in names.items() if source.get(key)}
