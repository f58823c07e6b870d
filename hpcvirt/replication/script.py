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

"""Write the shell script with which an operator runs a case of a study."""

import dataclasses
import importlib.metadata
import shlex
import textwrap
from collections.abc import Iterator

from hpcvirt.bench.studies import preconditions
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.deployment import host_files
from hpcvirt.deployment import kernel
from hpcvirt.deployment import nova_conf
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import host_state
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import shell
from hpcvirt.model import cpuset
from hpcvirt.replication import case_plan

#: The first Compute API microversion that takes a host for a new server and
#: still runs the scheduler's filters.
_TO_A_HOST = '2.74'

#: VNIC types of the ports of these devices; other devices need no port.
_VNIC_TYPES = {'sriov': 'direct', 'passthrough': 'direct-physical'}


_USAGE = """\
Arguments of this script are passed to "hpcvirt bench run", such as --pairs
10, --instead NAME or --set KEY=VALUE. It needs the credentials of an
operator, because it chooses hosts and reads pins. It deletes everything that
it creates, by id, and changes nothing else.
"""

_FUNCTIONS = """\
flavor='' servers='' ports=''
work=$(mktemp -d)

clean() {
  status=$?
  trap - EXIT
  set +e
  for id in $servers; do openstack server delete --wait "$id"; done
  for id in $ports; do openstack port delete "$id"; done
  [ -z "$flavor" ] || openstack flavor delete "$flavor"
  rm -r "$work"
  exit "$status"
}
trap clean EXIT
trap 'exit 130' HUP INT TERM

fail() {
  echo "$*" >&2
  exit 2
}

# require_empty HOST: fail if other guests run there
require_empty() {
  others=$(openstack server list --all-projects --host "$1" -f value -c ID)
  [ -z "$others" ] || fail "$1 has guests, which would disturb the measurement"
}

# launch NAME HOST ARGUMENT...: sets id
launch() {
  name=$1 host=$2
  shift 2
  id=$(openstack --os-compute-api-version """ + _TO_A_HOST + """ \\
    server create -f value -c id --image "$IMAGE" --key-name "$KEY" \\
    --flavor "$flavor" --host "$host" "$@" "$name")
  servers="$servers $id"
}

# find_address ID: sets address
find_address() {
  address=$(openstack server show -f value -c addresses "$1" |
    sed "s/[^[]*\\\\['\\\\([^']*\\\\)'.*/\\\\1/")
}

# in_guest COMMAND: runs it in the guest at address
in_guest() {
  ssh ${KEY_FILE:+-i "$KEY_FILE"} -o BatchMode=yes -o ConnectTimeout=5 \\
    -o StrictHostKeyChecking=accept-new "$LOGIN@$address" "$1"
}

# wait_for ID: until the guest is active and accepts logins
wait_for() {
  tries=0
  until state=$(openstack server show -f value -c status "$1")
    [ "$state" = ACTIVE ]
  do
    tries=$((tries + 1))
    if [ "$state" = ERROR ] || [ "$tries" -ge 60 ]; then
      openstack server show -f value -c fault "$1" >&2 || :
      fail "$1 is not ACTIVE"
    fi
    sleep 5
  done
  find_address "$1"
  tries=0
  until in_guest true < /dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || fail "$1 accepts no login at $address"
    sleep 5
  done
}
"""

#: A guest with another device would measure another case.
_EMULATED = """\
openstack image show -f json -c properties "$IMAGE" |
  grep -Eq '"hw_vif_model": "(e1000|rtl8139)"' ||
  fail "hw_vif_model of $IMAGE is no emulated network device"
"""

#: mpirun starts its daemons over ssh.
_JOIN = """\
ssh-keygen -q -t ed25519 -N '' -f "$work/key"

# allow_ssh ID: let the guests log in to each other without a prompt
allow_ssh() {
  find_address "$1"
  in_guest 'umask 77; mkdir -p .ssh; cat >> .ssh/authorized_keys' \\
    < "$work/key.pub"
  in_guest 'umask 77; cat > .ssh/id_ed25519' < "$work/key"
  in_guest 'echo StrictHostKeyChecking accept-new >> .ssh/config' < /dev/null
}
"""

_SSH_BETWEEN_HOSTS = (
    'Hosts, for the native arm: ssh from the first to the others without a '
    'prompt, and the programs on each.')


def script(study_: study.Study, planned: case_plan.CasePlan) -> Iterator[str]:
    """Write the lines of the script.

    It is POSIX shell: comments that say what to prepare, variables, then the
    flavor, the guests and the measurement. It deletes what it created.
    """
    scaled = planned.scaled
    case = scaled.case
    yield '#!/bin/sh'
    yield from _comment(f'{study_.id} {case.id}: {case.text}')
    yield from _comment(
        f'{scaled.shape} guests of {scaled.memory_mib} MiB on '
        f'{", ".join(scaled.hosts)}; generated by hpcvirt '
        f'{importlib.metadata.version("hpcvirt")} from '
        f'"{study_.document.title}" {study_.document.citation}')
    yield '#'
    yield from _comment(_USAGE)
    yield '#'
    yield '# Set by hand before you run it:'
    for instruction in preconditions.instructions(case):
        yield from _comment(instruction, '- ')
    if len(scaled.hosts) > 1:
        yield from _comment(_SSH_BETWEEN_HOSTS, '- ')
    for line in _settings(planned):
        yield f'#   {line}'.rstrip()
    yield '\nset -eu\n'
    yield from _variables(scaled)
    yield ''
    yield _FUNCTIONS
    yield from _measure(study_, planned)


