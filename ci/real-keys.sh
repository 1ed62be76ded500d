#!/usr/bin/env bash
# Tests filters on real keys: Debian's word list, the public suffix list and the names of Unicode's characters.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ci/apt.sh wamerican publicsuffix unicode-data
keys=target/real-keys
mkdir -p "$keys"
cp /usr/share/dict/american-english "$keys/words"
grep -v -e '^//' -e '^$' /usr/share/publicsuffix/public_suffix_list.dat >"$keys/public-suffixes"
cut -d ';' -f 2 /usr/share/unicode/UnicodeData.txt >"$keys/unicode-names"

KOEL_KEY_FILES=$keys/words:$keys/public-suffixes:$keys/unicode-names \
    cargo test --locked --all-features --test real_keys -- --ignored --nocapture
