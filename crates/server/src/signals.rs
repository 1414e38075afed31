//! Turns SIGTERM and SIGINT into a byte in a socket, so that the thread which waits for connections wakes up.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::unix::net::UnixStream;

/// Writes a byte to `wake` at each signal.
pub(crate) fn stop_on_signals(wake: &UnixStream) -> io::Result<()> {
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
    }
    Ok(())
}
