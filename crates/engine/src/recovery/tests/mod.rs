#[cfg(not(feature = "shuttle"))]
mod crashes;
