#!/usr/bin/env bash
# Runs the tests of batches on emulated processors without AVX-512 and without AVX2, so that what is chosen there is tested too.
# The backends of this machine are tested by cargo test; KOEL_REQUIRE_BACKENDS names those that have to be there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: not an x86-64 machine"; exit 0; }
ci/apt.sh qemu-user
# What the tests with all features have built already.
binaries=$(cargo test --locked --all-features --test batch --test bloom --no-run --message-format=json)
binary() {
    sed -n 's/.*"executable":"\([^"]*\/'"$1"'-[^"]*\)".*/\1/p' <<<"$binaries"
}
export KOEL_STRESS_MILLIS=500
check() {
    local processor=$1 backends=$2
    KOEL_REQUIRE_BACKENDS=$backends qemu-x86_64 -cpu "$processor" "$(binary batch)"
    KOEL_REQUIRE_BACKENDS=$backends qemu-x86_64 -cpu "$processor" "$(binary bloom)" batches_equal_single_operations
} 2> >(grep -v "TCG doesn't support" >&2) # the emulator warns of features that it lacks and nobody asks for
check Nehalem swar &
nehalem=$!
check Haswell swar,avx2
wait "$nehalem"
# A backend that is required and missing has to fail, or the above proves nothing.
if KOEL_REQUIRE_BACKENDS=avx2 qemu-x86_64 -cpu Nehalem "$(binary batch)" equal_to_single_look_ups_in_cache >/dev/null 2>&1; then
    echo "a missing backend was not noticed" >&2
    exit 1
fi
