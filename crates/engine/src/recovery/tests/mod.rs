#[cfg(not(feature = "shuttle"))]
mod crashes;
#[cfg(not(feature = "shuttle"))]
mod lost_log;
