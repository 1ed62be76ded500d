//! Replays the corpus of the fuzz target `ops` (`ci/fuzz.sh` adds to it at random): what was once found stays tested, on any compiler.

use std::{fs, path::Path};

use arbitrary::{Arbitrary, Unstructured};

#[path = "../fuzz/ops.rs"]
mod ops;

#[test]
fn corpus_replays() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/ops");
    let mut cases = 0;
    for entry in fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let case = ops::Case::arbitrary_take_rest(Unstructured::new(&bytes)).unwrap();
        println!("{}", path.display());
        ops::run(&case);
        cases += 1;
    }
    assert_ne!(cases, 0, "no corpus in {}", corpus.display());
}
