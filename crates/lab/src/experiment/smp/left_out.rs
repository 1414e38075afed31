//! Targets that cannot be started here, because something is not installed: the library of a preset's
//! allocator, or MariaDB.

use super::options::Options;
use crate::results::Summary;
use crate::target::{MARIADB_PACKAGE, TargetSpec, missing_mariadb_program};
use std::fmt;

/// A target that is not in the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeftOut {
    pub target: String,
    pub missing: Missing,
}

/// A file that a target needs and that is not installed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    pub file: &'static str,
    /// The package of Debian that has it.
    pub package: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not installed; on Debian: apt-get install {}", self.file, self.package)
    }
}

/// What this machine lacks to start a target of this kind. `None` if nothing is known to be missing.
pub(crate) fn missing_here(spec: &TargetSpec) -> Option<Missing> {
    match spec {
        TargetSpec::Latchwork(Some(preset)) | TargetSpec::Embedded(Some(preset)) => {
            let heap::Missing { file, package } = heap::missing_library(preset.settings().malloc_lib)?;
            Some(Missing { file, package })
        }
        TargetSpec::MariaDb(_) => {
            missing_mariadb_program().map(|file| Missing { file, package: MARIADB_PACKAGE })
        }
        _ => None,
    }
}

/// Takes the targets that cannot be started out of `options`, and returns them. `missing` says what a target
/// lacks on this machine.
///
/// # Errors
/// A sentence that says what to install: if `--target` named such a target, or if no target is left.
pub(crate) fn leave_out(
    options: &mut Options,
    missing: impl Fn(&TargetSpec) -> Option<Missing>,
) -> Result<Vec<LeftOut>, String> {
    let lacks = |spec: &TargetSpec| match spec {
        // An option of the user's comes after the preset's, and wins.
        TargetSpec::Latchwork(Some(_)) if options.servers_have_a_malloc_of_their_own() => None,
        spec => missing(spec),
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

/// What to tell the user, one line for each target.
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
        note: "these targets need something that is not installed".to_string(),
        columns: ["target", "not installed", "package of Debian"].map(str::to_string).to_vec(),
        names: 3,
        rows: left_out.iter().map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCMALLOC: Missing = Missing { file: "libtcmalloc.so", package: "libtcmalloc4" };
    const MARIADB: Missing = Missing { file: "mariadbd", package: "mariadb-server" };

    fn parsed(line: &str) -> Options {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Options::parse(&args).unwrap()
    }

    fn is_preset_with_a_library(spec: &TargetSpec, wanted: impl Fn(&str) -> bool) -> bool {
        match spec {
            TargetSpec::Latchwork(Some(preset)) | TargetSpec::Embedded(Some(preset)) => {
                wanted(preset.settings().malloc_lib)
            }
            _ => false,
        }
    }

    fn without_tcmalloc(spec: &TargetSpec) -> Option<Missing> {
        is_preset_with_a_library(spec, |malloc_lib| malloc_lib == "tcmalloc").then_some(TCMALLOC)
    }

    fn without_mariadb(spec: &TargetSpec) -> Option<Missing> {
        matches!(spec, TargetSpec::MariaDb(_)).then_some(MARIADB)
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
    fn mariadb_is_left_out_where_it_is_not_installed_unless_the_user_named_it() {
        let mut options = parsed("--workload all");
        let left_out = leave_out(&mut options, without_mariadb).unwrap();
        assert_eq!(
            sentences(&left_out),
            ["mariadb:innodb: mariadbd is not installed; on Debian: apt-get install mariadb-server"]
        );
        let names: Vec<String> = options.targets.iter().map(TargetSpec::name).collect();
        assert_eq!(names, ["latchwork", "latchwork:smpfix", "latchwork:base"]);
        let why = leave_out(&mut parsed("--target latchwork,mariadb:aria"), without_mariadb).unwrap_err();
        assert_eq!(why, "mariadb:aria: mariadbd is not installed; on Debian: apt-get install mariadb-server");
    }

    #[test]
    fn nothing_is_left_out_where_everything_is_installed() {
        let mut options = parsed("--presets");
        assert_eq!(leave_out(&mut options, |_| None), Ok(Vec::new()));
        assert_eq!(options.targets.len(), 5);
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn no_target_left_is_an_error_that_says_what_to_install() {
        let why = leave_out(&mut parsed("--presets"), |spec| {
            is_preset_with_a_library(spec, |_| true).then_some(TCMALLOC)
        })
        .unwrap_err();
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
