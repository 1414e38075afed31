//! What all runs have in common: the preflight, a scratch folder, results that an interrupt does not lose,
//! the report.

use super::Experiment;
use crate::arguments;
use crate::doctor::{self, Plan, Verdict, machine};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::{self, Progress};
use crate::report::{self, Format, print};
use crate::results::{Results, Summary};
use crate::scratch::Scratch;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The form of the output, and where a run puts its files.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    pub format: Format,
    /// `None`: a folder of the run's own in `lab-results`.
    pub out: Option<PathBuf>,
    pub scratch: PathBuf,
}

impl Default for OutputOptions {
    fn default() -> OutputOptions {
        OutputOptions { format: Format::Table, out: None, scratch: std::env::temp_dir() }
    }
}

impl OutputOptions {
    /// Sets one of the options of [`OUTPUT_OPTIONS`].
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--format" => self.format = arguments::format(value)?,
            "--out" => self.out = Some(PathBuf::from(value)),
            "--scratch" => self.scratch = PathBuf::from(value),
            _ => return Err(format!("see latchwork lab run --help for {name}")),
        }
        Ok(())
    }
}

/// The help text of these options.
pub(crate) const OUTPUT_OPTIONS: &str = "\
  --format table|json   on standard output (default: table); progress goes to standard error
  --out FOLDER          result.json and report.html (default: lab-results/NAME-TIME)
  --scratch FOLDER      where servers keep their data while running (default: the temporary folder)
";

/// What an experiment uses while it measures.
pub(crate) struct Run<'a> {
    pub interrupt: &'a Interrupt,
    pub progress: &'a mut Progress,
    pub scratch: &'a Scratch,
    pub results: &'a mut Results,
    /// The folder of the results.
    pub(super) folder: &'a Path,
}

impl Run<'_> {
    /// Saves the results so far, so that they are there if the run is killed.
    pub(crate) fn save(&self) -> Result<()> {
        report::save_json(self.results, self.folder).map(drop)
    }
}

/// Results without cells, for an experiment that is given these arguments.
pub(crate) fn blank(
    experiment: &dyn Experiment,
    args: &[String],
    settings: &[(&str, String)],
    plan: &Plan,
) -> Results {
    let mut command = ["latchwork", "lab", "run", experiment.name()].map(str::to_string).to_vec();
    command.extend(args.iter().map(|arg| crate::target::hidden(arg)));
    Results {
        experiment: experiment.name().to_string(),
        title: experiment.title().to_string(),
        question: experiment.question().to_string(),
        started: unix_now(),
        finished: None,
        complete: false,
        command,
        machine: machine::describe(),
        settings: settings.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        doctor: doctor::examine(plan),
        targets: Vec::new(),
        unit: "queries/s".to_string(),
        lower_is_better: false,
        block_name: String::new(),
        x_name: "threads".to_string(),
        baseline_name: String::new(),
        log_scale: false,
        log_x: true,
        plotted: Vec::new(),
        summaries: Vec::new(),
        cells: Vec::new(),
    }
}

/// Makes a folder for a run without `--out`: in `parent`, named by the time (Unix, seconds), and numbered if
/// that name is taken.
pub(crate) fn own_folder(parent: &Path, experiment: &str, started: u64) -> Result<PathBuf> {
    fs::create_dir_all(parent).map_err(Error::path("create", parent))?;
    let name = format!("{experiment}-{}", report::timestamp(started));
    let mut folder = parent.join(&name);
    let mut number = 1;
    loop {
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Error::path("create", &folder)(error)),
        }
        folder = parent.join(format!("{name}-{number}"));
    }
}

/// Measures and reports. After an interrupt or an error, the samples so far are kept, summed up and shown.
///
/// # Errors
/// Those of `measure`, an interrupt, a problem that the preflight found, and files that cannot be written.
pub(crate) fn conduct(
    mut results: Results,
    output: &OutputOptions,
    interrupt: &Interrupt,
    progress: &mut Progress,
    summarise: impl Fn(&Results) -> Vec<Summary>,
    measure: impl FnOnce(&mut Run<'_>) -> Result<()>,
) -> Result<()> {
    let folder = match &output.out {
        Some(folder) => {
            fs::create_dir_all(folder).map_err(Error::path("create", folder))?;
            folder.clone()
        }
        None => own_folder(Path::new("lab-results"), &results.experiment, results.started)?,
    };
    let problems = results.doctor.iter().filter(|finding| finding.verdict == Verdict::Problem).count();
    let findings = doctor::to_text(&results.doctor, false);
    if !findings.is_empty() {
        progress.note(&format!("preflight (more: latchwork lab doctor):\n{}", findings.trim_end()));
    }
    if problems > 0 {
        return Err(Error::Usage("the preflight found a problem that the run cannot work with".to_string()));
    }
    let outcome = {
        // Dropped before the reports are written, so that servers and their folders are gone by then.
        let scratch = Scratch::create(&output.scratch)?;
        let mut run = Run { interrupt, progress, scratch: &scratch, results: &mut results, folder: &folder };
        let measured = measure(&mut run);
        // If an interrupt made something fail, the interrupt is the reason.
        measured.and_then(|()| interrupt.check()).map_err(|error| interrupt.check().err().unwrap_or(error))
    };
    if outcome.is_err() && results.cells.iter().all(|cell| cell.samples.is_empty()) {
        // There is nothing to report. A folder that the lab chose itself is empty, and is removed.
        if output.out.is_none() {
            let _ = fs::remove_dir(&folder);
        }
        progress.finish();
        if matches!(outcome, Err(Error::Interrupted)) {
            progress.note("interrupted before anything was measured");
        }
        return outcome;
    }
    results.finished = Some(unix_now());
    results.complete |= outcome.is_ok();
    results.summaries = summarise(&results);
    progress.finish();
    publish(&results, output.format, &folder, progress)?;
    if matches!(outcome, Err(Error::Interrupted)) {
        let measured = results.cells.iter().filter(|cell| !cell.samples.is_empty()).count();
        progress.note(&format!(
            "interrupted: {measured} of {} cells measured so far are kept",
            results.cells.len()
        ));
    }
    outcome
}

fn publish(results: &Results, format: Format, folder: &Path, progress: &mut Progress) -> Result<()> {
    let json = report::save_json(results, folder)?;
    let html = report::save_html(results, folder)?;
    let files = format!("result: {}\nreport: {}", json.display(), html.display());
    match format {
        Format::Table => print(&format!("{}{files}\n", report::text::render(results))),
        Format::Json => {
            progress.note(&files);
            print(&results.to_json().to_pretty())
        }
    }
}

/// A duration among the settings of a report.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        format!("{} s", (duration.as_secs_f64() * 1_000.0).round() / 1_000.0)
    } else {
        progress::duration(duration)
    }
}

pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_the_same_second_have_folders_of_their_own() {
        let parent = tempfile::tempdir().unwrap();
        let names = [(); 3].map(|()| {
            let folder = own_folder(parent.path(), "trace", 0).unwrap();
            assert!(folder.is_dir());
            folder.file_name().unwrap().to_str().unwrap().to_string()
        });
        assert_eq!(names[1], format!("{}-2", names[0]));
        assert_eq!(names[2], format!("{}-3", names[0]));
        let file = parent.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(own_folder(&file, "trace", 0).unwrap_err().to_string().contains("cannot create"));
    }
}
