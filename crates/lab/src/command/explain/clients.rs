//! Clients that repeat one question until they are told to stop.

use crate::driver::socket::{Client, Login, explained};
use crate::error::{Error, Result};
use crate::workload::{Sbtest, Script, Statement, TABLE, Workload};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, thread};
use std::fmt::Write;
use wire::value::WireValue;

/// The question that they repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Points { points: u32, is_text: bool },
    Updates { is_text: bool },
}

impl Kind {
    pub(crate) fn title(self) -> String {
        let form = if self.is_text() { "as text" } else { "prepared" };
        match self {
            Kind::Points { points, .. } => format!("{points} points, {form}"),
            Kind::Updates { .. } => format!("an update by primary key, {form}"),
        }
    }

    fn is_text(self) -> bool {
        let (Kind::Points { is_text, .. } | Kind::Updates { is_text }) = self;
        is_text
    }

    /// With a question mark for each parameter.
    fn sql(self) -> String {
        match self {
            Kind::Points { points, .. } => Statement::PointsByK { points }.sql(),
            Kind::Updates { .. } => format!("UPDATE {TABLE} SET c = ? WHERE id = ?"),
        }
    }

    fn parameters(self) -> usize {
        match self {
            Kind::Points { points, .. } => points as usize,
            Kind::Updates { .. } => 2,
        }
    }

    /// The statement from which the script draws keys.
    fn statement(self) -> Statement {
        Statement::PointsByK { points: self.parameters() as u32 }
    }
}

pub(crate) struct Clients {
    stopping: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<Result<()>>>,
}

impl Clients {
    pub(crate) fn start(login: &Login, kind: Kind, count: u32, table: &Sbtest) -> Result<Clients> {
        let stopping = Arc::new(AtomicBool::new(false));
        let mut clients = Clients { stopping: stopping.clone(), threads: Vec::new() };
        let workload = Workload { table: *table, statement: kind.statement() };
        for number in 0..count {
            let (client, seen) = (login.connect()?, stopping.clone());
            let (target, script) = (login.target.clone(), workload.script(number, count, 303));
            let thread = thread::Builder::new()
                .name("explain-client".to_string())
                .spawn(move || ask(client, &target, kind, script, &seen))
                .map_err(Error::io("cannot start a client"))?;
            clients.threads.push(thread);
        }
        Ok(clients)
    }

    /// The first error that a client met.
    pub(crate) fn stop(mut self) -> Result<()> {
        // ORDER: a flag alone.
        self.stopping.store(true, Ordering::Relaxed);
        let ends = self.threads.drain(..).map(|thread| thread.join().expect("clients do not panic"));
        ends.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // ORDER: as in `stop`; a client that is left ends with its next answer.
        self.stopping.store(true, Ordering::Relaxed);
    }
}

fn ask(
    mut client: Client,
    target: &str,
    kind: Kind,
    mut script: Script,
    stopping: &AtomicBool,
) -> Result<()> {
    let sql = kind.sql();
    let told = |error| explained(target, &sql, error);
    let connection = client.connection();
    let prepared = if kind.is_text() { None } else { Some(connection.prepare(&sql).map_err(told)?.id) };
    let mut keys = vec![0; kind.parameters()];
    let mut text = String::new();
    // ORDER: as in `Clients::stop`.
    while !stopping.load(Ordering::Relaxed) {
        script.next(&mut keys);
        match prepared {
            Some(id) => {
                let values: Vec<WireValue<'_>> =
                    keys.iter().map(|key| WireValue::UInt((*key).into())).collect();
                connection.execute(id, &values).map_err(told)?;
            }
            None => {
                filled(&sql, &keys, &mut text);
                connection.query(&text).map_err(told)?;
            }
        }
    }
    Ok(())
}

/// Puts the keys where the question marks are.
fn filled(sql: &str, keys: &[u32], text: &mut String) {
    text.clear();
    let mut keys = keys.iter();
    for (position, part) in sql.split('?').enumerate() {
        if position > 0 {
            let _ = write!(text, "{}", keys.next().copied().unwrap_or_default());
        }
        text.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_keys_in_place() {
        let mut text = String::new();
        filled("WHERE k IN (?, ?)", &[7, 300], &mut text);
        assert_eq!(text, "WHERE k IN (7, 300)");
    }
}
