# SPDX-License-Identifier: Apache-2.0

"""The shell scripts that check a directory of programs."""

from hpcvirt.bench.execute import job_scripts

#: ``trust DIRECTORY`` refuses a directory of programs if other users can
#: replace its files. Its group is trusted, since an administrator must have
#: set it on purpose.
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
      exit {job_scripts.REFUSED}
    }} || exit
    [ "$here" != / ] || exit 0
    cd .. || exit
    here=$(pwd -P)
  done
)
"""

#: ``trust_path DIRECTORY`` creates a directory of programs if it is missing,
#: and checks it with ``trust``. It enters, and creates, each level separately,
#: and follows links of the caller and of root only.
TRUST_PATH = TRUST + f"""
trust_path() (
  self=$(id -u)
  set -f
  IFS=/
  set -- $1
  unset IFS
  cd / || exit
  for name; do
    case $name in
    '' | .) continue ;;
    ..) cd -P .. && continue || exit ;;
    esac
    above=$(pwd -P)
    above=${{above%/}}
    if [ -L "./$name" ]; then
      ls -ldn "./$name" | {{
        read -r mode links owner rest
        case $owner in "$self" | 0) exit 0 ;; esac
        echo "$above/$name is a symbolic link of user $owner" >&2
        exit {job_scripts.REFUSED}
      }} || exit
      cd -P "./$name" || exit
      continue
    fi
    [ -d "./$name" ] || mkdir "./$name" || [ -d "./$name" ] || exit
    cd -P "./$name" || exit
    # Another user may just have replaced the directory with a link.
    [ "$(pwd -P)" = "$above/$name" ] || {{
      echo "$above/$name is a symbolic link" >&2
      exit {job_scripts.REFUSED}
    }}
  done
  trust .
)
"""
