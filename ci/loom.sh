#!/usr/bin/env bash
# Runs the loom tests, then for each rule of the protocol, with that rule broken on purpose, those tests that have to fail then.
#   ci/loom.sh                  all of it
#   ci/loom.sh MUTATION...      only these mutations, against all tests: shows which tests notice
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../loom-tests"
export CARGO_TARGET_DIR=../target/loom RUSTFLAGS="--cfg loom"

# Each mutation, the file of its tests, and tests that have to fail under it. docs/design.md says which rule it breaks.
mutations="
relocate_without_sequence        filter reader_against_relocation_outward reader_against_chained_relocations
sequence_before_copy             filter reader_against_relocation_outward reader_against_chained_relocations
count_after_copy                 filter reader_against_two_movers_of_another_class
insert_count_after_copy          filter reader_against_displaced_insert_and_mover
remove_without_sequence          filter reader_against_insert_and_remove_of_its_class
keep_extra_copy                  filter remover_against_mover
read_without_validation          filter reader_against_relocation_outward reader_against_insert_and_remove_of_its_class
keep_undone_count                filter failed_insert_leaves_counts
insert_without_claim             filter insert_if_absent_has_one_winner
trust_owed_copies                filter insert_if_absent_is_not_deceived_by_a_mover
look_again_only_once             filter count_against_relocation
keep_lost_count                  filter lost_relocation_leaves_counts
batch_without_validation         filter batch_reader_against_relocation batch_reader_against_chained_relocations
batch_reuses_home_word           filter batch_reader_against_relocation batch_reader_against_chained_relocations
grow_without_state_check         growth reader_against_growth inserter_against_growth remover_against_growth
drain_clears_instead_of_sealing  growth inserter_against_growth mover_against_growth two_drainers
new_before_old                   growth reader_against_growth reader_against_drain
keep_extra_copy                  growth remover_against_growth mover_against_growth two_drainers
place_before_drain               growth drain_has_room_despite_inserts
drain_uncounted                  growth reader_against_drain
give_back_at_once                growth mover_against_growth mover_against_giving_back
trust_late_copies                growth inserter_against_growth
drain_unmarked                   growth batch_reader_against_growth
snapshot_without_gate            snapshot snapshot_against_relocation snapshot_against_kick snapshot_against_growth
snapshot_without_gate            bloom snapshot_against_insert_and_removal
gate_without_fence               snapshot snapshot_against_relocation
gate_without_fence               growth mover_against_giving_back
counter_without_compare          bloom two_inserters_of_one_word reader_against_insert_and_remove
count_probes_twice               bloom probes_that_meet
layer_over_layer                 bloom two_inserters_add_a_layer
"

for name in "$@"; do
    grep -q "^$name " <<<"$mutations" || { echo "there is no mutation $name" >&2; exit 2; }
done

if [ $# -eq 0 ]; then
    cargo test --locked --release -- --nocapture
fi

# One build for all mutations: which rule is broken is chosen when a test runs.
export CARGO_TARGET_DIR=../target/loom-mutated RUSTFLAGS='--cfg loom --cfg koel_mutation="chosen"'
# Under a mutation a rule has to fail, not the floor under the number of executions.
export KOEL_LOOM_IGNORE_FLOORS=1
declare -A programs
while read -r file program; do
    programs[$file]=$program
done < <(cargo test --locked --release --no-run 2>&1 | tee /dev/stderr | sed -n 's|^ *Executable tests/\([a-z]*\).rs (\(.*\))$|\1 \2|p')

# Runs one test with one rule broken: whether the test failed, as it has to.
catches() {
    local output
    if output=$(KOEL_MUTATION=$1 "${programs[$2]}" --exact "$3" 2>&1); then
        grep -q '^test result: ok. 1 passed' <<<"$output" || { echo "$output"; exit 1; } >&2
        return 1
    fi
    # What did not run at all has caught nothing.
    grep -q '^running 1 test' <<<"$output" || { echo "$output"; exit 1; } >&2
}

# Every second mutation, beginning with number $1. The rest of the arguments are those of the script.
break_rules() {
    local turn=$1 missed=0 mutation file tests test caught
    shift
    while read -r mutation file tests; do
        [ -n "$mutation" ] || continue
        [ $# -eq 0 ] || [[ " $* " == *" $mutation "* ]] || continue
        ((turn++ % 2 == 0)) || continue
        # Where one is named here all tests are run. One by one, since some break down altogether.
        [ $# -eq 0 ] || tests=$("${programs[$file]}" --list 2>/dev/null | sed -n 's/: test$//p' | paste -sd ' ')
        caught=
        for test in $tests; do
            if catches "$mutation" "$file" "$test"; then
                caught+=" $test"
            else
                [ $# -gt 0 ] || { echo "$mutation: MISSED by $test" >&2; missed=1; }
            fi
        done
        [ -z "$caught" ] || echo "$mutation: caught by$caught"
        [ -n "$caught" ] || { echo "$mutation: MISSED by all" >&2; missed=1; }
    done <<<"$mutations"
    exit "$missed"
}

# Two at a time.
(break_rules 0 "$@") &
first=$!
(break_rules 1 "$@") &
second=$!
status=0
wait "$first" || status=$?
wait "$second" || status=$?
exit "$status"
