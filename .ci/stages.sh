# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Stages of .ci/run. STAGE_LIMIT_S is the number of seconds that a stage may
# take, 1800 if it is not set.

logs=.ci/logs
failed_stages=()
# Is in the environment of all processes of a stage; tox passes it on.
export HPCVIRT_STAGE=$$

# stage NAME COMMAND...: run and time a command, and print its result.
stage() {
    local name=$1 start=$SECONDS status=0
    local limit=${STAGE_LIMIT_S:-1800}
    shift
    HPCVIRT_STAGE="$$ $name"
    # In the background, so that the traps are served at once; a shell lets
    # what it starts there ignore SIGINT.
    env --default-signal=INT timeout --kill-after=60 "$limit" \
        bash -c '"$@"' "$name" "$@" >"$logs/$name.log" 2>&1 &
    wait $! || status=$?
    if [[ $status -eq 0 ]]; then
        printf '%-18s passed %5ds\n' "$name" $((SECONDS - start))
        return 0
    fi
    if ((SECONDS - start >= limit)); then
        end_processes "$name"
        echo "ended after $limit s" >>"$logs/$name.log"
    fi
    printf '%-18s FAILED %5ds (status %d, %s)\n' "$name" \
        $((SECONDS - start)) "$status" "$logs/$name.log"
    return 1
}

# end_processes NAME: end all processes of a stage, or those of all stages
# without a name, also those that have left its process group, as servers do.
end_processes() {
    local file pid
    # grep is a process of the stage too, and shall not end itself.
    env -u HPCVIRT_STAGE grep -lszx \
        "HPCVIRT_STAGE=$$ ${1:-.*}" /proc/[0-9]*/environ |
        while IFS= read -r file; do
            pid=${file#/proc/}
            kill -KILL "${pid%/environ}" 2>/dev/null || true
        done || true
}

trap 'end_processes; exit 130' INT
trap 'end_processes; exit 143' TERM

# run NAME COMMAND...: run a stage and record its failure.
run() {
    stage "$@" || failed_stages+=("$1")
}

# beside NAME COMMAND...: begin a stage that runs beside the next ones.
beside() {
    beside_name=$1
    stage "$@" &
    beside_pid=$!
}

# join: wait for the stage that "beside" has begun, and record its failure.
join() {
    wait "$beside_pid" || failed_stages+=("$beside_name")
}

# environments NAME COMMAND...: a stage of several tox environments, with a line
# for each.
environments() {
    run "$@"
    grep -E '^  [a-z0-9-]+: (OK|FAIL)' "$logs/$1.log" || true
}

# slowest FILE...: print the ten lines with the largest numbers.
slowest() {
    # sed reads all lines; "head" ends before, and "sort" then fails.
    sort -rn -- "$@" | sed -n 1,10p
}
