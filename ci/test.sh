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

cache_guard() {
    seq --format 'key-%.0f' 20000 >target/keys
    cargo run --locked --release --example cache_guard -- --keys target/keys --requests 20000
}

persist() {
    seq --format 'key-%.0f' 20000 >target/keys
    cargo run --locked --release --features mmap --example persist -- --keys target/keys --out target/keys.koel
}

step "lint" ci/lint.sh
step "tests, all features" cargo test --locked --all-features
step "tests, no features" cargo test --locked --no-default-features
step "loom" ci/loom.sh
step "real keys" ci/real-keys.sh
step "batches on older processors" ci/backends.sh
step "tests of the laboratory" cargo test --locked --release -p koel-bench
step "benchmarks, each once" ci/bench-smoke.sh
step "instructions" ci/asm.sh
step "example cache_guard" cache_guard
step "example persist" persist
step "fuzz" ci/fuzz.sh 8
step "no_std" ci/no-std.sh
step "sanitizers" ci/sanitize.sh
echo "=== all passed in $SECONDS s"
