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

"""Directories at a place that nobody else there can read or change.

Every user of a machine can write to /var/tmp, and what lies in the directory
of a job is run. So the directory of a run is named after the random id of the
run, and each command that uses it checks first that it belongs to the caller
and is closed to everybody else.
"""

import posixpath

#: A disk, and the same path at every place, as MPI needs it.
PARENT = '/var/tmp'  # noqa: S108

#: Exit status of a script that refuses a directory.
REFUSED = 78

#: ``enter DIRECTORY`` goes to a directory within that of a run. ``.`` and
#: ``..`` are the directories that were entered, whatever their names lead to
#: a moment later.
ENTER = f"""
enter() {{
  if [ -L "${{1%/*}}" ]; then
    echo "${{1%/*}} is a symbolic link" >&2
    exit {REFUSED}
  fi
  cd "$1" || exit
  self=$(id -u)
  ls -ldn . .. | {{
    private=0
    while read -r mode links owner rest; do
      case $owner:$mode in
      "$self":d???--[-S]--[-T]*) private=$((private + 1)); continue ;;
      esac
      found=$1
      [ "${{rest##* }}" = . ] || found=${{1%/*}}
      echo "$found belongs to user $owner with mode $mode; it must be" \
        "that of user $self with mode drwx------" >&2
      exit {REFUSED}
    done
    [ "$private" = 2 ]
  }} || exit
}}
"""

#: ``create DIRECTORY`` also makes the directory and that of the run.
CREATE = ENTER + """
create() {
  (umask 077 && mkdir -p "$1") || exit
  enter "$1"
}
"""

#: ``trust DIRECTORY`` refuses a directory of programs if other users can
#: replace what is in it. Its group is trusted: whoever shares it meant to.
TRUST = f"""
trust() (
  cd "$1" || exit
  self=$(id -u)
  leaf=$(pwd -P)
  here=$leaf
  cd "$leaf" || exit
  while :; do
    ls -ldn . | {{
      read -r mode links owner rest
      case $owner:$mode in
      "$self":d???????-*|0:d???????-*) exit 0 ;;
      0:d????????[tT]*) [ "$here" = "$leaf" ] || exit 0 ;;
      esac
      echo "$here belongs to user $owner with mode $mode: others could" \
        "replace the programs in $1" >&2
      exit {REFUSED}
    }} || exit
    [ "$here" != / ] || exit 0
    cd .. || exit
    here=$(pwd -P)
  done
)
"""


def of_run(parent: str, run_id: str) -> str:
    """The directory of a run, in which its jobs have theirs."""
    return posixpath.join(parent, f'hpcvirt-{run_id}')
