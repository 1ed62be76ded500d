#!/usr/bin/env bash
# Fuzzes every target in fuzz/fuzz_targets: ci/fuzz.sh [SECONDS of each, 30 unless given]
# New inputs go to fuzz/target/corpus; a crash fails and leaves its input in fuzz/artifacts. To take new inputs into the repository:
#   cargo fuzz cmin -s none ops fuzz/target/corpus/ops fuzz/corpus/ops
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-30}
command -v c++ >/dev/null || ci/apt.sh g++ # for libFuzzer
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
cargo fetch --locked --manifest-path fuzz/Cargo.toml
for file in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$file" .rs)
    echo "== $target"
    mkdir -p "fuzz/target/corpus/$target"
    # Without a sanitizer it works on a stable compiler.
    cargo fuzz run -s none "$target" "fuzz/target/corpus/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=1000 -print_final_stats=1
done
