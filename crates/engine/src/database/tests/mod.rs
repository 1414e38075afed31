#[cfg(not(feature = "shuttle"))]
mod databases;
#[cfg(not(feature = "shuttle"))]
mod definitions;
#[cfg(feature = "shuttle")]
mod models;
