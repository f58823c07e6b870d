# SPDX-License-Identifier: Apache-2.0

"""The shell scripts that run at a place, and the directories that they use.

Every user of a machine can write to /var/tmp, and what lies in the directory
of a job is run. The directory of a run is therefore named after the random id
of the run. Each command that uses it first checks that it belongs to the
caller and is closed to everybody else.

The scripts of a job take its directory as ``$1``. The place needs a POSIX
shell, /proc, and ``date``, ``head``, ``readlink`` and ``setsid`` of GNU or
busybox.

Files in the directory: ``command`` (the shell commands), ``stdout``,
``stderr``, ``boot`` (the boot of the machine in which the job was prepared),
``pid`` (the process id and the start time of the leader of the job), and
``status``, which appears in one step when the program has ended and holds its
exit status and the times of its begin and end.
"""

import posixpath

from hpcvirt.bench.parsers import text

#: A disk, and the same path at every place, as MPI needs it.
PARENT = '/var/tmp'  # noqa: S108

#: Exit status of a script that refuses a directory.
REFUSED = 78

#: ``enter DIRECTORY`` goes to a directory within that of a run; its status is
#: 1 if there is none. Each level is entered by itself, never through a
#: symbolic link, and checked before the next one is looked at.
ENTER = f"""
step() {{
  above=$(pwd -P)
  above=${{above%/}}
  [ -L "./$1" ] || [ -d "./$1" ] || return 1
  if [ ! -L "./$1" ]; then cd -P "./$1" || exit; fi
  # What was a directory may have become a link a moment ago.
  [ "$(pwd -P)" = "$above/$1" ] || {{
    echo "$above/$1 is a symbolic link" >&2
    exit {REFUSED}
  }}
  self=$(id -u)
  ls -ldn . | {{
    mode= owner=
    read -r mode links owner rest
    case $owner:$mode in
    "$self":d???--[-S]--[-T]*) exit 0 ;;
    esac
    echo "$above/$1 belongs to user $owner with mode $mode; it must be" \
      "that of user $self with mode drwx------" >&2
    exit {REFUSED}
  }} || exit
}}
enter() {{
  run=${{1%/*}}
  [ -d "${{run%/*}}/" ] || return 1
  cd "${{run%/*}}/" || exit
  step "${{run##*/}}" && step "${{1##*/}}"
}}
"""

#: ``create DIRECTORY`` also makes the directory and that of the run.
CREATE = ENTER + """
make() {
  why=$(umask 077 && mkdir "./$1" 2>&1) || :
  step "$1" || {
    echo "$why" >&2
    exit 1
  }
}
create() {
  run=${1%/*}
  cd "${run%/*}/" || exit
  make "${run##*/}"
  make "${1##*/}"
}
"""

#: ``look PID`` sets ``state``, ``session``, ``terminal``, ``began`` and
#: ``memory`` to the state of a process, its session, its terminal, 0 for none,
#: its start time in ticks since boot, and its bytes of virtual memory: fields
#: 3, 6, 7, 22 and 23 of /proc/PID/stat (proc(5)). They are empty if there is
#: no such process. The name of the program, field 2, may hold spaces,
#: parentheses and ends of lines.
LOOK = """
look() {
  state= session= terminal= began= memory=
  last=
  while read -r line; do last=$line; done < "/proc/$1/stat" || return
  set -- ${last##*) }
  state=$1 session=$4 terminal=$5 began=${20} memory=${21}
} 2>/dev/null
"""

#: Exit status of a script that finds no directory, or one that was prepared
#: before the machine restarted: what was written then may be lost.
NOT_PREPARED = 18

#: ``boot`` prints the id of the boot, ``enter_prepared DIRECTORY`` goes to the
#: directory of a job that was prepared in this boot.
_BOOT = f"""
boot() {{
  cat /proc/sys/kernel/random/boot_id 2>/dev/null || :
}}
enter_prepared() {{
  enter "$1" || exit {NOT_PREPARED}
  [ "$(cat boot 2>/dev/null)" = "$(boot)" ] || exit {NOT_PREPARED}
}}
"""

#: Writes the command, which comes on standard input, to the directory unless
#: the job was started already. A broken connection may have left half of a
#: command, so that of a job which was not started is written again.
PREPARE = 'set -eu' + CREATE + _BOOT + """
create "$1"
umask 077
[ ! -d started ] || exit 17
cat > command
boot > boot
"""

#: Runs the command that PREPARE wrote; ends it after $2 seconds unless 0.
#: setsid makes a session and a process group, which outlives the connection
#: and which the watchdog can end as a whole; the leader of the group survives
#: the TERM to write the status. In the end it kills the group, the watchdog
#: included, so that nothing is left to disturb the next sample; a TERM would
#: be lost if a shell had not set its trap yet. "status" is renamed into place
#: so that no reader sees half of it. If the answer to a start is lost, the
#: start is repeated, and has no effect then.
START = 'set -eu' + ENTER + _BOOT + """
enter_prepared "$1"
mkdir started 2>/dev/null || exit 0
setsid sh -c '""" + LOOK + """
look $$
echo "$$ $began" > pid
trap : TERM
finish() {
  echo "$1 $begin $(date +%s.%N)" > status.new
  mv status.new status
}
begin=$(date +%s.%N)
sh ./command &
child=$!
if [ "$1" != 0 ]; then
  (
    sleep "$1"
    : > overdue
    kill -TERM 0
  ) &
fi
while :; do
  wait "$child" && status=0 || status=$?
  kill -0 "$child" 2>/dev/null && [ ! -e overdue ] || break
done
if [ -e overdue ]; then
  sleep 2
  status=124
fi
finish "$status"
kill -KILL 0
' job "$2" > stdout 2> stderr < /dev/null &
"""

