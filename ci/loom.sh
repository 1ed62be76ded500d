#!/usr/bin/env bash
# Runs the loom tests, then once for each rule of the protocol with that rule broken on purpose: then some test has to fail.
# With names, only these mutations: ci/loom.sh [MUTATION]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../loom-tests"

export CARGO_TARGET_DIR=../target/loom RUSTFLAGS="--cfg loom"
if [ $# -eq 0 ]; then
    cargo test --locked --release --tests
    set -- relocate_without_sequence sequence_before_copy count_after_copy remove_without_sequence keep_extra_copy
fi

# A mutation is a cfg of the crate alone, so that nothing else is built again; for that cargo has but an unstable option.
export RUSTC_BOOTSTRAP=1
missed=0
for mutation in "$@"; do
    mutated=(--locked --release --tests -Zprofile-rustflags
        --config "profile.release.package.koel.rustflags = ['--cfg', 'koel_mutation=\"$mutation\"']")
    cargo test "${mutated[@]}" --no-run --quiet
    output=$(cargo test "${mutated[@]}" --no-fail-fast 2>&1) || true
    # A test that explored too little has failed, but has caught nothing.
    caught=$(awk '/^---- .* stdout ----$/ { test = $2; failed[test] }
        / executions explored, expected / { delete failed[test] }
        END { for (test in failed) print test }' <<<"$output" | sort | paste -sd ' ')
    if [ -n "$caught" ]; then
        echo "$mutation: caught by $caught"
    else
        printf '%s\n%s: MISSED by all tests\n' "$output" "$mutation" >&2
        missed=1
    fi
done
exit "$missed"
