//! A server in this process. The client codec talks to it over real sockets.

mod answers;
mod audit;
mod bulk;
mod commands;
mod compression;
mod cursors;
mod doors;
mod faults;
mod gate;
mod io;
mod latches;
mod limits;
mod long_readers;
mod malformed;
mod methods;
mod packets;
mod password_checks;
mod progress;
mod proxies;
mod query_attributes;
mod row_locks;
mod session_tracking;
mod sessions;
mod support;
mod tls;
mod waiting;
