#!/usr/bin/env bash
# Runs the loom tests, then once for each rule of the protocol with that rule broken on purpose: then some test has to fail.
# With names, only these mutations: ci/loom.sh [MUTATION]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../loom-tests"
export CARGO_TARGET_DIR=../target/loom RUSTFLAGS="--cfg loom" RUSTC_WRAPPER="$PWD/../ci/mutate.sh"

# Cargo does not know what the wrapper adds: nothing built with one mutation may be used with another, or later.
forget() { cargo clean --locked --quiet --release --package koel --package koel-loom-tests; }
trap forget EXIT

[ $# -gt 0 ] || {
    forget
    cargo test --locked --release -- --nocapture
    set -- relocate_without_sequence sequence_before_copy count_after_copy remove_without_sequence keep_extra_copy \
        read_without_validation insert_count_after_copy keep_undone_count insert_without_claim \
        batch_without_validation batch_reuses_home_word \
        trust_owed_copies look_again_only_once keep_lost_count
}
# Under a mutation a rule has to fail, not the floor under the number of executions.
export KOEL_LOOM_IGNORE_FLOORS=1
missed=0
for mutation in "$@"; do
    export KOEL_MUTATION=$mutation
    forget
    cargo test --locked --release --no-run --quiet
    if output=$(cargo test --locked --release --no-fail-fast 2>&1); then
        echo "$mutation: MISSED by all tests" >&2
        missed=1
        continue
    fi
    failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' <<<"$output" | sort -u | paste -sd ' ')
    if [ -z "$failed" ]; then
        printf '%s\n%s: no test failed, but the run did\n' "$output" "$mutation" >&2
        exit 1
    fi
    echo "$mutation: caught by $failed"
done
exit "$missed"
