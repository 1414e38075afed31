//! A server that runs already. The lab changes no setting of it, and drops the table at the end.

use super::server::Flavour;
use super::{Context, Series, SeriesPlan, Setting};
use crate::driver::socket::Login;
use crate::error::Result;
use crate::measure::Process;
use crate::workload::TABLE;
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Remote {
    pub login: Login,
}

impl Flavour for Remote {
    fn series(&self, _asked: &[Setting]) -> SeriesPlan {
        SeriesPlan {
            series: vec![Series { label: "as it is".to_string(), setting: None }],
            baseline: None,
            left_out: vec![
                "somebody's server is measured as it is: its cache settings are left alone".to_string(),
            ],
        }
    }

    fn start(&mut self, _folder: &Path, _context: &mut Context<'_>) -> Result<Login> {
        Ok(self.login.clone())
    }

    fn process(&self) -> Option<Process> {
        None
    }

    fn engine(&self) -> &str {
        "MyISAM"
    }

    fn setting_sql(&self, _setting: Setting) -> Vec<String> {
        Vec::new()
    }

    fn warming_sql(&self) -> Vec<String> {
        vec![
            format!("SELECT COUNT(*) FROM {TABLE} WHERE pad <> ''"),
            format!("SELECT COUNT(*) FROM {TABLE} WHERE k > 0"),
        ]
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("address".to_string(), self.login.address.to_string())]
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}
