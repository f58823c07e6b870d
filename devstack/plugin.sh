#!/usr/bin/env bash
# The hpcvirt plugin for DevStack. DevStack sources it once per phase, with the
# mode and the phase as arguments. Every function may run more than once.

_HPCVIRT_XTRACE=$(set +o | grep xtrace)
set +o xtrace

# Run hpcvirt from the environment in which it is installed.
function _hpcvirt {
    local bin
    bin=$(get_python_exec_prefix)
    "$bin/hpcvirt" "$@"
}

# Print the name of this compute service in Nova and in the plan.
function _hpcvirt_host {
    hostname
}

# Name the file with the topology of a host.
function _hpcvirt_topology {
    echo "$HPCVIRT_DATA_DIR/topologies/$1.json"
}

# Write the topology of this host, and the plan of its flavors.
function _hpcvirt_write_plan {
    sudo install -d -o "$(id -un)" "$HPCVIRT_DATA_DIR/topologies"
    sudo chown "$(id -un)" "$HPCVIRT_DATA_DIR"
    _hpcvirt host show / --format json >"$(_hpcvirt_topology "$(_hpcvirt_host)")"
    _hpcvirt_flavor plan --format json >"$HPCVIRT_DATA_DIR/plan.json"
    "${PYTHON:-python3}" - "$HPCVIRT_DATA_DIR/plan.json" <<'EOF'
import json
import sys
with open(sys.argv[1]) as plan:
    for warning in json.load(plan)['warnings']:
        print('hpcvirt: warning:', warning['message'], *warning['subjects'])
EOF
}

# Whether the topology of this host shows huge pages of 2 MiB.
function _hpcvirt_has_huge_pages {
    "${PYTHON:-python3}" - "$(_hpcvirt_topology "$(_hpcvirt_host)")" <<'EOF'
import json
import sys
with open(sys.argv[1]) as topology:
    cells = json.load(topology)['cells']
sys.exit(not any(cell['pages'].get('2048') for cell in cells))
EOF
}

