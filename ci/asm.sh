#!/usr/bin/env bash
# Counts the instructions of single operations and of a batch's step for each key, and fails if one takes 5% more than ci/instructions.txt
# says, as it does when a call is no longer inlined. Counted under callgrind, hence without AVX-512: batches run on AVX2.
#   ci/asm.sh            compares
#   ci/asm.sh --update   writes the file anew, after a change that is meant (or another compiler)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

limits=ci/instructions.txt
count=16384
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: not an x86-64 machine"; exit 0; }
grep -qw avx2 /proc/cpuinfo || { echo "SKIPPED: no AVX2"; exit 0; }
ci/apt.sh valgrind libc6-dbg # without the C library's symbols valgrind may refuse to start
binary=$(cargo build --locked --release -p koel-bench --bin instructions --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\/instructions\)".*/\1/p')

# All instructions of a run.
instructions() {
    local output
    output=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$@" 2>&1) || {
        echo "$output" >&2
        return 1
    }
    sed -n 's/.*Collected : \([0-9][0-9]*\).*/\1/p' <<<"$output" | grep . || { echo "nothing was counted" >&2; return 1; }
}

# Instructions for each key: what twice as many keys take more.
per_key() {
    local once twice
    once=$(instructions "$1" "$count") || return 1
    twice=$(instructions "$1" "$((2 * count))") || return 1
    awk -v once="$once" -v twice="$twice" -v count="$count" 'BEGIN { printf "%.1f\n", (twice - once) / count }'
}

header=$(grep '^#' "$limits")
lines=
failed=0
while read -r operation limit; do
    measured=$(per_key "$operation") || exit 1
    lines+=$(printf '%-26s %6.1f' "$operation" "$measured")$'\n'
    verdict=$(awk -v measured="$measured" -v limit="$limit" 'BEGIN {
        if (measured > limit * 1.05) print "TOO MANY"
        else if (measured < limit * 0.95) print "fewer than before: ci/asm.sh --update keeps it so"
        else print "ok" }')
    printf '%-26s %6.1f instructions for each key, limit %s + 5%%: %s\n' "$operation" "$measured" "$limit" "$verdict"
    [ "$verdict" != "TOO MANY" ] || failed=1
done < <(grep -v '^#' "$limits")

if [ "${1:-}" = --update ]; then
    printf '%s\n%s' "$header" "$lines" >"$limits"
    echo "wrote $limits"
elif [ "$failed" = 1 ]; then
    echo "Some operation takes more instructions than it did (see TOO MANY above). Is a call on its way no longer inlined?" >&2
    echo "If the change is meant: ci/asm.sh --update" >&2
    exit 1
fi
