#!/usr/bin/env bash
# Puts the standard library's source into reach of `cargo -Zbuild-std` on a stable compiler:
#   library=$(ci/rust-src.sh DIR) && export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$library"
# Prints where it is. That is the component rust-src of the toolchain, if it is installed; otherwise the source of exactly this
# version is unpacked below DIR from Debian's backports, without touching the system's own package lists.
# Fails, with the reason, if there is no such source; what needs it is then to be skipped.
set -euo pipefail

dir=$(mkdir -p "${1:?usage: ci/rust-src.sh DIR}" && realpath "$1")
version=$(rustc --version | cut -d' ' -f2)
component=$(rustc --print sysroot)/lib/rustlib/src/rust/library
unpacked=$dir/usr/src/rustc-$version/library
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

for library in "$component" "$unpacked"; do
    if [ -d "$library/std" ]; then
        echo "$library"
        exit 0
    fi
done

fail() {
    echo "no source of the standard library $version: $1" >&2
    exit 1
}
if ! [ -r "$keyring" ] || ! command -v apt-get >/dev/null; then
    fail "not a Debian system, and no component rust-src"
fi

# The mirror that this system uses already.
# shellcheck disable=SC2016 # apt expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' | awk '/\/debian\/$/ && !found++')
apt=$dir/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} trixie-backports main" >"$apt/sources.list"
cat >"$apt/apt.conf" <<CONF
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
APT::Sandbox::User "";
CONF
export APT_CONFIG=$apt/apt.conf
apt-get -q update >&2 || fail "the package list could not be fetched"
package=$(apt-cache madison rust-src | awk -v start="$version+" 'index($3, start) == 1 && !found++ { print $3 }')
[ -n "$package" ] || fail "not in Debian's backports"
(cd "$apt" && apt-get -q download "rust-src=$package" >&2) || fail "the package could not be fetched"
dpkg-deb --extract "$apt"/rust-src_*.deb "$apt/unpacked"
mv "$apt/unpacked/usr" "$dir"
rm "$apt"/rust-src_*.deb
[ -d "$unpacked/std" ] || fail "the package does not hold $unpacked"
echo "$unpacked"
