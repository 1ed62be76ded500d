//! Replays the corpora of the fuzz targets (`ci/fuzz.sh` adds to them at random): what was once found stays tested, on any compiler.

use std::{fs, path::Path};

use arbitrary::{Arbitrary, Unstructured};

#[path = "../fuzz/batch.rs"]
mod batch;
#[path = "../fuzz/bloom.rs"]
mod bloom;
#[cfg(feature = "growth")]
#[path = "../fuzz/decode.rs"]
mod decode;
#[path = "../fuzz/ops.rs"]
mod ops;

fn replay<Case>(target: &str, run: impl Fn(&Case))
where
    Case: for<'bytes> Arbitrary<'bytes>,
{
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut cases = 0;
    for entry in fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        println!("{}", path.display());
        run(&Case::arbitrary_take_rest(Unstructured::new(&bytes)).unwrap());
        cases += 1;
    }
    assert_ne!(cases, 0, "no corpus in {}", corpus.display());
}

#[test]
fn ops() {
    replay("ops", ops::run);
}

#[test]
fn batch() {
    replay("batch", batch::run);
}

#[test]
fn bloom() {
    replay("bloom", bloom::run);
}

#[cfg(feature = "growth")]
#[test]
fn decode() {
    replay("decode", decode::run);
}
