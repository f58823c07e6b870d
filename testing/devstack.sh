#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The functions of DevStack that the plugin calls, with the behaviour that it
# depends on: values are split at white space, iniget returns one line, iniset
# replaces every line of an option. HARNESS_DEVSTACK names a clone of DevStack
# whose functions are used instead, HARNESS_BIN the programs of its Python.
#
# Usage: devstack.sh PHASES...; a phase is "settings" or "MODE/PHASE". Calls that
# would change the machine are written to $CALLS.

set -o errexit
TOP_DIR=$WORK
DATA_DIR=$WORK/data
NOVA_CONF=$WORK/nova.conf
TEMPEST_CONFIG=$WORK/tempest.conf
export TOP_DIR DATA_DIR NOVA_CONF TEMPEST_CONFIG
PRIVATE_NETWORK_NAME=${PRIVATE_NETWORK_NAME:-private}
NOVA_FILTERS=${NOVA_FILTERS:-ComputeFilter,SameHostFilter}
touch "$NOVA_CONF" "$TEMPEST_CONFIG" "$CALLS"

if [[ -n "${HARNESS_DEVSTACK:-}" ]]; then
    # shellcheck disable=SC1091
    source "$HARNESS_DEVSTACK/functions"
else
    function lines_of { # FILE SECTION OPTION
        awk -v section="[$2]" -v option="$3" '
            /^\[/ { inside = ($0 == section) }
            inside {
                key = $0
                sub(/[ \t]*=.*/, "", key)
                if (key == option) { sub(/^[^=]*=[ \t]*/, ""); print }
            }
            ' "$1"
    }
    function iniget_multiline {
        local found
        found=$(lines_of "$@")
        # shellcheck disable=SC2086,SC2116
        echo $found
    }
    function iniget { lines_of "$@" | tail -n 1; }
    function put { # FILE SECTION OPTION VALUE...: replace all lines
        local file=$1 section=$2 option=$3 value
        shift 3
        grep -q "^\[$section\]" "$file" || printf '\n[%s]\n' "$section" >>"$file"
        awk -v section="[$section]" -v option="$option" '
            /^\[/ { inside = ($0 == section) }
            {
                key = $0
                sub(/[ \t]*=.*/, "", key)
                if (!(inside && key == option)) print
            }
            ' "$file" >"$file.new"
        value=$(for item in "$@"; do printf '%s = %s\\n' "$option" "$item"; done)
        awk -v section="[$section]" -v added="$value" '
            { print } $0 == section { printf "%s", added }
            ' "$file.new" >"$file"
        rm "$file.new"
    }
    function iniset { put "$1" "$2" "$3" "$4"; }
    function iniadd {
        local file=$1 section=$2 option=$3 old
        shift 3
        old=$(iniget_multiline "$file" "$section" "$option")
        # shellcheck disable=SC2086,SC2068
        put "$file" "$section" "$option" $old $@
    }
    function trueorfalse {
        case "${!2:-}" in
        1 | yes | Yes | YES | true | True | TRUE) echo True ;;
        0 | no | No | NO | false | False | FALSE) echo False ;;
        *) echo "$1" ;;
        esac
    }
    function define_plugin { :; }
    function enable_service { ENABLED_SERVICES="$ENABLED_SERVICES,$1"; }
    function is_service_enabled { # true if any of them is
        local name
        for name in "$@"; do
            if [[ ",$ENABLED_SERVICES," == *",$name,"* ]]; then
                return 0
            fi
            if [[ "$name" == neutron && ",$ENABLED_SERVICES" == *,q-* ]]; then
                return 0
            fi
        done
        return 1
    }
    function die { # LINE MESSAGE
        shift
        echo "ERROR: $*" >&2
        exit 1
    }
fi

function install_package {
    echo "install_package $*" >>"$CALLS"
}
function setup_develop {
    echo "setup_develop $*" >>"$CALLS"
}
function async_wait {
    echo "async_wait $*" >>"$CALLS"
}
function restart_service {
    echo "restart_service $*" >>"$CALLS"
}
function get_python_exec_prefix {
    echo "${HARNESS_BIN:-$WORK/bin}"
}
function sudo {
    if [[ "${HARNESS_FEW_PAGES:-}" && "$1" == tee && "$2" == "$HPCVIRT_NR_HUGEPAGES" ]]; then
        echo 1 >"$2"
        return
    fi
    "$@"
}

for phase in "$@"; do
    if [[ "$phase" == settings ]]; then
        # shellcheck disable=SC1091
        source "$PLUGIN/settings"
    else
        # shellcheck disable=SC1091
        source "$PLUGIN/plugin.sh" "${phase%%/*}" "${phase#*/}"
    fi
done
echo "NOVA_FILTERS=$NOVA_FILTERS"
echo "TEMPEST_PLUGINS=${TEMPEST_PLUGINS:-}"
case $- in *x*) echo xtrace=on ;; *) echo xtrace=off ;; esac
