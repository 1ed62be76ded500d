//! Rules of the protocol that are broken on purpose, one at a time, for the tests that have to notice (`ci/loom.sh`).
//!
//! `--cfg koel_mutation="NAME"` breaks the rule NAME. `--cfg koel_mutation="chosen"` makes the environment variable `KOEL_MUTATION` choose when the program
//! runs, so that one build does for all mutations. Without either `mutated!` is `false` to the compiler.

/// Whether one of the rules of these names is broken.
#[cfg(not(koel_mutation = "chosen"))]
macro_rules! mutated {
    ($($name:tt),+) => {
        cfg!(any($(koel_mutation = $name),+))
    };
}

/// Whether one of the rules of these names is broken.
#[cfg(koel_mutation = "chosen")]
macro_rules! mutated {
    ($($name:tt),+) => {
        crate::mutation::is_chosen(&[$($name),+])
    };
}

#[cfg(koel_mutation = "chosen")]
pub(crate) fn is_chosen(names: &[&str]) -> bool {
    static CHOSEN: std::sync::OnceLock<std::string::String> = std::sync::OnceLock::new();
    names.contains(&&CHOSEN.get_or_init(|| std::env::var("KOEL_MUTATION").unwrap_or_default())[..])
}
