//! Rows of parameters with which one statement runs (COM_STMT_BULK_EXECUTE).

use types::ValueRef;

/// A parameter of one row.
#[derive(Clone, Copy, Debug)]
pub enum BulkParam<'a> {
    Value(ValueRef<'a>),
    /// The default of the column that it stands for.
    Default,
    /// In an UPDATE the column stays as it is; in an INSERT it gets its default.
    Ignore,
}

/// The rows of parameters, which a statement may read more than once.
pub trait ParameterRows<'a> {
    /// Goes back to the first row.
    fn rewind(&mut self);
    /// Replaces `row` with the next one. False if there is none.
    fn next_row(&mut self, row: &mut Vec<BulkParam<'a>>) -> bool;
}

/// The result of an INSERT, or of a statement like it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Inserted {
    pub affected: u64,
    pub records: u64,
    pub duplicates: u64,
    /// The first number that was generated, or the last number that was given.
    pub insert_id: u64,
    /// True if `insert_id` was generated.
    pub is_generated: bool,
}

/// What the rows have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bulk {
    pub(crate) inserted: Inserted,
    /// Rows that an UPDATE found, and that it changed.
    pub(crate) matched: u64,
    pub(crate) changed: u64,
    /// Rows of parameters that have run.
    rows: u64,
}

impl Bulk {
    pub(crate) fn is_at_first_row(&self) -> bool {
        self.rows == 0
    }

    /// The number of rows that were given to INSERT.
    pub(crate) fn records(&self) -> u64 {
        self.inserted.records
    }

    /// Adds what INSERT or REPLACE did with a row of parameters. The first number that was generated is the
    /// statement's, or else the last one that was given.
    pub(crate) fn add(&mut self, of_row: &Inserted) {
        let total = &mut self.inserted;
        self.rows += 1;
        total.affected += of_row.affected;
        total.records += of_row.records;
        total.duplicates += of_row.duplicates;
        if !total.is_generated && of_row.insert_id != 0 {
            total.insert_id = of_row.insert_id;
            total.is_generated = of_row.is_generated;
        }
    }

    /// Adds what UPDATE or DELETE did.
    pub(crate) fn add_changed(&mut self, affected: u64, matched: u64, changed: u64) {
        self.rows += 1;
        self.inserted.affected += affected;
        self.matched += matched;
        self.changed += changed;
    }
}
