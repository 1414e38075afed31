//! Real clients against the real binary: `latchwork serve` as its users meet it.
//!
//! These tests need MariaDB's client, client library and server, sysbench, and Python with PyMySQL and
//! SQLAlchemy; `./test.sh` installs them. Without them a test says what it misses and passes, unless
//! `LATCHWORK_REQUIRE_CLIENTS` is set, as `./test.sh` does.

mod support;

mod bad_input;
mod clients;
mod column_types;
mod disk_full;
mod generated;
mod histories;
mod isolation;
mod joins;
mod key_caches;
mod kills;
mod lexers;
mod lifecycle;
mod loading;
mod login;
mod memory;
mod monitoring;
mod phases;
mod prepared;
mod prepared_definitions;
mod rights;
mod rolled_back_behind;
mod session_tracking;
mod sql_equality;
mod stress;
mod sysbench;
mod table_options;
mod tls_surface;
