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
cargo fuzz build -s none # without a sanitizer it works on a stable compiler
fuzz() {
    local target=$1 log=fuzz/target/$1.log
    mkdir -p "fuzz/target/corpus/$target"
    if cargo fuzz run -s none "$target" "fuzz/target/corpus/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$2" -max_len=1000 -print_final_stats=1 >"$log" 2>&1; then
        echo "== $target: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs"
    else
        cat "$log"
        echo "== $target: FAILED"
        return 1
    fi
}
export -f fuzz
# As many at a time as there are processors.
basename --suffix .rs fuzz/fuzz_targets/*.rs | xargs -P "$(nproc)" -I '{}' bash -c 'fuzz {} "$1"' fuzz "$seconds"
