#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A benchmark whose speed a server decides, and not the machine on which it
# runs: it downloads lines that the server sends at a steady rate. The time
# begins with the first line. The clock of busybox has no fractions of a
# second; that of the kernel does, in the third line of a file.
busybox wget -q -O - "URL" | busybox awk -v clock=/proc/timer_list '
    function now(line, words) {
        getline line < clock
        getline line < clock
        getline line < clock
        close(clock)
        if (line !~ /^now at/)
            exit 1
        split(line, words, " ")
        return words[3]
    }
    NR == 1 { begin = now() }
    END {
        if (NR != LINES || !begin)
            exit 1
        printf "rate: %.6f\n", 1e9 * (NR - 1) / (now() - begin)
    }'
