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

"""The shell script by which an operator runs a case of a study."""

import dataclasses
import importlib.metadata
import shlex
import textwrap
from collections.abc import Iterator

from hpcvirt.bench.studies import preconditions
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.cmd.study import site
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import hostconfig
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import shell
from hpcvirt.model import cpuset

#: The first microversion that sends a server to a host through the
#: scheduler's filters.
_TO_A_HOST = '2.74'

#: How Neutron is asked for a port of each kind; others need none.
_VNIC_TYPES = {'sriov': 'direct', 'passthrough': 'direct-physical'}


_USAGE = """\
Its arguments go to "hpcvirt bench run", such as --pairs 10, --instead NAME or
--set KEY=VALUE. Credentials of an operator are needed: a host is named, and
pins are read. What it creates it deletes at the end, by its id; nothing that
was there before is touched.
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

# empty HOST: nobody else is measured
empty() {
  others=$(openstack server list --all-projects --host "$1" -f value -c ID)
  [ -z "$others" ] || fail "$1 has guests; they would be measured as well"
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

# enter COMMAND: runs it in the guest at address
enter() {
  ssh ${KEY_FILE:+-i "$KEY_FILE"} -o BatchMode=yes -o ConnectTimeout=5 \\
    -o StrictHostKeyChecking=accept-new "$LOGIN@$address" "$1"
}

# ready ID: it runs and takes logins
ready() {
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
  until enter true < /dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || fail "$1 takes no login at $address"
    sleep 5
  done
}
"""

#: Whoever measures another device measures another case.
_EMULATED = """\
openstack image show -f json -c properties "$IMAGE" |
  grep -Eq '"hw_vif_model": "(e1000|rtl8139)"' ||
  fail "$IMAGE gives its guests no emulated network device: hw_vif_model"
"""

#: mpirun starts its daemons by ssh.
_JOIN = """\
ssh-keygen -q -t ed25519 -N '' -f "$work/key"

# join ID: the guests get to each other without a question
join() {
  find_address "$1"
  enter 'umask 77; mkdir -p .ssh; cat >> .ssh/authorized_keys' \\
    < "$work/key.pub"
  enter 'umask 77; cat > .ssh/id_ed25519' < "$work/key"
  enter 'echo StrictHostKeyChecking accept-new >> .ssh/config' < /dev/null
}
"""

_HOSTS_JOINED = ('Hosts, for the native arm: ssh from the first to the others '
                 'without a question, and the programs on each.')


def script(made: study.Study, planned: site.Planned) -> Iterator[str]:
    """Write the lines of the script.

    It is POSIX shell: preparations as comments, what is given as variables,
    then flavor, guests, measurement, and everything that was made deleted.
    """
    scaled = planned.scaled
    case = scaled.case
    yield '#!/bin/sh'
    yield from _comment(f'{made.id} {case.id}: {case.text}')
    yield from _comment(
        f'{scaled.shape} guests of {scaled.memory_mib} MiB on '
        f'{", ".join(scaled.hosts)}; made by hpcvirt '
        f'{importlib.metadata.version("hpcvirt")} after {made.document} '
        f'({made.source})')
    yield '#'
    yield from _comment(_USAGE)
    yield '#'
    yield '# To be set before, by hand:'
    for demand in scaling.demands(case):
        yield from _comment(demand, '- ')
    if len(scaled.hosts) > 1:
        yield from _comment(_HOSTS_JOINED, '- ')
    for line in _settings(planned):
        yield f'#   {line}'.rstrip()
    yield '\nset -eu\n'
    yield from _variables(scaled)
    yield ''
    yield _FUNCTIONS
    yield from _measure(made, planned)


