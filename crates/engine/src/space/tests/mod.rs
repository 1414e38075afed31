#[cfg(feature = "shuttle")]
mod models;
