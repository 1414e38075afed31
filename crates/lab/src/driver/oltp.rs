//! Sysbench's OLTP transactions by the lab's own clients, as text or prepared.

use super::Window;
use super::builtin::{self, Asking};
use super::exchange::Exchange;
use super::socket::{Login, Socket, explained};
use super::workers::Observed;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::results::Sample;
use crate::workload::Sbtest;
use crate::workload::oltp::{Distribution, Mix, Parameter, Step, Transactions};
use std::io::Write;
use std::time::Instant;
use wire::client::Summary;
use wire::{PacketWriter, WireValue};

/// The work of all clients of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Oltp {
    pub mix: Mix,
    pub table: Sbtest,
    pub distribution: Distribution,
    pub prepared: bool,
    /// True if each read has to find every row, because the target has transactions.
    pub checked: bool,
}

/// The name of the count of transactions that gave up because of deadlocks and the like.
pub(crate) const FAILED: &str = "transactions/s given up (deadlocks, lock waits, duplicates)";

/// Errors after which sysbench tries again: a deadlock, a lock wait that took too long, a row that changed
/// meanwhile. Also a duplicate, which engines without transactions report when two sessions replace the same
/// row.
pub(crate) const TRY_AGAIN: [u16; 4] = [1213, 1205, 1020, 1062];

/// Connects all clients, runs them, and counts transactions.
pub(crate) fn run(
    login: &Login,
    oltp: &Oltp,
    sessions: u32,
    seed: u64,
    window: &Window,
    observed: &Observed<'_>,
    interrupt: &Interrupt,
) -> Result<Sample> {
    let mut clients = Vec::with_capacity(sessions as usize);
    for number in 0..sessions {
        interrupt.check()?;
        clients.push(Client::connect(login, oltp, seed, number)?);
    }
    let mut sample = builtin::drive(&mut clients, window, observed, interrupt)?;
    // This is counted over the whole sample, not only in the window.
    let failed: u64 = clients.iter().map(|client| client.failed).sum();
    let running = clients.iter().map(|client| client.first.elapsed().as_secs_f64()).fold(0.0, f64::max);
    if failed > 0 {
        sample.extra.push((FAILED.to_string(), failed as f64 / running));
    }
    Ok(sample)
}

/// One session.
struct Client {
    exchange: Exchange,
    oltp: Oltp,
    transactions: Transactions,
    step: Step,
    parameters: Vec<Parameter>,
    /// The prepared statement of each step; `None`: it goes as text.
    statements: Vec<Option<u32>>,
    writer: PacketWriter,
    /// Rows that the transaction under way has read.
    rows: u64,
    rolling_back: bool,
    failed: u64,
    first: Instant,
    asked: Instant,
}

impl Client {
    fn connect(login: &Login, oltp: &Oltp, seed: u64, number: u32) -> Result<Client> {
        let mut connection = login.connect()?.into_connection();
        let mut statements = vec![None; Step::COUNT];
        if oltp.prepared {
            // BEGIN and COMMIT are always sent as text: servers could not prepare them when the study was
            // made.
            for &step in oltp.mix.steps().iter().filter(|step| step.sql().contains('?')) {
                if statements[step as usize].is_none() {
                    let sql = step.sql();
                    let prepared = connection.prepare(&sql);
                    let prepared = prepared.map_err(|error| explained(&login.target, &sql, error))?;
                    statements[step as usize] = Some(prepared.id);
                }
            }
        }
        Ok(Client {
            exchange: Exchange::new(&login.target, connection),
            oltp: *oltp,
            transactions: Transactions::new(oltp.mix, &oltp.table, oltp.distribution, seed, number),
            step: Step::Begin,
            parameters: Vec::new(),
            statements,
            writer: PacketWriter::new(),
            rows: 0,
            rolling_back: false,
            failed: 0,
            first: Instant::now(),
            asked: Instant::now(),
        })
    }

