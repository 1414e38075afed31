//! One generator of random numbers and one Zipf distribution: those of `base::random`. So a seed gives the
//! same numbers wherever it is used, and a fault in a generator is mended once.

use crate::finding::Finding;
use crate::workspace::Workspace;

/// The only source that may define them.
const HOME: &str = "crates/base/src/random.rs";

const NAMES: &[&str] = &["Lcg", "Random", "Rng", "SplitMix", "SplitMix64", "XorShift", "Xorshift", "Zipf"];

/// The constants of the usual generators, in hexadecimal: as text, so that this list is no finding itself.
const CONSTANTS: &[(&str, &str)] = &[
    ("9e3779b97f4a7c15", "SplitMix64"),
    ("bf58476d1ce4e5b9", "SplitMix64"),
    ("94d049bb133111eb", "SplitMix64"),
    ("5851f42d4c957f2d", "Knuth's linear congruential generator"),
    ("14057b7ef767814f", "Knuth's linear congruential generator"),
    ("2545f4914f6cdd1d", "xorshift64*"),
    ("139408dcbbf7a44", "Marsaglia's xorshift"),
    ("41c64e6d", "the C library's generator"),
];

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    for source in workspace.sources.iter().filter(|source| source.path != HOME) {
        let mut report = |line: usize, item: String, what: &str| {
            let message = format!("{what}: draw from `base::random`, or give `base::random` what is missing");
            found.push(Finding { path: source.path.clone(), line, rule: "random", item, message });
        };
        for item in source.facts.items.iter().filter(|item| NAMES.contains(&item.name.as_str())) {
            report(item.place.line, item.name.clone(), "a generator of its own");
        }
        for number in &source.facts.numbers {
            let digits = format!("{:x}", number.value);
            if let Some((_, whose)) = CONSTANTS.iter().find(|(constant, _)| *constant == digits) {
                report(number.line, format!("0x{digits}"), &format!("a constant of {whose}"));
            }
        }
        for line in &source.facts.xorshifts {
            report(*line, "xorshift".to_owned(), "a step of a xorshift generator");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    fn found_in(path: &str, source: &str) -> Vec<String> {
        items_found(check, &[(path, source)])
    }

    #[test]
    fn a_second_generator_is_found_wherever_it_is() {
        let source = "#[cfg(test)]\nmod tests {\n    struct Random(u64);\n    struct Zipf(Vec<f64>);\n}\n";
        assert_eq!(found_in("crates/a/src/lib.rs", source), ["Random", "Zipf"]);
        assert_eq!(found_in("fuzz/src/lib.rs", "struct Lcg(u64);\n"), ["Lcg"]);
        assert!(found_in(HOME, "pub struct Random(u64);\npub struct Zipf(Vec<f64>);\n").is_empty());
        assert!(found_in("crates/a/src/lib.rs", "use base::random::{Random, Zipf};\n").is_empty());
    }

    #[test]
    fn a_generator_without_a_name_is_found_by_its_constants() {
        let draw = |constant: &str| format!("fn next(x: u64) -> u64 {{ x.wrapping_mul({constant}) }}\n");
        let knuth = ["0x5851f42d4c957f2d"];
        assert_eq!(found_in("bench/src/main.rs", &draw("6_364_136_223_846_793_005")), knuth);
        assert_eq!(found_in("crates/a/tests/b.rs", &draw("0x5851_F42D_4C95_7F2D_u64")), knuth);
        let in_macro = "fn a() { assert!(b.wrapping_mul(0x2545_f491_4f6c_dd1d) > 1); }\n";
        assert_eq!(found_in("crates/a/src/lib.rs", in_macro), ["0x2545f4914f6cdd1d"]);
        assert!(found_in(HOME, &draw("0x9e37_79b9_7f4a_7c15")).is_empty());
        assert!(found_in("crates/a/src/lib.rs", &draw("0x9e37_79b9_7f4a_7c15_f39c")).is_empty());
    }

    #[test]
    fn a_xorshift_is_found_by_its_step() {
        let next = |steps: &str| format!("fn next(&mut self) {{ {steps} }}\n");
        let step =
            |steps: &str| found_in("crates/a/examples/b.rs", &format!("impl A {{ {} }}\n", next(steps)));
        assert_eq!(step("self.0 ^= self.0 << 13; self.0 ^= self.0 >> 7;"), ["xorshift"]);
        assert_eq!(step("*state ^= *state << 13;"), ["xorshift"]);
        assert!(step("self.hash ^= self.hash >> 32; self.flags ^= 1 << 3; self.a ^= b << 3;").is_empty());
    }
}
