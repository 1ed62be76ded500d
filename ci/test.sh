#!/usr/bin/env bash
# Runs every check: in under 15 minutes on two cores, from nothing. Each is a command or script of its own, to be run by hand as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

running=start
trap '[ $? -eq 0 ] || echo "=== FAILED: $running (after $SECONDS s)" >&2' EXIT

step() {
    running=$1
    shift
    local start=$SECONDS
    echo "=== $running"
    "$@"
    echo "=== $running: $((SECONDS - start)) s"
}

# The backends of this processor have to be found, or their tests would be skipped.
if [ "$(uname -m)" = x86_64 ]; then
    backends=swar
    ! grep -qw avx2 /proc/cpuinfo || backends+=,avx2
    ! { grep -qw avx512f /proc/cpuinfo && grep -qw avx512dq /proc/cpuinfo; } || backends+=,avx512
fi

# Compiles one after the other, and runs side by side: most tests have one thread.
tests() {
    local log=target/tests-without-features.log failed=0
    cargo test --locked --all-features --no-run
    cargo test --locked --no-default-features --no-run
    cargo test --locked --no-default-features >"$log" 2>&1 &
    KOEL_REQUIRE_BACKENDS=${backends:-swar} cargo test --locked --all-features || failed=1
    wait $! || failed=1
    echo "=== tests, no features"
    cat "$log"
    return "$failed"
}

# Examples, from what the tests have built.
example() {
    local name=$1
    shift
    cargo run --locked --all-features --profile test --example "$name" -- "$@"
}

dedup() {
    local unique
    example dedup target/keys >target/keys.unique
    cat target/keys target/keys.unique >target/keys.twice
    example dedup target/keys.twice >target/keys.unique
    unique=$(sort -u target/keys.unique | wc -l)
    # At most one in ten thousand may be taken for another.
    if [ "$unique" -lt 19980 ] || [ "$unique" -ne "$(wc -l <target/keys.unique)" ]; then
        echo "dedup passed on $unique different lines of 20000" >&2
        return 1
    fi
}

step "lint" ci/lint.sh
step "tests" tests
step "loom" ci/loom.sh
step "real keys" ci/real-keys.sh
step "batches on older processors" ci/backends.sh
step "tests of the laboratory" cargo test --locked --release -p koel-bench
step "benchmarks, each once" ci/bench-smoke.sh
step "instructions" ci/asm.sh
seq --format 'key-%.0f' 20000 >target/keys
step "example cache_guard" example cache_guard --keys target/keys --requests 20000
step "example persist" example persist --keys target/keys --out target/keys.koel
step "example dedup" dedup
step "fuzz" ci/fuzz.sh 8
step "no_std" ci/no-std.sh
step "sanitizers" ci/sanitize.sh
echo "=== all passed in $SECONDS s"
