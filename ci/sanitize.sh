#!/usr/bin/env bash
# Runs the unit tests, the stress tests and the tests of growth and snapshots under the address sanitizer, and the tests with threads under the thread sanitizer.
# KOEL_STRESS_MILLIS (1000 unless set) is how long each stress test runs; KOEL_SNAPSHOT_ROUNDS (10 unless set) how many snapshots are taken under load.
# The thread sanitizer needs the standard library's source, for what is not instrumented it gets wrong: skipped without.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export KOEL_STRESS_MILLIS=${KOEL_STRESS_MILLIS:-1000} KOEL_SNAPSHOT_ROUNDS=${KOEL_SNAPSHOT_ROUNDS:-10}
export RUSTC_BOOTSTRAP=1 # -Z on a stable compiler
host=$(rustc --version --verbose | sed -n 's/^host: //p')

# The package without examples and benchmarks, and without what only these need: compiling that would take most of the time.
cargo fetch --locked
mkdir -p target/sanitized
ln -sfn ../../src ../../tests target/sanitized
cp Cargo.lock target/sanitized
awk '/^\[/ { section = $0 }
    section ~ /^\[\[(example|bench)\]\]/ { next }
    section == "[workspace]" && !/^\[/ { next }
    section == "[dev-dependencies]" && !/^(\[|proptest|tempfile)/ { next }
    { print }' Cargo.toml >target/sanitized/Cargo.toml
cd target/sanitized

CARGO_TARGET_DIR=../asan RUSTFLAGS="-Zsanitizer=address" \
    cargo test --offline --target "$host" --lib --test stress --test growth --test snapshot --test snapshot_growth --test snapshot_threads -- --skip agrees_with_a_multiset --skip every_capacity_is_reached --skip random_flips_of_a_large_snapshot

if ! library=$(../../ci/rust-src.sh ../rust-src); then
    echo "SKIPPED: the thread sanitizer"
    exit 0
fi
CARGO_TARGET_DIR=../tsan RUSTFLAGS="-Zsanitizer=thread" __CARGO_TESTS_ONLY_SRC_ROOT=$library \
    cargo test --offline -Zbuild-std --target "$host" --test stress --test snapshot_threads -- --skip killed_while_saving
