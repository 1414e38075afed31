//! `lab report`: one page of results that were measured before.

use crate::arguments;
use crate::error::{Error, Result};
use crate::report;
use crate::report::print;
use crate::results::Results;
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
latchwork lab report RESULT [RESULT ...] [--out FILE] [--svg FILE [--plot NAME]]

Makes one HTML page of any number of results (result.json of `lab run`, or its folder). The page is one file that
needs nothing else: it can be sent by mail and opens without a network. Each run has plots of its own. The runs
were not measured in turns, so do not compare them by eye: `latchwork lab compare` compares two runs.

  --out FILE   where the page goes (default: report.html beside the first result)
  --svg FILE   the first plot of the first result as a picture of its own, instead of a page
  --plot NAME  the plot of it whose name has NAME in it: `--plot memory`
";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut out, mut svg, mut plot) = (None, None, String::new());
    let files = arguments::read_with_files(args, &["--out", "--svg", "--plot"], &[], |name, value| {
        match name {
            "--plot" => plot = value.to_string(),
            "--svg" => svg = Some(PathBuf::from(value)),
            _ => out = Some(PathBuf::from(value)),
        }
        Ok(())
    });
    let files = files.map_err(Error::Usage)?;
    if files.is_empty() {
        return Err(Error::Usage("`report` needs at least one result.json".to_string()));
    }
    let paths: Vec<PathBuf> = files.iter().map(report::json_path).collect();
    let runs = paths.iter().map(|path| Results::load(path)).collect::<Result<Vec<_>>>()?;
    if let Some(path) = &svg {
        let picture = report::picture(&runs[0], &plot).map_err(|names| Error::NoResults {
            path: paths[0].clone(),
            why: match names.as_str() {
                "" => "nothing was measured that could be drawn".to_string(),
                names => format!("no plot is named `{plot}`: there are {names}"),
            },
        })?;
        report::save(path, &picture)?;
        print(&format!("picture: {}\n", path.display()))?;
    }
    if out.is_some() || svg.is_none() {
        let path = out.unwrap_or_else(|| paths[0].with_file_name(report::HTML_FILE));
        report::save(&path, &report::html::render(&runs))?;
        print(&format!("report: {}\n", path.display()))?;
    }
    Ok(())
}
