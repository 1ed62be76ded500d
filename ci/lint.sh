#!/usr/bin/env bash
# Formatting, clippy and documentation, all without warnings; and nothing newer than the stated Rust version is used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for package in . benches/koel-bench fuzz loom-tests; do
    cargo fmt --check --manifest-path "$package/Cargo.toml"
done

# incompatible_msrv compares what is used of the standard library with rust-version in Cargo.toml.
deny=(-D warnings -D clippy::incompatible_msrv)
cargo clippy --locked --all-targets --all-features -- "${deny[@]}"
cargo clippy --locked --all-targets --no-default-features -- "${deny[@]}"
cargo clippy --locked -p koel-bench --all-targets -- "${deny[@]}"
# What stands behind a cfg is not looked at otherwise.
(
    export CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom"
    cargo clippy --locked --lib -- "${deny[@]}"
    cargo clippy --locked --manifest-path loom-tests/Cargo.toml --all-targets -- "${deny[@]}"
)

export RUSTDOCFLAGS="-D warnings"
cargo doc --locked --no-deps --all-features
cargo doc --locked --no-deps -p koel-bench --lib
