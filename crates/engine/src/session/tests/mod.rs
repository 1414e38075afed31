#[cfg(not(feature = "shuttle"))]
mod crashes;
#[cfg(feature = "shuttle")]
mod models;
#[cfg(not(feature = "shuttle"))]
mod redefined;
#[cfg(not(feature = "shuttle"))]
mod statements;
