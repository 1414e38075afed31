//! What `latchwork torture` is asked for.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
latchwork torture: try to make the engine lose something

Runs random histories of a whole engine on a simulated device: tables of many shapes and page sizes, transactions of
several clients at all isolation levels, savepoints, locks, snapshots that are held, changes of definitions,
checkpoints, purge, full disks, reads, writes and syncs that fail. A model beside it knows what was acknowledged.
Each history is cut at many events of the device. What a power failure would leave there (torn and reordered writes,
names that are not there yet) is recovered, sometimes with crashes in the recovery, and compared with the model row by
row and index by index; then every page is checked.

  latchwork torture                     one minute, from a seed that the clock gives
  latchwork torture --minutes 480       a night
  latchwork torture --cuts 10000        until so many crashes have been recovered
  latchwork torture --seed 7 --histories 1
                                        repeats the history that a fault names, step by step

  --seed N         the first history's seed; the next ones have N + 1, N + 2, ...
  --minutes N      end after so many minutes (fractions are fine)
  --cuts N         end after so many crashes
  --histories N    end after so many histories
  --steps N        steps of a history (300)
  --gap N          events of the device from one cut to the next, on the average (12); a seed repeats a fault
                   with the same --steps and --gap only
  --append FILE    append a line to FILE: date, commit, seed, hours, histories, cuts, faults

The end comes with the first of the limits; without any, after a minute. A line on standard error says how far it is.
Standard output has each fault with the last steps before it, and at the end seed, time, histories, cuts and faults.
Exit status: 0 if nothing was lost; 1 if something was lost or wrong; 2 for wrong use.
";

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Arguments {
    pub(crate) seed: Option<u64>,
    pub(crate) minutes: Option<f64>,
    pub(crate) cuts: Option<u64>,
    pub(crate) histories: Option<u64>,
    pub(crate) steps: u32,
    pub(crate) gap: u64,
    pub(crate) append: Option<PathBuf>,
}

impl Arguments {
    /// `None`: the help is asked for.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
        let mut all = Arguments {
            seed: None,
            minutes: None,
            cuts: None,
            histories: None,
            steps: 300,
            gap: 12,
            append: None,
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name.to_string(), Some(value.to_string())),
                None => (argument, None),
            };
            if name == "--help" || name == "-h" {
                return Ok(None);
            }
            let mut value =
                || value.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--seed" => all.seed = Some(number(&name, &value()?)?),
                "--minutes" => all.minutes = Some(number(&name, &value()?)?),
                "--cuts" => all.cuts = Some(number(&name, &value()?)?),
                "--histories" => all.histories = Some(number(&name, &value()?)?),
                "--steps" => all.steps = number(&name, &value()?)?,
                "--gap" => all.gap = number(&name, &value()?)?,
                "--append" => all.append = Some(value()?.into()),
                other => return Err(format!("'{other}' is not an option of torture")),
            }
        }
        if all.gap == 0 || all.minutes.is_some_and(|minutes| !minutes.is_finite() || minutes < 0.0) {
            return Err("--gap is at least 1, and --minutes is a time".to_string());
        }
        if all.minutes.is_none() && all.cuts.is_none() && all.histories.is_none() {
            all.minutes = Some(1.0);
        }
        Ok(Some(all))
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} {text}: this is not a number that it can have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Arguments>, String> {
        Arguments::parse(text.split_whitespace().map(str::to_string))
    }

    #[test]
    fn options_take_their_values_with_or_without_an_equals_sign() {
        let found = parse("--seed=7 --cuts 100 --append x.md").unwrap().unwrap();
        assert_eq!((found.seed, found.cuts, found.minutes), (Some(7), Some(100), None));
        assert_eq!(found.append, Some("x.md".into()));
        assert_eq!(parse("").unwrap().unwrap().minutes, Some(1.0));
        assert_eq!(parse("--seed 1 --help").unwrap(), None);
    }

    #[test]
    fn wrong_options_are_refused() {
        for text in ["--sed 7", "--seed", "--seed x", "--gap 0", "--minutes NaN", "x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
