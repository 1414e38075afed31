//! The built-in functions by name.

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident: $($name:literal)|+ => $low:literal..=$high:tt),* $(,)?) => {
        /// A built-in function.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Function { $($(#[$doc])* $variant),* }

        impl Function {
            /// All of them.
            pub const ALL: &[Function] = &[$(Function::$variant),*];

            /// The function of a name, whatever its case; `None` is error 1305.
            pub fn lookup(name: &str) -> Option<Function> {
                Some(match name.to_ascii_lowercase().as_str() {
                    $($($name)|+ => Function::$variant,)*
                    _ => return None,
                })
            }

            /// The name that messages use.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => first(&[$($name),+])),* }
            }

            /// How many arguments it takes.
            pub fn arity(self) -> std::ops::RangeInclusive<usize> {
                match self { $(Function::$variant => $low..=$high),* }
            }
        }
    };
}

const fn first(names: &[&'static str]) -> &'static str {
    names[0]
}

/// Any number of arguments.
const MANY: usize = usize::MAX;

functions! {
    // The session.
    Version: "version" => 0..=0,
    Database: "database" | "schema" => 0..=0,
    User: "user" | "session_user" | "system_user" => 0..=0,
    CurrentUser: "current_user" => 0..=0,
    ConnectionId: "connection_id" => 0..=0,
    LastInsertId: "last_insert_id" => 0..=1,
    FoundRows: "found_rows" => 0..=0,
    RowCount: "row_count" => 0..=0,
    Uuid: "uuid" => 0..=0,
    Sleep: "sleep" => 1..=1,
    Benchmark: "benchmark" => 2..=2,
    Charset: "charset" => 1..=1,
    CollationOf: "collation" => 1..=1,
    Coercibility: "coercibility" => 1..=1,
    // Choice.
    If: "if" => 3..=3,
    IfNull: "ifnull" | "nvl" => 2..=2,
    NullIf: "nullif" => 2..=2,
    Coalesce: "coalesce" => 1..=MANY,
    IsNull: "isnull" => 1..=1,
    Greatest: "greatest" => 2..=MANY,
    Least: "least" => 2..=MANY,
    Interval: "interval" => 2..=MANY,
    Elt: "elt" => 2..=MANY,
    Field: "field" => 2..=MANY,
    StrCmp: "strcmp" => 2..=2,
    // Texts.
    Concat: "concat" => 1..=MANY,
    ConcatWs: "concat_ws" => 2..=MANY,
    Substring: "substring" | "substr" | "mid" => 2..=3,
    SubstringIndex: "substring_index" => 3..=3,
    Left: "left" => 2..=2,
    Right: "right" => 2..=2,
    Length: "length" | "octet_length" => 1..=1,
    CharLength: "char_length" | "character_length" => 1..=1,
    BitLength: "bit_length" => 1..=1,
    Upper: "upper" | "ucase" => 1..=1,
    Lower: "lower" | "lcase" => 1..=1,
    /// TRIM(BOTH x FROM s) is (s, x); TRIM(s) is (s).
    Trim: "trim" => 1..=2,
    /// LTRIM(s) and TRIM(LEADING x FROM s).
    LeftTrim: "ltrim" => 1..=2,
    RightTrim: "rtrim" => 1..=2,
    Replace: "replace" => 3..=3,
    Insert: "insert" => 4..=4,
    LeftPad: "lpad" => 2..=3,
    RightPad: "rpad" => 2..=3,
    Repeat: "repeat" => 2..=2,
    Space: "space" => 1..=1,
    Reverse: "reverse" => 1..=1,
    /// INSTR(text, part).
    Instr: "instr" => 2..=2,
    /// LOCATE(part, text, from).
    Locate: "locate" | "position" => 2..=3,
    FindInSet: "find_in_set" => 2..=2,
    Hex: "hex" => 1..=1,
    Unhex: "unhex" => 1..=1,
    Ascii: "ascii" => 1..=1,
    Ord: "ord" => 1..=1,
    /// CHAR(n, ...).
    Char: "char" | "chr" => 1..=MANY,
    Bin: "bin" => 1..=1,
    Oct: "oct" => 1..=1,
    Conv: "conv" => 3..=3,
    Quote: "quote" => 1..=1,
    Format: "format" => 2..=3,
    Md5: "md5" => 1..=1,
    Sha1: "sha1" | "sha" => 1..=1,
    Crc32: "crc32" => 1..=1,
    // Numbers.
    Abs: "abs" => 1..=1,
    Ceiling: "ceiling" | "ceil" => 1..=1,
    Floor: "floor" => 1..=1,
    Round: "round" => 1..=2,
    Truncate: "truncate" => 2..=2,
    Mod: "mod" => 2..=2,
    Power: "pow" | "power" => 2..=2,
    SquareRoot: "sqrt" => 1..=1,
    Sign: "sign" => 1..=1,
    Random: "rand" => 0..=1,
    Exp: "exp" => 1..=1,
    Ln: "ln" => 1..=1,
    Log: "log" => 1..=2,
    Log2: "log2" => 1..=1,
    Log10: "log10" => 1..=1,
    Pi: "pi" => 0..=0,
    Sin: "sin" => 1..=1,
    Cos: "cos" => 1..=1,
    Tan: "tan" => 1..=1,
    Cot: "cot" => 1..=1,
    Asin: "asin" => 1..=1,
    Acos: "acos" => 1..=1,
    Atan: "atan" | "atan2" => 1..=2,
    Radians: "radians" => 1..=1,
    Degrees: "degrees" => 1..=1,
    BitCount: "bit_count" => 1..=1,
    // Dates and times.
    Now: "now" | "current_timestamp" | "localtime" | "localtimestamp" => 0..=1,
    SysDate: "sysdate" => 0..=1,
    CurrentDate: "curdate" | "current_date" => 0..=0,
    CurrentTime: "curtime" | "current_time" => 0..=1,
    UtcTimestamp: "utc_timestamp" => 0..=1,
    UtcDate: "utc_date" => 0..=0,
    UtcTime: "utc_time" => 0..=1,
    UnixTimestamp: "unix_timestamp" => 0..=1,
    FromUnixTime: "from_unixtime" => 1..=2,
    Date: "date" => 1..=1,
    Time: "time" => 1..=1,
    Timestamp: "timestamp" => 1..=2,
    Year: "year" => 1..=1,
    Quarter: "quarter" => 1..=1,
    Month: "month" => 1..=1,
    MonthName: "monthname" => 1..=1,
    Week: "week" => 1..=2,
    WeekOfYear: "weekofyear" => 1..=1,
    YearWeek: "yearweek" => 1..=2,
    Day: "day" | "dayofmonth" => 1..=1,
    DayOfWeek: "dayofweek" => 1..=1,
    DayOfYear: "dayofyear" => 1..=1,
    Weekday: "weekday" => 1..=1,
    DayName: "dayname" => 1..=1,
    LastDay: "last_day" => 1..=1,
    Hour: "hour" => 1..=1,
    Minute: "minute" => 1..=1,
    Second: "second" => 1..=1,
    Microsecond: "microsecond" => 1..=1,
    /// EXTRACT(unit FROM x): x and an INTERVAL of the unit (its amount is not looked at).
    Extract: "extract" => 2..=2,
    /// The second argument is an INTERVAL or, for ADDDATE, a number of days.
    DateAdd: "date_add" | "adddate" => 2..=2,
    DateSub: "date_sub" | "subdate" => 2..=2,
    /// TIMESTAMPADD(unit, n, x) as (x, INTERVAL n unit).
    TimestampAdd: "timestampadd" => 2..=2,
    /// TIMESTAMPDIFF(unit, a, b) as (INTERVAL 0 unit, a, b).
    TimestampDiff: "timestampdiff" => 3..=3,
    DateDiff: "datediff" => 2..=2,
    TimeDiff: "timediff" => 2..=2,
    AddTime: "addtime" => 2..=2,
    SubTime: "subtime" => 2..=2,
    DateFormat: "date_format" => 2..=2,
    TimeFormat: "time_format" => 2..=2,
    StrToDate: "str_to_date" => 2..=2,
    ToDays: "to_days" => 1..=1,
    FromDays: "from_days" => 1..=1,
    TimeToSec: "time_to_sec" => 1..=1,
    SecToTime: "sec_to_time" => 1..=1,
    MakeDate: "makedate" => 2..=2,
    MakeTime: "maketime" => 3..=3,
}
