#!/usr/bin/env bash
# Runs the loom tests, then for each rule of the protocol, with that rule broken on purpose, those tests that have to fail then.
#   ci/loom.sh                  all of it
#   ci/loom.sh MUTATION...      only these mutations, against all tests: shows which tests notice
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../loom-tests"

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
snapshot_without_gate            snapshot snapshot_against_relocation snapshot_against_kick snapshots_in_a_row_against_mover
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

# Every rule that the code can break has a line.
diff <(grep -rho 'mutated!("[^)]*)' ../src | grep -o '"[a-z_]*"' | tr -d '"' | sort -u) <(grep -o '^[a-z_]\+' <<<"$mutations" | sort -u) ||
    { echo "the mutations of this file (>) are not those of the code (<)" >&2; exit 1; }
unset KOEL_MUTATION KOEL_LOOM_IGNORE_FLOORS "${!LOOM_@}"

# One build for all: which rule is broken is chosen when a test runs, none unless KOEL_MUTATION says so.
export CARGO_TARGET_DIR=../target/loom RUSTFLAGS='--cfg loom --cfg koel_mutation="chosen"'
files=
while read -r file program; do
    export "program_$file=$program"
    files+=" $file"
done < <(cargo test --locked --release --no-run 2>&1 | tee >(cat >&2) | sed -n 's|^ *Executable tests/\([a-z]*\).rs (\(.*\))$|\1 \2|p')
[ "$files" = " bloom filter growth snapshot" ] || { echo "the tests were not built: found$files" >&2; exit 1; }

# Runs one test, with a rule broken or with none (-): whether it passes, or fails, as it has to.
# Each has a process of its own, with one thread: loom maps and unmaps stacks all the time, and threads of one process hold each other up doing that.
check() {
    local mutation=$1 program=program_$2 test=$3 output status=0
    if [ "$mutation" = - ]; then
        output=$("${!program}" --exact "$test" --nocapture --test-threads 1 2>&1) || status=$?
        if [ "$status" -ne 0 ] || ! grep -q '^test result: ok. 1 passed' <<<"$output"; then
            printf '%s\n%s: FAILED\n' "$output" "$test" >&2
            return 1
        fi
        grep ' executions$' <<<"$output"
        return
    fi
    # A rule has to fail, not the floor under the number of executions; nor does a test catch anything that hangs, runs out of memory or of loom's bounds.
    output=$(KOEL_LOOM_IGNORE_FLOORS=1 KOEL_MUTATION=$mutation timeout 100 "${!program}" --exact "$test" --test-threads 1 2>&1) || status=$?
    if [ "$status" -eq 0 ] && grep -q '^test result: ok. 1 passed' <<<"$output"; then
        echo "$mutation: MISSED by $test"
        [ -z "$must_catch" ]
    elif grep -q '^running 1 test' <<<"$output" && grep -q 'panicked at' <<<"$output" && ! grep -qE 'Model exceeded|deadlock' <<<"$output" &&
        [[ " 101 134 " == *" $status "* ]]; then
        echo "$mutation: caught by $test"
    else
        printf '%s\n%s: %s broke down (%s)\n' "$(tail -20 <<<"$output")" "$mutation" "$test" "$status" >&2
        return 1
    fi
}
export -f check

# Of every test of these files, a line for check.
all_tests() {
    local mutation=$1 file program
    shift
    for file in "$@"; do
        program=program_$file
        "${!program}" --list | sed -n "s/^\\(.*\\): test\$/$mutation $file \\1/p"
    done
}

# What there is to check.
checks() {
    if [ $# -eq 0 ]; then
        # What takes long first.
        all_tests - growth bloom filter snapshot
        while read -r mutation file tests; do
            for test in $tests; do
                echo "$mutation $file $test"
            done
        done < <(grep . <<<"$mutations")
    fi
    for mutation in "$@"; do
        # shellcheck disable=SC2046 # the names of files are words
        all_tests "$mutation" $(awk -v mutation="$mutation" '$1 == mutation { print $2 }' <<<"$mutations")
    done
}

export must_catch=
[ $# -gt 0 ] || must_catch=yes
# As many at a time as there are processors.
checks "$@" | xargs -P "$(nproc)" -L 1 bash -c 'check "$@"' check
