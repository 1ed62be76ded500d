#!/usr/bin/env bash
# Runs the tests of batches on emulated processors without AVX-512 and without AVX2, so that what is chosen there is tested too.
# The backends of this machine are tested by cargo test; KOEL_REQUIRE_BACKENDS names those that have to be there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: not an x86-64 machine"; exit 0; }
ci/apt.sh qemu-user
binaries=$(cargo test --locked --release --test batch --test bloom --no-run --message-format=json)
binary() {
    sed -n 's/.*"executable":"\([^"]*\/'"$1"'-[^"]*\)".*/\1/p' <<<"$binaries"
}
export KOEL_STRESS_MILLIS=500
for processor in Nehalem:swar Haswell:swar,avx2; do
    echo "== ${processor%:*}"
    for test in "batch" "bloom batches_equal_single_operations"; do
        read -r name filter <<<"$test"
        KOEL_REQUIRE_BACKENDS=${processor#*:} qemu-x86_64 -cpu "${processor%:*}" "$(binary "$name")" $filter \
            2> >(grep -v "TCG doesn't support" >&2) # features that the emulator lacks and nobody asks for
    done
done
# A backend that is required and missing has to fail, or the above proves nothing.
if KOEL_REQUIRE_BACKENDS=avx2 qemu-x86_64 -cpu Nehalem "$(binary batch)" equal_to_single_look_ups_in_cache >/dev/null 2>&1; then
    echo "a missing backend was not noticed" >&2
    exit 1
fi
