//! Kinds of errors and warnings, with their numbers and SQLSTATEs in MySQL.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $code:literal, $sqlstate:literal;)*) => {
        /// A kind of error. Two kinds may share a number. A client sees only the number, and the server
        /// distinguishes the kinds.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $kind),* }

        impl ErrorKind {
            /// The number, as in `ERROR 1062`.
            pub const fn code(self) -> u16 {
                match self { $(ErrorKind::$kind => $code),* }
            }

            /// The SQLSTATE of standard SQL: five characters.
            pub const fn sqlstate(self) -> &'static [u8; 5] {
                let text: &str = match self { $(ErrorKind::$kind => $sqlstate),* };
                match text.as_bytes().first_chunk() {
                    Some(state) => state,
                    None => panic!("an SQLSTATE has five characters"),
                }
            }

            /// All of them, in the order of their numbers.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind),*];
        }
    };
}

kinds! {
    CannotReadFile: 2, "HY000";
    CannotStatFile: 13, "HY000";
    FileNotFound: 29, "HY000";
    WrongCreateOption: 140, "HY000";
    CannotCreateFile: 1004, "HY000";
    CannotCreateTable: 1005, "HY000";
    DatabaseExists: 1007, "HY000";
    DatabaseDoesNotExist: 1008, "HY000";
    RecordChanged: 1020, "HY000";
    DiskFull: 1021, "HY000";
    CannotWriteFile: 1026, "HY000";
    StorageEngineFailed: 1030, "HY000";
    IllegalForTable: 1031, "HY000";
    TableCorrupt: 1034, "HY000";
    TooManyConnections: 1040, "08004";
    OutOfResources: 1041, "HY000";
    BadHandshake: 1043, "08S01";
    DatabaseAccessDenied: 1044, "42000";
    AccessDenied: 1045, "28000";
    NoDatabase: 1046, "3D000";
    UnknownCommand: 1047, "08S01";
    ColumnCannotBeNull: 1048, "23000";
    UnknownDatabase: 1049, "42000";
    TableExists: 1050, "42S01";
    UnknownTable: 1051, "42S02";
    AmbiguousColumn: 1052, "23000";
    ServerShutdown: 1053, "08S01";
    UnknownColumn: 1054, "42S22";
    CannotGroupBy: 1056, "42000";
    IdentifierTooLong: 1059, "42000";
    DuplicateColumn: 1060, "42S21";
    DuplicateKeyName: 1061, "42000";
    DuplicateEntry: 1062, "23000";
    WrongColumnSpecifier: 1063, "42000";
    Syntax: 1064, "42000";
    EmptyQuery: 1065, "42000";
    NotUniqueTable: 1066, "42000";
    InvalidDefault: 1067, "42000";
    MultiplePrimaryKeys: 1068, "42000";
    TooManyKeys: 1069, "42000";
    TooManyKeyParts: 1070, "42000";
    KeyTooLong: 1071, "42000";
    KeyColumnDoesNotExist: 1072, "42000";
    ColumnTooLong: 1074, "42000";
    WrongAutoIncrementKey: 1075, "42000";
    WrongFieldTerminators: 1083, "42000";
    BlobsNeedTerminators: 1084, "42000";
    FileNotReadable: 1085, "HY000";
    WrongPrefixKey: 1089, "HY000";
    CannotRemoveAllColumns: 1090, "42000";
    CannotDropColumnOrKey: 1091, "42000";
    TargetIsSource: 1093, "HY000";
    UnknownThread: 1094, "HY000";
    KillDenied: 1095, "HY000";
    NoTablesUsed: 1096, "HY000";
    TooManyMembers: 1097, "HY000";
    TableLockedForRead: 1099, "HY000";
    TableNotLocked: 1100, "HY000";
    WrongDatabaseName: 1102, "42000";
    WrongTableName: 1103, "42000";
    Unknown: 1105, "HY000";
    UnknownTableInMulti: 1109, "42S02";
    ColumnSpecifiedTwice: 1110, "42000";
    InvalidGroupFunction: 1111, "HY000";
    TableNeedsColumns: 1113, "42000";
    UnknownCharacterSet: 1115, "42000";
    TooManyTables: 1116, "HY000";
    TooManyColumns: 1117, "42000";
    RowTooLarge: 1118, "42000";
    NoPathsForLibrary: 1124, "HY000";
    CannotOpenLibrary: 1126, "HY000";
    CannotFindSymbol: 1127, "HY000";
    UserNotFound: 1133, "28000";
    CannotCreateThread: 1135, "HY000";
    WrongValueCount: 1136, "21S01";
    RegularExpressionFailed: 1139, "42000";
    NoSuchGrant: 1141, "42000";
    TableAccessDenied: 1142, "42000";
    ColumnAccessDenied: 1143, "42000";
    IllegalGrantForTable: 1144, "42000";
    NoSuchTable: 1146, "42S02";
    NoSuchTableGrant: 1147, "42000";
    PacketTooLarge: 1153, "08S01";
    PacketsOutOfOrder: 1156, "08S01";
    NetworkReadFailed: 1158, "08S01";
    NetworkReadTimeout: 1159, "08S01";
    NetworkWriteFailed: 1160, "08S01";
    WrongColumnName: 1166, "42000";
    BlobKeyWithoutLength: 1170, "42000";
    TooManyRows: 1172, "42000";
    SafeUpdateWithoutKey: 1175, "HY000";
    KeyDoesNotExist: 1176, "42000";
    NewAbortingConnection: 1184, "08S01";
    LockedTablesOrTransaction: 1192, "HY000";
    UnknownSystemVariable: 1193, "HY000";
    TooManyUserConnections: 1203, "42000";
    LockWaitTimeout: 1205, "HY000";
    LockTableFull: 1206, "HY000";
    WrongArguments: 1210, "HY000";
    Deadlock: 1213, "40001";
    /// Of GET_LOCK: the transaction stays.
    UserLockDeadlock: 1213, "40001";
    WrongUsage: 1221, "HY000";
    WrongColumnCountInUnion: 1222, "21000";
    ReadLockHeld: 1223, "HY000";
    UserLimitReached: 1226, "42000";
    NeedsRight: 1227, "42000";
    LocalVariable: 1228, "HY000";
    GlobalVariable: 1229, "HY000";
    NoDefault: 1230, "42000";
    WrongValueForVariable: 1231, "42000";
    WrongTypeForVariable: 1232, "42000";
    NotSupported: 1235, "42000";
    WrongScopeOfVariable: 1238, "HY000";
    WrongForeignKey: 1239, "42000";
    WrongColumnCountOfOperand: 1241, "21000";
    SubqueryReturnsSeveralRows: 1242, "21000";
    UnknownStatementHandler: 1243, "HY000";
    IllegalReference: 1247, "42S22";
    DerivedTableNeedsAlias: 1248, "42000";
    TableNotAllowedHere: 1250, "42000";
    CollationCharacterSetMismatch: 1253, "42000";
    UncompressedTooLarge: 1256, "HY000";
    ZlibOutputTooSmall: 1258, "HY000";
    ZlibInputCorrupted: 1259, "HY000";
    CutByGroupConcat: 1260, "HY000";
    TooFewFields: 1261, "01000";
    TooManyFields: 1262, "01000";
    NullForNotNull: 1263, "22004";
    OutOfRange: 1264, "22003";
    DataTruncated: 1265, "01000";
    EngineSubstituted: 1266, "HY000";
    IllegalMixOfCollations: 1267, "HY000";
    CannotRevokeAll: 1269, "HY000";
    IllegalMixOfThreeCollations: 1270, "HY000";
    IllegalMixOfManyCollations: 1271, "HY000";
    NotAStructuredVariable: 1272, "HY000";
    UnknownCollation: 1273, "HY000";
    WrongIndexName: 1280, "42000";
    UnknownKeyCache: 1284, "HY000";
    UnknownStorageEngine: 1286, "42000";
    Deprecated: 1287, "HY000";
    NotUpdatable: 1288, "HY000";
    OptionPreventsStatement: 1290, "HY000";
    DuplicateMember: 1291, "HY000";
    TruncatedWrongValue: 1292, "22007";
    InvalidOnUpdate: 1294, "HY000";
    NotPreparable: 1295, "HY000";
    ErrorFromEngine: 1296, "HY000";
    UnknownTimeZone: 1298, "HY000";
    InvalidTimestamp: 1299, "HY000";
    InvalidCharacterString: 1300, "HY000";
    ResultLargerThanPacket: 1301, "HY000";
    DoesNotExist: 1305, "42000";
    QueryInterrupted: 1317, "70100";
    UndeclaredVariable: 1327, "42000";
    NoData: 1329, "02000";
    WrongColumnListOfView: 1353, "HY000";
    NoDefaultForField: 1364, "HY000";
    DivisionByZero: 1365, "22012";
    IncorrectValue: 1366, "22007";
    IllegalMember: 1367, "22007";
    WrongPasswordHash: 1372, "HY000";
    BinaryLogOff: 1381, "HY000";
    TooManyPlaceholders: 1390, "HY000";
    KeyPartIsZero: 1391, "HY000";
    OperationOnUserFailed: 1396, "HY000";
    DataTooLong: 1406, "22001";
    FixedRowsToVariables: 1409, "HY000";
    WrongValueForFunction: 1411, "HY000";
    TableDefinitionChanged: 1412, "HY000";
    /// A statement may be tried again after [`ErrorKind::TableDefinitionChanged`], but not after this error:
    /// the transaction has to end.
    SnapshotTooOld: 1412, "HY000";
    StatementHasNoOpenCursor: 1421, "HY000";
    ScaleTooBig: 1425, "42000";
    PrecisionTooBig: 1426, "42000";
    ScaleAbovePrecision: 1427, "42000";
    StackOverrun: 1436, "HY000";
    CannotDropDefaultCache: 1438, "HY000";
    DisplayWidthTooBig: 1439, "42000";
    DateTimeOverflow: 1441, "22008";
    RowIsReferenced: 1451, "23000";
    NoReferencedRow: 1452, "23000";
    TooManyStatements: 1461, "42000";
    AutoIncrementFailed: 1467, "HY000";
    StringTooLong: 1470, "HY000";
    IllegalCreateOption: 1478, "HY000";
    PartitionsOnUnpartitioned: 1505, "HY000";
    PluginNotLoaded: 1524, "HY000";
    WrongValue: 1525, "HY000";
    WrongTemporalLiteral: 1525, "HY000";
    IndexNeededByForeignKey: 1553, "HY000";
    TransactionUnderWay: 1568, "25001";
    WrongParameterCount: 1582, "42000";
    WrongParametersToFunction: 1583, "42000";
    BuiltInPlugin: 1619, "HY000";
    ReadOnlyVariable: 1621, "HY000";
    NonAsciiSeparator: 1638, "HY000";
    UnknownLocale: 1649, "HY000";
    DataOutOfRange: 1690, "22003";
    AccessDeniedShortly: 1698, "28000";
    SetPasswordIgnored: 1699, "HY000";
    TruncateOfParent: 1701, "42000";
    PartitionClauseOnUnpartitioned: 1747, "HY000";
    UnknownExplainFormat: 1791, "HY000";
    ReadOnlyTransaction: 1792, "25006";
    NotValidPassword: 1819, "HY000";
    MustChangePassword: 1820, "HY000";
    DuplicateConstraintName: 1826, "HY000";
    ColumnNeededByForeignKey: 1828, "HY000";
    ColumnNeededByChild: 1829, "HY000";
    ForeignKeyMustNotBeNull: 1830, "HY000";
    ColumnOfForeignKey: 1832, "HY000";
    ColumnOfChildsForeignKey: 1833, "HY000";
    MalformedPacket: 1835, "HY000";
    PasswordExpired: 1862, "HY000";
    ExpressionNotAllowed: 1901, "HY000";
    PrimaryKeyOnGenerated: 1903, "HY000";
    ForeignKeyOnGenerated: 1905, "HY000";
    ValueForGenerated: 1906, "HY000";
    NotYetForGenerated: 1907, "HY000";
    UnknownOption: 1911, "HY000";
    BadOptionValue: 1912, "HY000";
    DataOverflow: 1916, "HY000";
    /// The same where it is only a note.
    DataOverflowNoted: 1916, "HY000";
    CannotSetInTransaction: 1925, "HY000";
    ConnectionKilled: 1927, "70100";
    RecursionsExceeded: 1931, "HY000";
    BadBase64: 1958, "HY000";
    InvalidRole: 1959, "OP000";
    CannotGrantRole: 1961, "HY000";
    CannotRevokeRole: 1962, "HY000";
    PluginInstalled: 1968, "HY000";
    StatementTimeout: 1969, "70100";
    TooManyPreparedParameters: 1970, "42000";
    NotForStatement: 1971, "42000";
    UserExists: 1973, "HY000";
    UserDoesNotExist: 1974, "HY000";
    RoleExists: 1975, "HY000";
    RoleDoesNotExist: 1976, "HY000";
    QueryTimeout: 3024, "HY000";
    CompressionRefused: 3922, "HY000";
    CompressionLevelRefused: 3923, "HY000";
    WrongColumnListOfWith: 4002, "HY000";
    DuplicateQueryName: 4004, "HY000";
    RecursionWithoutAnchor: 4005, "HY000";
    RecursionViolatesStandard: 4008, "HY000";
    UnknownWindow: 4009, "HY000";
    DuplicateWindow: 4010, "HY000";
    PartitionBesideWindow: 4011, "HY000";
    OrderBesideWindow: 4012, "HY000";
    FrameInNamedWindow: 4013, "HY000";
    WrongFrameBounds: 4014, "HY000";
    WindowFunctionPlace: 4015, "HY000";
    WindowFunctionInWindow: 4016, "HY000";
    FrameNotAllowed: 4017, "HY000";
    WindowWithoutOrder: 4018, "HY000";
    RangeFrameOrder: 4019, "HY000";
    RowsFrameType: 4020, "HY000";
    RangeFrameType: 4021, "HY000";
    FrameExclusion: 4022, "HY000";
    NtileArgument: 4024, "HY000";
    ConstraintFailed: 4025, "23000";
    UninitializedField: 4029, "01000";
    InvalidDefaultParameter: 4032, "HY000";
    JsonBroken: 4035, "HY000";
    JsonDisallowed: 4036, "HY000";
    JsonEnd: 4037, "HY000";
    JsonSyntax: 4038, "HY000";
    JsonEscape: 4039, "HY000";
    JsonDepth: 4040, "HY000";
    JsonPathEnd: 4041, "HY000";
    JsonPathSyntax: 4042, "HY000";
    JsonPathDepth: 4043, "HY000";
    JsonPathWildcard: 4044, "HY000";
    JsonOneOrAll: 4046, "HY000";
    JsonPathWhole: 4051, "HY000";
    WindowFunctionInAggregate: 4074, "HY000";
    IllegalParameterTypes: 4078, "HY000";
    IllegalParameterType: 4079, "HY000";
    VariableIgnored: 4081, "HY000";
    WrongCountOfValues: 4099, "HY000";
    NameInValues: 4100, "HY000";
    PercentileOfText: 4101, "HY000";
    PercentileVaries: 4102, "HY000";
    PercentileOutOfRange: 4103, "HY000";
    PercentileArgument: 4104, "HY000";
    InvisibleNeedsDefault: 4108, "HY000";
    EmptyRowOfValues: 4141, "HY000";
    UserIsBlocked: 4150, "HY000";
    AccountLocked: 4151, "HY000";
    UnknownDataType: 4161, "HY000";
    CommandNotAllowed: 4166, "HY000";
    NotAllowedInContext: 4172, "HY000";
    PrimaryKeyIgnored: 4174, "HY000";
    TiesNeedOrder: 4180, "HY000";
}

#[cfg(test)]
mod tests {
    use super::ErrorKind;

    #[test]
    fn kinds_are_listed_by_number_and_have_a_whole_sqlstate() {
        assert!(ErrorKind::ALL.is_sorted_by_key(|kind| kind.code()));
        assert!(ErrorKind::ALL.iter().all(|kind| kind.sqlstate().iter().all(u8::is_ascii_alphanumeric)));
    }
}
