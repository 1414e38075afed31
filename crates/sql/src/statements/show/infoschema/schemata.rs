//! SCHEMATA.

use super::{Definition, INFORMATION_SCHEMA};
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
    let own =
        (INFORMATION_SCHEMA.to_owned(), DatabaseMetadata { collation: Collation::Utf8mb4GeneralCi }.encode());
    let mut databases = session.instance.database.databases();
    databases.retain(|(name, _)| session.access.lists_database(name));
    databases.push(own);
    databases.sort();
    Ok(databases
        .into_iter()
        .map(|(name, metadata)| {
            let info = describe(DatabaseMetadata::decode(&metadata).collation);
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
