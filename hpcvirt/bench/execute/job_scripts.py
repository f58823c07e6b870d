# SPDX-License-Identifier: Apache-2.0

"""The shell scripts of jobs, and the directories that they use.

The directory of a job has programs that are executed. It is below a directory
that no other user can change: ``hpcvirt`` in ``$XDG_STATE_HOME`` of the
machine, by default ``~/.local/state``, or one that the user has named, such as
one on a local disk where homes are shared.

The scripts of a job take its directory as ``$1``; one that is not absolute is
below ``hpcvirt``. The machine needs a POSIX shell, /proc, and ``date``,
``head``, ``readlink`` and ``setsid`` of GNU or busybox.

Files in the directory: ``command`` (the shell commands), ``stdout``,
``stderr``, ``boot`` (id of the boot in which the job was prepared), ``host``
(the name of the machine), ``pid`` (process id and start time of the job's
leader), and ``status`` (exit status, start and end time), which appears
atomically when the program has ended.
"""

import posixpath

from hpcvirt.bench.parsers import text

#: Exit status of a script that refuses a directory.
REFUSED = 78

#: ``resolve DIRECTORY`` prints the absolute path of a directory.
RESOLVE = """
resolve() {
  case $1 in /*) echo "$1" && return ;; esac
  case ${XDG_STATE_HOME:-} in
  /*) echo "$XDG_STATE_HOME/hpcvirt/$1" ;;
  *) echo "${HOME:?}/.local/state/hpcvirt/$1" ;;
  esac
}
"""

#: ``enter DIRECTORY`` changes to a directory; its status is 1 if there is
#: none.
ENTER = RESOLVE + """
enter() {
  directory=$(resolve "$1") || exit
  [ -d "$directory" ] || return 1
  cd -P "$directory" || exit
}
"""

#: ``create DIRECTORY`` makes the directory of a job, which only the user can
#: enter, and changes to it. A parent that was named must be of this user,
#: and nobody else may write to it.
CREATE = ENTER + f"""
create() {{
  directory=$(resolve "$1") || exit
  parent=${{directory%/*/*}}
  (umask 077 && mkdir -p "$parent") && cd "$parent" || exit
  case $1 in
  /*)
    self=$(id -u)
    ls -ldn . | {{
      mode= owner=
      read -r mode links owner rest
      case $owner:$mode in
      "$self":d????-??-*) exit 0 ;;
      esac
      echo "$parent belongs to user $owner with mode $mode; it must be that" \
        "of user $self, and nobody else may write to it" >&2
      exit {REFUSED}
    }} || exit ;;
  esac
  (umask 077 && mkdir -p "$directory") && cd -P "$directory" || exit
}}
"""

#: ``look PID`` sets ``state``, ``session``, ``terminal`` (0 for none),
#: ``began`` (ticks since boot) and ``memory`` (bytes of virtual memory) from
#: fields 3, 6, 7, 22 and 23 of /proc/PID/stat (proc(5)). They are empty if
#: there is no such process. Field 2, the name of the program, may contain
#: spaces, parentheses and newlines.
LOOK = """
look() {
  state= session= terminal= began= memory=
  last=
  while read -r line; do last=$line; done < "/proc/$1/stat" || return
  set -- ${last##*) }
  state=$1 session=$4 terminal=$5 began=${20} memory=${21}
} 2>/dev/null
"""

#: Exit status of a script if the directory is missing, or was prepared before
#: the machine restarted, so that its files may be lost.
NOT_PREPARED = 18

#: ``boot`` prints the id of the boot; ``enter_prepared DIRECTORY`` changes to
#: the directory of a job that was prepared in this boot.
_BOOT = f"""
boot() {{
  cat /proc/sys/kernel/random/boot_id 2>/dev/null || :
}}
enter_prepared() {{
  enter "$1" || exit {NOT_PREPARED}
  [ "$(cat boot 2>/dev/null)" = "$(boot)" ] || exit {NOT_PREPARED}
}}
"""

#: Writes the command from standard input to the directory, unless the job was
#: started, and prints the absolute path of the directory. It overwrites an
#: earlier command, which a broken connection may have truncated.
PREPARE = 'set -eu' + CREATE + _BOOT + """
create "$1"
pwd
umask 077
[ ! -d started ] || exit 17
cat > command
uname -n > host
boot > boot
"""