    fn send_next(&mut self) -> Result<()> {
        self.step = self.transactions.next(&mut self.parameters);
        match self.statements[self.step as usize] {
            Some(statement) => {
                let values: Vec<WireValue<'_>> = self.parameters.iter().map(value).collect();
                wire::client::execute(&mut self.writer, statement, &values);
            }
            None => wire::client::query(&mut self.writer, &text(self.step, &self.parameters)),
        }
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        let sent = self.exchange.send(self.writer.bytes());
        self.writer.clear();
        sent
    }

    /// What the answer to a statement means for its transaction; true if it is the last.
    fn answered(&mut self) -> Result<bool> {
        if let Some(error) = &self.exchange.summary().error {
            if !TRY_AGAIN.contains(&error.code) || self.rolling_back {
                return Err(self.exchange.refused(&self.step.sql(), error));
            }
            self.failed += 1;
            self.rolling_back = true;
            wire::client::query(&mut self.writer, b"ROLLBACK");
            self.send()?;
            return Ok(false);
        }
        if std::mem::take(&mut self.rolling_back) {
            self.transactions.restart();
            self.rows = 0;
        } else {
            self.check(self.exchange.summary())?;
            self.rows += self.exchange.summary().rows;
            if self.transactions.is_between() {
                return Ok(true);
            }
        }
        self.send_next()?;
        Ok(false)
    }

    fn check(&self, summary: &Summary) -> Result<()> {
        let expected = self.transactions.expected_rows(self.step, &self.parameters);
        match expected.filter(|_| self.oltp.checked) {
            Some(expected) if expected != summary.rows => Err(self.exchange.wrong_answer(format!(
                "{} rows instead of {expected} for {}",
                summary.rows,
                String::from_utf8_lossy(&text(self.step, &self.parameters))
            ))),
            _ => Ok(()),
        }
    }
}

impl Asking for Client {
    fn socket(&self) -> &Socket {
        self.exchange.socket()
    }

    fn ask(&mut self) -> Result<()> {
        self.rows = 0;
        self.asked = Instant::now();
        self.send_next()
    }

    fn asked(&self) -> Instant {
        self.asked
    }

    fn receive(&mut self) -> Result<Option<u64>> {
        if !self.exchange.receive(|_| true)? {
            return Ok(None);
        }
        Ok(self.answered()?.then_some(self.rows))
    }
}

fn value(parameter: &Parameter) -> WireValue<'_> {
    match parameter {
        Parameter::Number(number) => WireValue::UInt((*number).into()),
        Parameter::C(text) => WireValue::Text(text),
        Parameter::Pad(text) => WireValue::Text(text),
    }
}

/// The statement with its values in place, as a client without prepared statements sends it.
fn text(step: Step, parameters: &[Parameter]) -> Vec<u8> {
    let sql = step.sql();
    let mut out = Vec::with_capacity(sql.len() + 256);
    let mut pieces = sql.split('?');
    out.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for (piece, parameter) in pieces.zip(parameters) {
        let quoted = |out: &mut Vec<u8>, text: &[u8]| {
            out.push(b'\'');
            // Digits and dashes: nothing to escape.
            out.extend_from_slice(text);
            out.push(b'\'');
        };
        match parameter {
            // Writing into memory cannot fail.
            Parameter::Number(number) => drop(write!(out, "{number}")),
            Parameter::C(text) => quoted(&mut out, text),
            Parameter::Pad(text) => quoted(&mut out, text),
        }
        out.extend_from_slice(piece.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_as_text_has_its_values_in_place() {
        let between = [Parameter::Number(7), Parameter::Number(106)];
        assert_eq!(
            text(Step::Order, &between),
            b"SELECT c FROM sbtest1 WHERE id BETWEEN 7 AND 106 ORDER BY c"
        );
        let update = [Parameter::C([b'1'; 119]), Parameter::Number(3)];
        let expected = format!("UPDATE sbtest1 SET c='{}' WHERE id=3", "1".repeat(119));
        assert_eq!(String::from_utf8(text(Step::OtherUpdate, &update)).unwrap(), expected);
        assert_eq!(text(Step::Commit, &[]), b"COMMIT");
    }
}
