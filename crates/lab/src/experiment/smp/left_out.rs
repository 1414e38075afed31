//! Presets that cannot be started here, because the library of their allocator is not installed.

use super::options::Options;
use crate::results::Summary;
use crate::target::TargetSpec;
use heap::Missing;

/// A target that is not in the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeftOut {
    pub target: String,
    pub missing: Missing,
}

/// Takes the targets out of `options` whose library is missing, and returns them. `missing` says what a
/// `malloc_lib` lacks on this machine.
///
/// # Errors
/// A sentence that says what to install: if `--target` named such a target, or if no target is left.
pub(crate) fn leave_out(
    options: &mut Options,
    missing: impl Fn(&str) -> Option<Missing>,
) -> Result<Vec<LeftOut>, String> {
    let lacks = |spec: &TargetSpec| match spec {
        // An option of the user's comes after the preset's, and wins.
        TargetSpec::Latchwork(Some(_)) if options.servers_have_a_malloc_of_their_own() => None,
        TargetSpec::Latchwork(Some(preset)) | TargetSpec::Embedded(Some(preset)) => {
            missing(preset.settings().malloc_lib)
        }
        _ => None,
    };
    let (mut left_out, mut refused) = (Vec::new(), Vec::new());
    for spec in &options.targets {
        if let Some(missing) = lacks(spec) {
            let lists = if options.named.contains(spec) { &mut refused } else { &mut left_out };
            lists.push(LeftOut { target: spec.name(), missing });
        }
    }
    if !refused.is_empty() {
        return Err(sentences(&refused).join("\n"));
    }
    options.targets.retain(|spec| !left_out.iter().any(|left_out| left_out.target == spec.name()));
    if options.targets.is_empty() {
        return Err(format!("no target is left to measure\n{}", sentences(&left_out).join("\n")));
    }
    Ok(left_out)
}

/// What to tell the user, a line each.
pub(crate) fn sentences(left_out: &[LeftOut]) -> Vec<String> {
    left_out.iter().map(|LeftOut { target, missing }| format!("{target}: {missing}")).collect()
}

/// The table of the targets that were left out; `None` if there are none.
pub(crate) fn summary(left_out: &[LeftOut]) -> Option<Summary> {
    let row = |LeftOut { target, missing }: &LeftOut| {
        [target.as_str(), missing.file, missing.package].map(str::to_string).to_vec()
    };
    (!left_out.is_empty()).then(|| Summary {
        title: "left out".to_string(),
        note: "the allocator of these presets is not installed".to_string(),
        columns: ["target", "library", "package of Debian"].map(str::to_string).to_vec(),
        names: 3,
        rows: left_out.iter().map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCMALLOC: Missing = Missing { file: "libtcmalloc.so", package: "libtcmalloc4" };

    fn parsed(line: &str) -> Options {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Options::parse(&args).unwrap()
    }

    fn without_tcmalloc(malloc_lib: &str) -> Option<Missing> {
        (malloc_lib == "tcmalloc").then_some(TCMALLOC)
    }

    #[test]
    fn a_preset_without_its_library_is_left_out_and_named_with_its_package() {
        for (line, targets) in [("", 3), ("--presets", 4), ("--target mariadb:innodb --presets", 5)] {
            let mut options = parsed(line);
            let left_out = leave_out(&mut options, without_tcmalloc).unwrap();
            assert_eq!(
                sentences(&left_out),
                [
                    "latchwork:smpfix: libtcmalloc.so is not installed; on Debian: apt-get install libtcmalloc4"
                ]
            );
            assert_eq!(options.targets.len(), targets, "{line}");
            let rows = summary(&left_out).unwrap().rows;
            assert_eq!(rows, [["latchwork:smpfix", "libtcmalloc.so", "libtcmalloc4"]]);
        }
    }

    #[test]
    fn nothing_is_left_out_where_every_library_is_installed() {
        let mut options = parsed("--presets");
        assert_eq!(leave_out(&mut options, |_| None), Ok(Vec::new()));
        assert_eq!(options.targets.len(), 5);
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn no_target_left_is_an_error_that_says_what_to_install() {
        let why = leave_out(&mut parsed("--presets"), |_| Some(TCMALLOC)).unwrap_err();
        assert!(why.starts_with("no target is left"), "{why}");
        assert_eq!(why.matches("apt-get install libtcmalloc4").count(), 5, "{why}");
    }

    #[test]
    fn a_preset_that_the_user_named_is_refused_with_what_to_install() {
        for line in ["--target latchwork:smpfix,latchwork:base", "--target embedded:smpfix --presets"] {
            let why = leave_out(&mut parsed(line), without_tcmalloc).unwrap_err();
            assert!(why.contains(":smpfix: ") && why.contains("apt-get install libtcmalloc4"), "{why}");
        }
        let own = "--target latchwork:smpfix --latchwork-option=--malloc-lib=system";
        assert_eq!(leave_out(&mut parsed(own), without_tcmalloc), Ok(Vec::new()));
    }
}
