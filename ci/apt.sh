#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing: ci/apt.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
    dpkg-query --show --showformat '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=(env DEBIAN_FRONTEND=noninteractive)
[ "$(id -u)" = 0 ] || as_root=(sudo "${as_root[@]}")
"${as_root[@]}" apt-get -q update || echo "apt-get update failed: trying with the package lists at hand" >&2
"${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}"