def _measure(made: study.Study,
             planned: site.Planned) -> Iterator[str]:
    scaled = planned.scaled
    guests = scaled.case.guests
    hosts = range(1, len(scaled.hosts) + 1)
    for host in hosts:
        yield f'empty "$HOST_{host}"'
    if guests.device == 'emulated':
        yield _EMULATED.rstrip()
    thp = preconditions.THP.get(guests.pages)
    if thp is not None:
        yield from _user_data(thp)
    yield from _flavor(planned.flavor)
    number = 0
    for host in hosts:
        for _ in range(scaled.per_host):
            number += 1
            yield from _guest(scaled, f'{planned.flavor.name}-{number}',
                              number, host)
    for at in range(1, number + 1):
        yield f'ready "$server_{at}"'
    if number > 1:
        yield f'\n{_JOIN}'
        for at in range(1, number + 1):
            yield f'join "$server_{at}"'
    yield ''
    yield f'hpcvirt bench run --study {shlex.quote(_name(made, scaled))} \\'
    for at in range(1, number + 1):
        yield (f'  --where "server:$LOGIN@$server_{at}'
               '${KEY_FILE:+?key=$KEY_FILE}" \\')
        if len(scaled.hosts) > 1:
            yield f'  --native "$NATIVE_{(at - 1) // scaled.per_host + 1}" \\'
    if len(scaled.hosts) == 1:
        yield '  --native "$NATIVE_1" \\'
    yield '  "$@"'


def _guest(scaled: scaling.Scaled, name: str, number: int,
           host: int) -> Iterator[str]:
    """Start one guest, on the network that its turn gives it."""
    guests = scaled.case.guests
    network = f'"$NETWORK_{(number - 1) % _networks(scaled) + 1}"'
    more = f'--network {network}'
    vnic_type = _VNIC_TYPES.get(guests.device)
    if vnic_type is not None:
        yield (f'port=$(openstack port create -f value -c id --network '
               f'{network} \\\n  --vnic-type {vnic_type} {name})')
        yield 'ports="$ports $port"'
        more = '--port "$port"'
    if guests.pages in preconditions.THP:
        more += ' --user-data "$work/user-data"'
    yield f'launch {name} "$HOST_{host}" {more}'
    yield f'server_{number}=$id'


def _variables(scaled: scaling.Scaled) -> Iterator[str]:
    yield ': "${IMAGE:?an image with the benchmarks, by name or id}"'
    yield ': "${KEY:?a key pair of yours}"'
    for number in range(1, _networks(scaled) + 1):
        yield (f': "${{NETWORK_{number}:?a network that is reached from '
               'here}"')
    for number, host in enumerate(scaled.hosts, 1):
        yield (f'[ -n "${{HOST_{number}:-}}" ] || '
               f'HOST_{number}={shlex.quote(host)}')
        yield f': "${{NATIVE_{number}:=ssh://$HOST_{number}}}"'
    yield ': "${LOGIN:=root}"'
    yield ': "${KEY_FILE:=}"'


def _settings(planned: site.Planned) -> Iterator[str]:
    if planned.scaled.guest is not None:
        yield from hostconfig.lines(planned.plan)
        return
    for host in planned.plan.hosts:
        yield from _floating(host)


def _floating(planned: plans.PlannedHost) -> Iterator[str]:
    """The CPUs over which guests float, without a dedicated one."""
    yield f'# {planned.host.name}'
    yield '# nova.conf'
    yield '[DEFAULT]'
    yield ('reserved_host_memory_mb = '
           f'{planned.settings.reserved_host_memory_mib}')
    yield '[compute]'
    yield f'cpu_shared_set = {cpuset.render(planned.divided.dedicated)}'


def _networks(scaled: scaling.Scaled) -> int:
    return max(1, scaled.case.guests.networks)


def _flavor(flavor: catalogue.Flavor) -> Iterator[str]:
    """Create the flavor, and know its id before anything else can fail."""
    bare = shlex.split(shell.command(
        dataclasses.replace(flavor, extra_specs={})))
    at = bare.index('create') + 1
    words = [*bare[:at], '-f', 'value', '-c', 'id', *bare[at:]]
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


def _name(made: study.Study, scaled: scaling.Scaled) -> str:
    return f'{made.id}/{scaled.case.id}'


def _comment(text: str, bullet: str = '') -> Iterator[str]:
    yield from textwrap.wrap(
        text, 78, initial_indent=f'# {bullet}',
        subsequent_indent='# ' + ' ' * len(bullet), break_on_hyphens=False,
        break_long_words=False)
