//! Tables about kinds of objects that do not exist here. Tools query them anyway.

use super::Definition;
use crate::{Session, SqlError};
use types::Value;

fn nothing(_session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    Ok(Vec::new())
}

pub(super) static DEFINITIONS: &[Definition] = &[
    (
        "VIEWS",
        "TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, \
         VIEW_DEFINITION longtext NOT NULL, CHECK_OPTION varchar(8) NOT NULL, IS_UPDATABLE varchar(3) NOT NULL, \
         DEFINER varchar(384) NOT NULL, SECURITY_TYPE varchar(7) NOT NULL, \
         CHARACTER_SET_CLIENT varchar(32) NOT NULL, COLLATION_CONNECTION varchar(64) NOT NULL, \
         ALGORITHM varchar(10) NOT NULL",
        nothing,
    ),
    (
        "ROUTINES",
        "SPECIFIC_NAME varchar(64) NOT NULL, ROUTINE_CATALOG varchar(512) NOT NULL, \
         ROUTINE_SCHEMA varchar(64) NOT NULL, ROUTINE_NAME varchar(64) NOT NULL, ROUTINE_TYPE varchar(13) NOT NULL, \
         DATA_TYPE varchar(64) NOT NULL, DTD_IDENTIFIER longtext, ROUTINE_BODY varchar(8) NOT NULL, \
         ROUTINE_DEFINITION longtext, IS_DETERMINISTIC varchar(3) NOT NULL, SQL_DATA_ACCESS varchar(64) NOT NULL, \
         SECURITY_TYPE varchar(7) NOT NULL, CREATED datetime NOT NULL, LAST_ALTERED datetime NOT NULL, \
         SQL_MODE varchar(8192) NOT NULL, ROUTINE_COMMENT longtext NOT NULL, DEFINER varchar(384) NOT NULL",
        nothing,
    ),
    (
        "PARAMETERS",
        "SPECIFIC_CATALOG varchar(512) NOT NULL, SPECIFIC_SCHEMA varchar(64) NOT NULL, \
         SPECIFIC_NAME varchar(64) NOT NULL, ORDINAL_POSITION int(21) NOT NULL, PARAMETER_MODE varchar(5), \
         PARAMETER_NAME varchar(64), DATA_TYPE varchar(64) NOT NULL, DTD_IDENTIFIER longtext NOT NULL, \
         ROUTINE_TYPE varchar(9) NOT NULL",
        nothing,
    ),
    (
        "TRIGGERS",
        "TRIGGER_CATALOG varchar(512) NOT NULL, TRIGGER_SCHEMA varchar(64) NOT NULL, \
         TRIGGER_NAME varchar(64) NOT NULL, EVENT_MANIPULATION varchar(6) NOT NULL, \
         EVENT_OBJECT_CATALOG varchar(512) NOT NULL, EVENT_OBJECT_SCHEMA varchar(64) NOT NULL, \
         EVENT_OBJECT_TABLE varchar(64) NOT NULL, ACTION_ORDER bigint(4) NOT NULL, ACTION_CONDITION longtext, \
         ACTION_STATEMENT longtext, ACTION_ORIENTATION varchar(9) NOT NULL, ACTION_TIMING varchar(6) NOT NULL, \
         CREATED datetime(2), SQL_MODE varchar(8192) NOT NULL, DEFINER varchar(384)",
        nothing,
    ),
    (
        "EVENTS",
        "EVENT_CATALOG varchar(64) NOT NULL, EVENT_SCHEMA varchar(64) NOT NULL, EVENT_NAME varchar(64) NOT NULL, \
         DEFINER varchar(384) NOT NULL, TIME_ZONE varchar(64) NOT NULL, EVENT_BODY varchar(8) NOT NULL, \
         EVENT_DEFINITION longtext NOT NULL, EVENT_TYPE varchar(9) NOT NULL, EXECUTE_AT datetime, \
         INTERVAL_VALUE varchar(256), INTERVAL_FIELD varchar(18), STATUS varchar(18) NOT NULL",
        nothing,
    ),
    (
        "CHECK_CONSTRAINTS",
        "CONSTRAINT_CATALOG varchar(512) NOT NULL, CONSTRAINT_SCHEMA varchar(64) NOT NULL, \
         TABLE_NAME varchar(64) NOT NULL, CONSTRAINT_NAME varchar(64) NOT NULL, LEVEL varchar(6) NOT NULL, \
         CHECK_CLAUSE longtext NOT NULL",
        nothing,
    ),
    (
        "PARTITIONS",
        "TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, \
         PARTITION_NAME varchar(64), SUBPARTITION_NAME varchar(64), PARTITION_ORDINAL_POSITION bigint(21) unsigned, \
         SUBPARTITION_ORDINAL_POSITION bigint(21) unsigned, PARTITION_METHOD varchar(18), \
         SUBPARTITION_METHOD varchar(12), PARTITION_EXPRESSION longtext, SUBPARTITION_EXPRESSION longtext, \
         PARTITION_DESCRIPTION longtext, TABLE_ROWS bigint(21) unsigned NOT NULL, \
         AVG_ROW_LENGTH bigint(21) unsigned NOT NULL, DATA_LENGTH bigint(21) unsigned NOT NULL, \
         MAX_DATA_LENGTH bigint(21) unsigned, INDEX_LENGTH bigint(21) unsigned NOT NULL, \
         DATA_FREE bigint(21) unsigned NOT NULL, CREATE_TIME datetime, UPDATE_TIME datetime, CHECK_TIME datetime, \
         CHECKSUM bigint(21) unsigned, PARTITION_COMMENT varchar(80) NOT NULL, NODEGROUP varchar(12) NOT NULL, \
         TABLESPACE_NAME varchar(64)",
        nothing,
    ),
    (
        "FILES",
        "FILE_ID bigint(4) NOT NULL, FILE_NAME varchar(512), FILE_TYPE varchar(20) NOT NULL, \
         TABLESPACE_NAME varchar(64), TABLE_CATALOG varchar(64) NOT NULL, TABLE_SCHEMA varchar(64), \
         TABLE_NAME varchar(64), LOGFILE_GROUP_NAME varchar(64), LOGFILE_GROUP_NUMBER bigint(4), \
         ENGINE varchar(64) NOT NULL, FULLTEXT_KEYS varchar(64), DELETED_ROWS bigint(4), UPDATE_COUNT bigint(4), \
         FREE_EXTENTS bigint(4), TOTAL_EXTENTS bigint(4), EXTENT_SIZE bigint(4) NOT NULL, \
         INITIAL_SIZE bigint(21) unsigned, MAXIMUM_SIZE bigint(21) unsigned, AUTOEXTEND_SIZE bigint(21) unsigned, \
         STATUS varchar(20) NOT NULL, EXTRA varchar(255)",
        nothing,
    ),
];
