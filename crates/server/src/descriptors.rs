//! How many descriptors the server may have: each connection takes one, and so does each open file.

use crate::log::Log;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything that is neither a connection nor a table's file.
const OTHERS: u64 = 64;
/// A connection has its socket, and may have the scratch file of a statement.
const OF_A_CONNECTION: u64 = 2;

/// Raises the soft limit of descriptors to `wanted`, or with 0 to the hard limit, and never lowers it. Gives
/// the limit in effect, the largest number if there is none, and says in the log what it is.
pub fn raise(wanted: u64, log: &Log) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let goal = if wanted == 0 { hard } else { wanted.min(hard) };
    let mut now = limit.current.unwrap_or(u64::MAX);
    if goal > now {
        let raised = Rlimit { current: (goal < u64::MAX).then_some(goal), maximum: limit.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => now = goal,
            Err(error) => {
                log.warning(&format!(
                    "the limit of open files cannot be raised from {now} to {goal}: {error}"
                ));
            }
        }
    }
    if now < wanted {
        log.warning(&format!("--open_files_limit={wanted}: the hard limit is {hard}"));
    }
    now
}

/// How many files of tables may be open, if the process has `limit` descriptors and takes `connections`.
pub fn for_tables(limit: u64, connections: u64) -> u64 {
    limit.saturating_sub(connections.saturating_mul(OF_A_CONNECTION) + OTHERS).max(limit / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_connections_get_their_share_first() {
        let log = Log::to_stderr();
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let got = raise(0, &log);
        assert_eq!(got, hard);
        assert_eq!(raise(16, &log), got, "it is never lowered");
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), hard);
        assert_eq!(for_tables(1_024, 151), 658);
        assert_eq!(for_tables(300, 151), 75);
        assert_eq!(for_tables(u64::MAX, 151), u64::MAX - 366);
    }
}
