#!/usr/bin/env bash
# Stands in for rustc (as RUSTC_WRAPPER) and breaks the rule KOEL_MUTATION in the crate koel alone, so that what it depends on need not be
# built again for each mutation. The same as RUSTFLAGS='--cfg koel_mutation="..."', which builds everything anew.
set -euo pipefail
case " $* " in
*" --crate-name koel "*) exec "$@" ${KOEL_MUTATION:+--cfg "koel_mutation=\"$KOEL_MUTATION\""} ;;
*) exec "$@" ;;
esac