# _hpcvirt_flavor VERB...: plan or create the flavors of this host and of its
# twins. If the user asks for CPUs or pages, guests get these: the host also
# runs everything else. Without huge pages guests get half of its memory.
function _hpcvirt_flavor {
    local here host topology hosts profile=$HPCVIRT_PROFILE part=()
    here=$(_hpcvirt_host)
    topology=$(_hpcvirt_topology "$here")
    hosts=("$here=$topology")
    for host in ${HPCVIRT_TWIN_HOSTS//,/ }; do
        if [[ "$host" != "$here" ]]; then
            cp "$topology" "$(_hpcvirt_topology "$host")"
            hosts+=("$host=$(_hpcvirt_topology "$host")")
        fi
    done
    if [[ -n "$HPCVIRT_CPU_DEDICATED_SET" && "$HPCVIRT_CPU_DEDICATED_SET" != "plan" ]]; then
        part+=(--cpus "$HPCVIRT_CPU_DEDICATED_SET")
    fi
    if [[ ${#part[@]} -gt 0 || "$HPCVIRT_HUGEPAGES_2M" -gt 0 ]]; then
        profile=${profile:-$HPCVIRT_DIR/devstack/profile.yaml}
        if _hpcvirt_has_huge_pages; then
            part+=(--pages 2M)
        else
            part+=(--pages 4K:50%)
        fi
    fi
    if [[ "$HPCVIRT_CPU_SHARED_SET" == "plan" ]]; then
        # The host runs on the shared CPUs.
        profile=${profile:-$HPCVIRT_DIR/devstack/shared-profile.yaml}
    fi
    part+=(--profile "${profile:-dense}")
    _hpcvirt flavor "$@" "${part[@]}" "${hosts[@]}"
}

# _hpcvirt_planned OPTION: print the value that the plan has for this host.
function _hpcvirt_planned {
    "${PYTHON:-python3}" - "$HPCVIRT_DATA_DIR/plan.json" \
        "$(_hpcvirt_host)" "$1" <<'EOF'
import json
import sys
with open(sys.argv[1]) as plan:
    print(json.load(plan)['host_config'][sys.argv[2]].get(sys.argv[3], ''))
EOF
}

# Stop before anything is installed if a value cannot be right.
function hpcvirt_check_values {
    local faults
    if ! faults=$(HPCVIRT_CPU_DEDICATED_SET=$HPCVIRT_CPU_DEDICATED_SET \
            HPCVIRT_CPU_SHARED_SET=$HPCVIRT_CPU_SHARED_SET \
            HPCVIRT_HUGEPAGES_2M=$HPCVIRT_HUGEPAGES_2M \
            HPCVIRT_PROFILE=$HPCVIRT_PROFILE \
            HPCVIRT_SYSFS_CPU=${HPCVIRT_SYSFS_CPU:-/sys/devices/system/cpu} \
            "${PYTHON:-python3}" "$HPCVIRT_DIR/devstack/check_values.py" 2>&1); then
        die $LINENO "$faults"
    fi
}

# Reserve huge pages, and record how many were reserved before.
function hpcvirt_reserve_pages {
    local before=$HPCVIRT_DATA_DIR/nr_hugepages.before got
    [[ "$HPCVIRT_HUGEPAGES_2M" -gt 0 ]] || return 0
    sudo install -d -o "$(id -un)" "$HPCVIRT_DATA_DIR"
    if [[ ! -f "$before" ]]; then
        cat "$HPCVIRT_NR_HUGEPAGES" >"$before"
    fi
    echo 3 | sudo tee /proc/sys/vm/drop_caches >/dev/null
    echo "$HPCVIRT_HUGEPAGES_2M" | sudo tee "$HPCVIRT_NR_HUGEPAGES" >/dev/null
    got=$(cat "$HPCVIRT_NR_HUGEPAGES")
    if [[ "$got" -lt "$HPCVIRT_HUGEPAGES_2M" ]]; then
        die $LINENO "HPCVIRT_HUGEPAGES_2M: the kernel reserved $got of $HPCVIRT_HUGEPAGES_2M pages of 2 MiB; reserve them at boot (hugepages=$HPCVIRT_HUGEPAGES_2M)"
    fi
}

# Restore the previous number of huge pages.
function hpcvirt_release_pages {
    local before=$HPCVIRT_DATA_DIR/nr_hugepages.before
    if [[ -f "$before" ]]; then
        sudo tee "$HPCVIRT_NR_HUGEPAGES" >/dev/null <<<"$(cat "$before")"
        rm -f "$before"
    fi
}
HPCVIRT_NR_HUGEPAGES=${HPCVIRT_NR_HUGEPAGES:-/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages}

# Enable the filter and the weighers in addition to those of Nova.
function hpcvirt_configure_scheduler {
    local classes found
    if [[ "$HPCVIRT_FILTER" == "True" ]]; then
        # available_filters may have many lines, and its default does not
        # apply if it has one. iniset would replace all lines, and iniget
        # returns only the last one.
        found=" $(iniget_multiline "$NOVA_CONF" filter_scheduler available_filters) "
        if [[ "$found" != *" nova.scheduler.filters.all_filters "* ]]; then
            iniadd "$NOVA_CONF" filter_scheduler available_filters nova.scheduler.filters.all_filters
        fi
        if [[ "$found" != *" hpcvirt.nova.filters.all_filters "* ]]; then
            iniadd "$NOVA_CONF" filter_scheduler available_filters hpcvirt.nova.filters.all_filters
        fi
    fi
    if [[ "$HPCVIRT_WEIGHERS" == "True" ]]; then
        # A list in one line; its default does not apply if it is set.
        classes=$(iniget "$NOVA_CONF" filter_scheduler weight_classes)
        classes=${classes:-nova.scheduler.weights.all_weighers}
        if [[ ",${classes// /}," != *,hpcvirt.nova.weights.all_weighers,* ]]; then
            iniset "$NOVA_CONF" filter_scheduler weight_classes "${classes// /},hpcvirt.nova.weights.all_weighers"
        fi
    fi
}

# _hpcvirt_cpus OPTION VALUE: set a CPU list of [compute] unless it is empty.
function _hpcvirt_cpus {
    local value=$2
    if [[ "$value" == "plan" ]]; then
        value=$(_hpcvirt_planned "$1")
        if [[ -z "$value" ]]; then
            die $LINENO "HPCVIRT_${1^^}=plan: the profile ${HPCVIRT_PROFILE:-of the plugin} plans no such CPUs"
        fi
    fi
    if [[ -n "$value" ]]; then
        iniset "$NOVA_CONF" compute "$1" "$value"
    fi
}

# Configure nova-compute in nova.conf: start_nova_compute copies it to
# nova-cpu.conf, and options from local.conf are merged later.
function hpcvirt_configure_compute {
    _hpcvirt_cpus cpu_dedicated_set "$HPCVIRT_CPU_DEDICATED_SET"
    _hpcvirt_cpus cpu_shared_set "$HPCVIRT_CPU_SHARED_SET"
    if [[ "$HPCVIRT_HUGEPAGES_2M" -gt 0 ]]; then
        # libvirt looks for huge page pools only when it starts.
        restart_service libvirtd
    fi
}

# Create the flavors through the API; no service needs a restart.
function hpcvirt_create_flavors {
    OS_CLOUD=${OS_CLOUD:-devstack-admin} _hpcvirt_flavor apply --apply
}

# Install what builds the image for benchmarks, and the benchmarks that run
# natively.
function hpcvirt_install_benchmarks {
    local packages
    mapfile -t packages < <(grep -v '^#' "$HPCVIRT_DIR/contrib/guest_image/packages")
    install_package "${packages[@]}"
}

# Build the image for benchmarks, upload it, and record its id.
function hpcvirt_upload_image {
    local python image=$HPCVIRT_DATA_DIR/guest
    python=$(get_python_exec_prefix)/python3
    sudo install -d -o "$(id -un)" "$HPCVIRT_DATA_DIR"
    sudo env PYTHON="$python" "$HPCVIRT_DIR/contrib/guest_image/build" "$image"
    OS_CLOUD=${OS_CLOUD:-devstack-admin} "$python" "$HPCVIRT_DIR/contrib/guest_image/upload.py" benchmarks "$image" >"$HPCVIRT_DATA_DIR/benchmark_image"
}

# Set the options of the tests that measure. The guests of the other tests have
# the same image, because Tempest has one user for all guests.
function hpcvirt_configure_benchmarks {
    local image
    image=$(cat "$HPCVIRT_DATA_DIR/benchmark_image")
    iniset "$TEMPEST_CONFIG" hpcvirt benchmarks "$HPCVIRT_BENCHMARKS"
    iniset "$TEMPEST_CONFIG" hpcvirt native "$HPCVIRT_NATIVE"
    iniset "$TEMPEST_CONFIG" hpcvirt benchmark_image_ref "$image"
    iniset "$TEMPEST_CONFIG" hpcvirt guest_image_ref "$image"
    iniset "$TEMPEST_CONFIG" validation image_ssh_user root
}

# Whether Tempest measures, on this node.
function _hpcvirt_measures {
    [[ "$HPCVIRT_TEMPEST" == "True" && -n "$HPCVIRT_BENCHMARKS" ]] && is_service_enabled tempest
}

# Set the options of the Tempest plugin.
function hpcvirt_configure_tempest {
    iniset "$TEMPEST_CONFIG" hpcvirt weighers "$HPCVIRT_WEIGHERS"
    iniset "$TEMPEST_CONFIG" hpcvirt plan_file "$HPCVIRT_DATA_DIR/plan.json"
    iniset "$TEMPEST_CONFIG" hpcvirt topology_dir "$HPCVIRT_DATA_DIR/topologies"
    if is_service_enabled neutron && [[ "${NEUTRON_CREATE_INITIAL_NETWORKS:-True}" == "True" ]]; then
        # lib/tempest sets no network in this case. The private network has a
        # router to the public network, for floating IP addresses.
        iniset "$TEMPEST_CONFIG" hpcvirt guest_network "$PRIVATE_NETWORK_NAME"
    fi
    if [[ -n "$HPCVIRT_PCI_ALIAS" ]]; then
        iniset "$TEMPEST_CONFIG" hpcvirt pci_alias "$HPCVIRT_PCI_ALIAS"
        iniset "$TEMPEST_CONFIG" hpcvirt guest_pci_alias "$HPCVIRT_PCI_ALIAS"
    fi
    if is_service_enabled n-cpu && [[ -n "$HPCVIRT_CPU_DEDICATED_SET" ]]; then
        # Without dedicated CPUs no flavor of the plan can boot.
        iniset "$TEMPEST_CONFIG" hpcvirt libvirt_uri qemu:///system
        iniset "$TEMPEST_CONFIG" hpcvirt hosts "${HPCVIRT_TWIN_HOSTS:-$(_hpcvirt_host)}"
        iniset "$TEMPEST_CONFIG" hpcvirt guest_plan_file "$HPCVIRT_DATA_DIR/plan.json"
        if [[ -n "$HPCVIRT_TWIN_HOSTS" ]]; then
            iniset "$TEMPEST_CONFIG" hpcvirt twin_hosts "$HPCVIRT_TWIN_HOSTS"
        fi
    fi
    if _hpcvirt_measures; then
        hpcvirt_configure_benchmarks
    fi
}

function hpcvirt_stack {
    case "$1" in
    pre-install)
        # Pages are easiest to reserve before other services use the memory.
        if is_service_enabled n-cpu; then
            hpcvirt_check_values
            hpcvirt_reserve_pages
        fi
        ;;
    install)
        # In the environment of nova-scheduler and nova-api; without the extra
        # "nova", since Nova is already installed.
        setup_develop "$HPCVIRT_DIR"
        if [[ -n "$HPCVIRT_BENCHMARKS" ]]; then
            hpcvirt_install_benchmarks
        fi
        ;;
    post-config)
        # Neutron's part of nova.conf is written in the background.
        async_wait configure_neutron_nova
        if is_service_enabled n-cpu; then
            _hpcvirt_write_plan
            hpcvirt_configure_compute
        fi
        if is_service_enabled n-sch; then
            hpcvirt_configure_scheduler
        fi
        ;;
    extra)
        if [[ "$HPCVIRT_FLAVORS" == "True" ]] && is_service_enabled n-api && is_service_enabled n-cpu; then
            hpcvirt_create_flavors
        fi
        if _hpcvirt_measures; then
            hpcvirt_upload_image
        fi
        ;;
    test-config)
        if [[ "$HPCVIRT_TEMPEST" == "True" ]] && is_service_enabled tempest; then
            hpcvirt_configure_tempest
        fi
        ;;
    esac
}

if is_service_enabled hpcvirt; then
    case "$1" in
    stack)
        hpcvirt_stack "$2"
        ;;
    unstack)
        # The plugin has no service to stop.
        hpcvirt_release_pages
        ;;
    clean)
        hpcvirt_release_pages
        sudo rm -rf "$HPCVIRT_DATA_DIR"
        ;;
    esac
fi

$_HPCVIRT_XTRACE
