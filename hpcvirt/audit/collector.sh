#!/bin/sh
# Write what hpcvirt reads of a host to standard output, as a tar file:
#
#     ssh root@HOST sh <SCRIPT >HOST.tar
#     sh SCRIPT [ROOT] >HOST.tar
#
# It needs a POSIX shell and the usual tools (GNU's or busybox's), and changes
# nothing. Of the configuration of Nova it takes the options that the audit
# reads, of other files in /etc those words, and no environment of a process.
# The first file of the output says what was looked for.

fail() {
    echo "hpcvirt: $1" >&2
    exit 2
}

export LC_ALL=C
umask 077
! [ -t 1 ] || fail 'send the output to a file: sh SCRIPT >HOST.tar'
cd "${1:-/}" || exit 2
[ -d sys/devices/system/cpu ] || fail "${1:-/} has no sys/devices/system/cpu"
out=$(mktemp -d) || exit 2
export out
trap 'rm -rf "$out"' EXIT
trap 'exit 2' HUP INT PIPE TERM
list=$out/hpcvirt-capture
user=$(id -u)

# Note that a file or a folder cannot be read.
hidden() {
    printf '!%s\n' "$1" >>"$list"
}

# Make the folders of files that are named.
make_folders() {
    sed 's|/[^/]*$||; s/./\\&/g' | sort -u | (cd "$out" && xargs mkdir -p)
}