#: Runs the command that PREPARE wrote, and stops it after $2 seconds unless 0.
#: setsid creates a session and a process group, which outlives the connection
#: and which the watchdog can stop as a whole. The leader of the group survives
#: the TERM and writes the status. A TERM that is not the watchdog's comes from
#: a batch system or a machine that ends everything: the job is lost then, and
#: what the program still printed is no result. The leader and the program do
#: not get the signal at the same moment, so the leader waits after a program
#: that a signal has killed. Finally it kills the group including the
#: watchdog, so that no process disturbs the next sample; it uses KILL because
#: a shell that has not set its trap yet would lose a TERM. "status" is renamed
#: into place so that no reader sees a part of it. A second start has no
#: effect, so that a start whose answer was lost can be repeated.
START = 'set -eu' + ENTER + _BOOT + """
enter_prepared "$1"
mkdir started 2>/dev/null || exit 0
setsid sh -c '""" + LOOK + """
look $$
echo "$$ $began" > pid
ended=
trap ended=yes TERM
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
else
  [ "$status" -le 128 ] || sleep 0.5
  [ -z "$ended" ] || [ "$status" = 0 ] || kill -KILL 0
fi
finish "$status"
kill -KILL 0
' job "$2" > stdout 2> stderr < /dev/null &
"""

#: How many bytes of a file are read: one more than a parser accepts, so that
#: it refuses a longer file.
LIMIT_BYTES = text.LIMIT_BYTES + 1

#: Prints "done STATUS BEGIN END", "running", "starting", "lost", "absent", or
#: "flooding" if the program has printed more than a parser accepts. The job
#: may end between two commands of this script, so it checks the status again
#: if the leader has ended. A killed leader may remain as a zombie.
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

#: Prints the beginnings of the files that are named after the directory, each
#: after a line with its name and how many bytes follow.
READ = ENTER + f"""
enter "$1" || exit 0
shift
for name; do
  [ -f "./$name" ] || continue
  size=$(wc -c < "./$name") || exit
  [ "$size" -le {LIMIT_BYTES} ] || size={LIMIT_BYTES}
  printf '%s %d\\n' "$name" "$size"
  [ "$size" = 0 ] || head -c "$size" "./$name" || exit
done
"""

#: Writes standard input to the job's file $2.
WRITE = 'set -eu' + ENTER + _BOOT + """
enter_prepared "$1"
umask 077
cat > "./$2"
chmod 700 "./$2"
"""

#: Stops the processes of a job. It first waits for the process id of a job
#: that was just started. The processes of a job are those of its session, and
#: those of its user without a terminal whose working directory is the job's:
#: mpirun puts each rank into its own process group, and starts ranks on other
#: machines in the same directory. The leader is killed first, so that it
#: writes no status. TERM lets mpirun stop its ranks on all machines. Start
#: times are compared because a process id may have been reused. Kernel
#: threads, which have no memory, are skipped to save calls of readlink.
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
self=$(id -u)
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

#: Prints those of the given directories that exist.
FIND = RESOLVE + """
for given; do
  at=$(resolve "$given") || exit
  [ ! -d "$at" ] || echo "$given"
done
"""

#: Prints the names of the directories of jobs of this machine in the directory
#: of a run. Other machines may have the same home.
LIST = ENTER + """
enter "$1" || exit 0
for name in [0-9]*; do
  [ -d "$name" ] || continue
  host=
  [ ! -f "$name/host" ] || read -r host < "$name/host"
  case $host in '' | "$(uname -n)") echo "$name" ;; esac
done
"""

#: Removes the directory of a run, unless it has those of jobs.
LEAVE = ENTER + """
enter "$1" && cd .. && rmdir "./${1##*/}" 2>/dev/null || :
"""

#: Removes a directory with all that is in it.
REMOVE_ALL = RESOLVE + """
rm -rf "$(resolve "$1")"
"""

#: Stops the job and removes its directory. It repeats the removal because a
#: process that was just killed may still create a file.
REMOVE = STOP + """
for pause in 0.1 0.3 1 3; do
  rm -rf "$directory" 2>/dev/null && exit 0
  sleep "$pause"
done
rm -rf "$directory"
"""


def make_path(parent: str, run_id: str) -> str:
    """Return the path of the directory of a run.

    :param parent: an absolute path, or empty for the user's own directory
    """
    return posixpath.join(parent, f'run-{run_id}')


def name_path(directory: str) -> str:
    """Name a directory in a message."""
    return posixpath.join('~/.local/state/hpcvirt', directory)
