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
        end_processes
        echo "ended after $limit s" >>"$logs/$name.log"
    fi
    printf '%-18s FAILED %5ds (status %d, %s)\n' "$name" \
        $((SECONDS - start)) "$status" "$logs/$name.log"
    return 1
}

# end_processes: end all processes of the stage, also those that have left its
# process group, as servers do.
end_processes() {
    local file pid
    grep -lszxF "HPCVIRT_STAGE=$HPCVIRT_STAGE" /proc/[0-9]*/environ |
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

# environments NAME COMMAND...: a stage of several tox environments, three at a
# time, with a line for each.
environments() {
    run "$@"
    grep -E '^  [a-z0-9-]+: (OK|FAIL)' "$logs/$1.log" || true
}
