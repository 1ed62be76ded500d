#!/usr/bin/env bash
# Runs the unit tests, the model test, and those of batches (of Bloom filters too) and snapshots on other processors, emulated: ci/cross.sh [aarch64|i686|s390x]...
# (all three unless named): 64-bit Arm, a 32-bit target, and a big-endian one.
# Needs the standard library's source: skipped without. Emulation does not show reorderings of weak memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -gt 0 ] || set -- aarch64 i686 s390x
if ! library=$(ci/rust-src.sh target/rust-src); then
    echo "SKIPPED: $*"
    exit 0
fi
export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$library CARGO_TARGET_DIR=target/cross
for processor in "$@"; do
    libc=$processor emulator=$processor
    case $processor in
        aarch64) libc=arm64 ;;
        i686) libc=i386 emulator=i386 ;;
        s390x) ;;
        *)
            echo "unknown processor $processor" >&2
            exit 2
            ;;
    esac
    ci/apt.sh qemu-user "gcc-$processor-linux-gnu" "libc6-dev-$libc-cross"
    target=$processor-unknown-linux-gnu
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")
    echo "== $target"
    test() {
        env "${variable}_LINKER=$processor-linux-gnu-gcc" \
            "${variable}_RUNNER=qemu-$emulator -L /usr/$processor-linux-gnu" \
            cargo test --locked -Zbuild-std --target "$target" "$@"
    }
    test --lib --test model --test batch
    test --test bloom batches_equal_single_operations
    # Without what takes long and does not depend on the processor.
    test --test snapshot -- --skip random_flips --skip views_answer_like_filters --skip sets_take_the_bits
done
