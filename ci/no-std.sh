#!/usr/bin/env bash
# Builds the crate without std for a processor without operating system and 64-bit atomics (32-bit Arm, Cortex-M4).
# Needs the standard library's source, for core and alloc: skipped without.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! library=$(ci/rust-src.sh target/rust-src); then
    echo "SKIPPED: no_std"
    exit 0
fi
RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$library CARGO_TARGET_DIR=target/no-std \
    cargo build --locked --no-default-features -Zbuild-std=core,alloc --target thumbv7em-none-eabihf
