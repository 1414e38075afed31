//! SCHEMATA.

use super::{Definition, database_names};
use crate::definition::metadata::DatabaseMetadata;
use crate::names::charsets::describe;
use crate::{Session, SqlError};
use types::{Collation, Value};

pub(super) static DEFINITIONS: &[Definition] = &[(
    "SCHEMATA",
    "CATALOG_NAME varchar(512) NOT NULL, SCHEMA_NAME varchar(64) NOT NULL, \
     DEFAULT_CHARACTER_SET_NAME varchar(32) NOT NULL, DEFAULT_COLLATION_NAME varchar(64) NOT NULL, \
     SQL_PATH varchar(512), SCHEMA_COMMENT varchar(1024) NOT NULL",
    rows,
)];

fn rows(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let databases = session.instance.database.databases();
    let collation = |name: &str| {
        let stored = databases.iter().find(|(of, _)| of == name);
        stored
            .map_or(Collation::Utf8mb4GeneralCi, |(_, metadata)| DatabaseMetadata::decode(metadata).collation)
    };
    Ok(database_names(session)
        .into_iter()
        .map(|name| {
            let info = describe(collation(&name));
            vec![
                Value::text("def"),
                Value::text(name),
                Value::text(info.charset),
                Value::text(info.name),
                Value::Null,
                Value::text(""),
            ]
        })
        .collect())
}