# take HOW PATTERN: note the pattern, and do what HOW says with what matches
take() {
    printf '%s\n' "$2" >>"$list"
    how=$1
    pattern=$2
    IFS=
    # shellcheck disable=SC2086
    set -- $pattern
    if [ -e "$1" ]; then
        [ "$how" = copy ] || printf '%s\n' "$@" | make_folders
        "$how" "$@"
    fi
    # Root sees all folders; for another user, some may look empty.
    while [ "$user" != 0 ] && [ "$pattern" != "${pattern%/*}" ]; do
        pattern=${pattern%/*}
        # shellcheck disable=SC2086
        set -- $pattern
        for name in "$@"; do
            ! [ -d "$name" ] || { [ -r "$name" ] && [ -x "$name" ]; } ||
                hidden "$name"
        done
    done
    unset IFS
}

# Copy files as they are: all at once, with a few processes.
copy() {
    printf '%s\n' "$@" >>"$out/names"
}
copy_all() {
    [ -e "$out/names" ] || return 0
    make_folders <"$out/names"
    # shellcheck disable=SC2016
    sed 's/./\\&/g' "$out/names" |
        xargs sh -c 'cp --parents "$@" "$out" 2>/dev/null' sh
    while IFS= read -r name; do
        if [ -f "$name" ] && ! [ -s "$out/$name" ]; then
            # An empty file, or one that cannot be read, or has gone.
            cat "$name" >/dev/null 2>&1 </dev/null &&
                [ -e "$out/$name" ] && continue
            rm -f "$out/$name"
            ! [ -e "$name" ] || hidden "$name"
        fi
    done <"$out/names"
}

# Only say that folders are there: NAME/...
folder() {
    for name in "$@"; do
        : >"$out/${name}captured"
    done
}

# pass PROGRAM NAME...: copy what a program leaves of files
pass() {
    program=$1
    shift
    for name in "$@"; do
        [ -f "$name" ] || continue
        # A link of another user may lead to a file of the kernel without end,
        # or be exchanged for one, or for a pipe, before it is opened.
        case $name,$(readlink -f "$name") in
            proc/*) ;;
            *,/proc/* | *,/sys/*) hidden "$name" && continue ;;
        esac
        if timeout 3 head -c 1048576 "$name" >"$out/text" 2>/dev/null; then
            "$program" <"$out/text" >"$out/$name"
        else
            hidden "$name"
        fi
    done
}

# Keep the lines of some options; what Nova would refuse stays wrong.
nova() {
    pass keep_options "$@"
}
keep_options() {
    awk -v options=' @OPTIONS@ ' '
        { sub(/[ \t\r]+$/, "") }
        !NF { kept = 0; print ""; next }
        /^[ \t]/ { print kept ? $0 : " hidden"; next }
        { kept = 0 }
        /^\[[A-Za-z0-9_.:-]+\]$/ { print; next }
        /^\[.+\]$/ { print "[hidden]"; next }
        /^\[/ { print "["; next }
        /^[#;]/ { print "#"; next }
        {
            end = match($0, /[=:]/)
            key = substr($0, 1, end - 1)
            sub(/[ \t]+$/, "", key)
            kept = key != "" && index(options, " " key " ")
            print kept ? $0 : !end ? "hidden" : key == "" ? "=" : "hidden ="
        }'
}

# Keep words about virtual functions and NVSwitches.
creator() {
    pass keep_words "$@"
}
keep_words() {
    grep -oEi '@WORDS@' || [ $? -eq 1 ]
}

# Hide the values of kernel parameters that may have secrets, as addresses may.
parameters() {
    pass hide_secrets "$@"
}
hide_secrets() {
    secret='passw|passphrase|pass[=:]|pwd|psk|secret|token|credential|key'
    awk -v secret="$secret|[@?]|://" '{
        if (gsub(/"/, "\"") % 2) $0 = $0 "\""
        line = ""
        for (; match($0, /("[^"]*"|[^ "])+/); ) {
            word = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            if (tolower(word) ~ secret) {
                sub(/^"/, "", word)
                word = substr(word, 1, index(word, "=")) "hidden"
            }
            line = line (line == "" ? "" : " ") word
        }
        print line
    }'
}

latency() {
    od -An -td4 -N4 "$1" >"$out/$1" 2>/dev/null ||
        { rm "$out/$1" && hidden "$1"; }
}

# tool NAME PATTERN PROGRAM...: keep the lines with a pattern that it prints
tool() {
    name=output/$1
    pattern=$2
    shift 2
    printf '%s\n' "$name" >>"$list"
    # Programs describe this host, and not a copy of another one.
    [ "$1" = find ] || [ "$PWD" = / ] || return 0
    command -v "$1" >/dev/null || return 0
    timeout 60 "$@" >"$out/text" 2>/dev/null </dev/null || return 0
    mkdir -p "$out/output"
    grep -E "$pattern" "$out/text" | head -c 1048576 >"$out/$name"
}

while read -r how pattern; do
    take "$how" "$pattern"
done <<'END'
@TABLE@
END
copy_all

PATH=$PATH:/usr/sbin:/sbin:/opt/rocm/bin
set -f
while read -r name pattern program; do
    # shellcheck disable=SC2086
    tool "$name" "$pattern" $program
done <<'TOOLS'
@TOOLS@
TOOLS
set +f

# The files that nova-compute names, if it is a program of root or of nova.
owners=" 0 $(id -u nova 2>/dev/null) $(stat -c %u etc/nova 2>/dev/null) "
for process in "$out"/proc/[0-9]*; do
    if ! [ -s "$process/status" ] || ! [ -s "$process/comm" ]; then
        rm -rf "$process" # It has ended meanwhile.
        continue
    fi
    read -r name <"$process/comm"
    [ "$name" = nova-compute ] || continue
    case $owners in
        *" $(awk '/^Uid:/ { print $2 }' "$process/status") "*) ;;
        *) rm "$process/comm" && continue ;;
    esac
    cat "${process#"$out"/}/cmdline" 2>/dev/null | tr '\0' '\n' | sed -nE '
        1s/.*/nova-compute/p
        /^--config-(file|dir)=/p
        /^--config-(file|dir)$/{p;n;p;}' >"$out/words"
    tr '\n' '\0' <"$out/words" >"$process/cmdline"
    sed -E 's/^--config-[a-z]*=//; s|^/+||' "$out/words" | while read -r word; do
        case $word in
            proc/* | sys/* | dev/* | nova-compute | -* | '') ;;
            .. | ../* | */.. | */../*) ;; # It leads out of the copy.
            *) take nova "$word" && take nova "$word/*.conf" ;;
        esac
    done
    rm "$out/words"
done

count=$(grep '^!' "$list" | sort -u | wc -l)
[ "$count" -eq 0 ] ||
    echo "hpcvirt: $((count)) files could not be read; capture as root" >&2
cd "$out" && tar -cf - hpcvirt-capture ./*/
