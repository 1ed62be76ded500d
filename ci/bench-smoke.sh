#!/usr/bin/env bash
# Runs every benchmark once, on tiny tables: whether they work, and whether every peer answers right. The figures mean nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# In test mode, like cargo bench -- --test, but with what other checks have built already.
cargo test --locked --all-features --bench ops

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo run --locked --release -p koel-bench --bin koel-bench -- --tiny --json "$out/all.json" --out "$out/report"
for file in all.json report/report.md report/report.json report/lookups-by-size-0.svg; do
    [ -s "$out/$file" ] || { echo "$file was not written" >&2; exit 1; }
done

# A wrong value is refused before anything runs, with a message that says what would be right.
refused() {
    local message
    if message=$(cargo run --locked --release --quiet -p koel-bench --bin koel-bench -- --tiny "$@" 2>&1); then
        echo "koel-bench took $*" >&2
        return 1
    fi
    [[ $message == *'there are'* || $message == *'power of two'* ]] || { echo "$message" >&2; return 1; }
}
refused --peers nobody
refused --sizes 3MiB