def _measure(study_: study.Study,
             planned: case_plan.CasePlan) -> Iterator[str]:
    scaled = planned.scaled
    guests = scaled.case.guests
    hosts = range(1, len(scaled.hosts) + 1)
    for host in hosts:
        yield f'require_empty "$HOST_{host}"'
    if guests.device == 'emulated':
        yield _EMULATED.rstrip()
    thp = preconditions.THP.get(guests.pages)
    if thp is not None:
        yield from _user_data(thp)
    yield from _flavor(planned.flavor)
    numbers = range(1, len(hosts) * scaled.per_host + 1)
    for number in numbers:
        yield from _guest(scaled, f'{planned.flavor.name}-{number}',
                          number, _host(scaled, number))
    for number in numbers:
        yield f'wait_for "$server_{number}"'
    if len(numbers) > 1:
        yield f'\n{_JOIN}'
        for number in numbers:
            yield f'allow_ssh "$server_{number}"'
    yield ''
    yield f'hpcvirt bench run --study {shlex.quote(_name(study_, scaled))} \\'
    for number in numbers:
        yield (f'  --where "server:$LOGIN@$server_{number}'
               '${KEY_FILE:+?key=$KEY_FILE}" \\')
        if len(scaled.hosts) > 1:
            yield f'  --native "$NATIVE_{_host(scaled, number)}" \\'
    if len(scaled.hosts) == 1:
        yield '  --native "$NATIVE_1" \\'
    yield '  "$@"'


def _guest(scaled: scaling.ScaledCase, name: str, number: int,
           host: int) -> Iterator[str]:
    """Start one guest; the guests take the networks in turn."""
    guests = scaled.case.guests
    network = f'"$NETWORK_{(number - 1) % _networks(scaled) + 1}"'
    options = f'--network {network}'
    vnic_type = _VNIC_TYPES.get(guests.device)
    if vnic_type is not None:
        yield (f'port=$(openstack port create -f value -c id --network '
               f'{network} \\\n  --vnic-type {vnic_type} {name})')
        yield 'ports="$ports $port"'
        options = '--port "$port"'
    if guests.pages in preconditions.THP:
        options += ' --user-data "$work/user-data"'
    yield f'launch {name} "$HOST_{host}" {options}'
    yield f'server_{number}=$id'


def _variables(scaled: scaling.ScaledCase) -> Iterator[str]:
    yield ': "${IMAGE:?an image with the benchmarks, by name or id}"'
    yield ': "${KEY:?the name of your key pair}"'
    for number in range(1, _networks(scaled) + 1):
        yield (f': "${{NETWORK_{number}:?a network that is reachable from '
               'here}"')
    for number, host in enumerate(scaled.hosts, 1):
        yield (f'[ -n "${{HOST_{number}:-}}" ] || '
               f'HOST_{number}={shlex.quote(host)}')
        yield f': "${{NATIVE_{number}:=ssh://$HOST_{number}}}"'
    yield ': "${LOGIN:=root}"'
    yield ': "${KEY_FILE:=}"'


def _settings(planned: case_plan.CasePlan) -> Iterator[str]:
    if planned.scaled.guest is not None:
        for host in planned.plan.hosts:
            yield from _pinned(host, planned.plan.profile)
        return
    for host in planned.plan.hosts:
        yield from _floating(host)


def _pinned(planned: plans.PlannedHost,
            profile: profiles.Profile) -> Iterator[str]:
    """Write the settings without those that a study varies."""
    yield f'# {planned.host.name}'
    yield '# nova.conf'
    yield from nova_conf.compute(planned, profile)
    pages = kernel.page_parameters(host_state.of(planned, profile))
    if pages:
        yield '# on the kernel command line (Linux 5.16 or newer)'
        yield pages
    rules = tuple(host_files.vf_rules(planned, profile))
    if rules:
        yield f'# /{host_files.VFS}'
        yield from rules
    yield ''


def _floating(planned: plans.PlannedHost) -> Iterator[str]:
    """Let guests float over all CPUs for guests; none is dedicated."""
    yield f'# {planned.host.name}'
    yield '# nova.conf'
    yield '[DEFAULT]'
    yield ('reserved_host_memory_mb = '
           f'{planned.settings.reserved_host_memory_mib}')
    yield '[compute]'
    yield f'cpu_shared_set = {cpuset.render(planned.partition.dedicated)}'


def _host(scaled: scaling.ScaledCase, number: int) -> int:
    """Return the number of the host that the guest of this number is on."""
    return (number - 1) // scaled.per_host + 1


def _networks(scaled: scaling.ScaledCase) -> int:
    return max(1, scaled.case.guests.networks)


def _flavor(flavor: catalogue.Flavor) -> Iterator[str]:
    """Create the flavor, and keep its id before anything else can fail."""
    words = shlex.split(shell.command(
        dataclasses.replace(flavor, extra_specs={})))
    after = words.index('create') + 1
    words[after:after] = ['-f', 'value', '-c', 'id']
    yield f'flavor=$({shlex.join(words)})'
    if flavor.extra_specs:
        yield 'openstack flavor set \\'
        for key, value in flavor.extra_specs.items():
            yield f'  --property {shlex.quote(f"{key}={value}")} \\'
        yield '  "$flavor"'


def _user_data(thp: str) -> Iterator[str]:
    yield "cat > \"$work/user-data\" <<'END'"
    yield '#cloud-config'
    yield 'bootcmd:'
    yield f'  - echo {thp} > /sys/kernel/mm/transparent_hugepage/enabled'
    yield 'END'


def _name(study_: study.Study, scaled: scaling.ScaledCase) -> str:
    return f'{study_.id}/{scaled.case.id}'


def _comment(text: str, bullet: str = '') -> Iterator[str]:
    yield from textwrap.wrap(
        text, 78, initial_indent=f'# {bullet}',
        subsequent_indent='# ' + ' ' * len(bullet), break_on_hyphens=False,
        break_long_words=False)
