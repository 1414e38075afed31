#[cfg(not(feature = "shuttle"))]
mod databases;
#[cfg(feature = "shuttle")]
mod models;
