//! The `latchwork` binary: `serve`, `lab`, `check`.
fn main() {}
