#[cfg(feature = "shuttle")]
mod models;
#[cfg(not(feature = "shuttle"))]
mod tables;