#: The most bytes of a file of a job that are read: one more than a parser
#: accepts, which refuses it then.
LIMIT_BYTES = text.LIMIT_BYTES + 1

#: Prints "done STATUS BEGIN END", "running", "starting", "lost", "absent", or
#: "flooding" if the program has printed more than can be read. The job may
#: change between two commands of this script: it checks once whether the job
#: has begun, and checks the status again if the leader has ended. A killed
#: leader may stay as a zombie.
POLL = ENTER + LOOK + f"""
enter "$1" || {{ echo absent; exit 0; }}
alive() {{
  read -r pid start < pid
  look "$pid"
  [ -n "$start" ] && [ "$began" = "$start" ] && [ "$state" != Z ]
}}
if [ -n "$(find stdout stderr -size +{text.LIMIT_BYTES}c 2>/dev/null)" ]; then
  echo flooding
elif [ -f status ]; then echo "done $(cat status)"
elif [ ! -s pid ]; then echo starting
elif alive; then echo running
elif [ -f status ]; then echo "done $(cat status)"
else echo lost
fi
"""

#: Prints the beginning of the file $2 of the job; status 1 if there is none.
READ = ENTER + f"""
enter "$1" && [ -f "./$2" ] || exit 1
head -c {LIMIT_BYTES} "./$2" || exit 1
"""

#: Writes standard input to the file $2 of the job.
WRITE = 'set -eu' + ENTER + _BOOT + """
enter_prepared "$1"
umask 077
cat > "./$2"
chmod 700 "./$2"
"""

#: Waits for the process id of a job that was started a moment ago: without
#: it the job cannot be ended. The processes of a job are those of its session,
#: and those of its user, without a terminal, that are in its directory: mpirun
#: puts each rank into a process group of its own, and starts ranks on other
#: machines, in the same directory there. The leader is killed first, so that
#: it writes no status; TERM lets mpirun end its ranks everywhere. A process id
#: that was given to another process since gets no signal. Kernel threads,
#: which have no memory, are passed over because readlink is a program.
STOP = ENTER + LOOK + """
enter "$1" || exit 0
tries=50
while [ -d started ] && [ ! -s pid ] && [ "$tries" -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
leader= start=
[ ! -s pid ] || read -r leader start < pid
ended=$(cat status 2>/dev/null)
here=$(pwd -P)
cd /
owner() {
  while read -r name user rest; do
    [ "$name" != Uid: ] || echo "$user"
  done < "$1/status"
} 2>/dev/null
inside() {
  for process in /proc/[0-9]*; do
    look "${process#/proc/}"
    [ "$terminal" = 0 ] && [ "$memory" != 0 ] || continue
    case $(readlink "$process/cwd" 2>/dev/null)/ in
    "$here"/*) [ "$(owner "$process")" != "$self" ] ||
      echo "${process#/proc/} $began" ;;
    esac
  done
}
in_session() {
  look "$leader"
  [ -n "$start" ] && [ "$began" = "$start" ] || return
  for process in /proc/[0-9]*; do
    look "${process#/proc/}"
    [ "$session" != "$leader" ] || echo "${process#/proc/} $began"
  done
}
alive() {
  while read -r process since; do
    look "$process"
    [ -z "$since" ] || [ "$began" != "$since" ] || [ "$state" = Z ] ||
      echo "$process"
  done
}
found=$(in_session; inside)
look "$leader"
[ -z "$start" ] || [ "$began" != "$start" ] || [ -n "$ended" ] ||
  kill -KILL "$leader" 2>/dev/null
for signal in TERM KILL; do
  left=$(echo "$found" | alive)
  [ -n "$left" ] || break
  kill -$signal $left 2>/dev/null
  for pause in 0.1 0.2 0.3 0.4 1; do
    [ -n "$(echo "$found" | alive)" ] || break
    sleep "$pause"
  done
  found="$found
$(inside)"
done
:
"""

#: Prints the names of the directories of jobs in that of a run.
LIST = ENTER + """
cd "${1%/*}/" && step "${1##*/}" || exit 0
for name in [0-9]*; do [ ! -d "$name" ] || echo "$name"; done
"""

#: A process that was just killed may still create a file.
REMOVE = STOP + """
cd /
for pause in 0.1 0.3 1 3; do
  rm -rf "$1" 2>/dev/null && exit 0
  sleep "$pause"
done
rm -rf "$1"
"""


def make_path(parent: str, run_id: str) -> str:
    """The directory of a run, in which its jobs have theirs."""
    return posixpath.join(parent, f'hpcvirt-{run_id}')
