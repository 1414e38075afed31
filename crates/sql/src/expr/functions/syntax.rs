//! What looks like a function and is another expression. The parser or the binder has a rule for each.

functions! {
    "Conversions and Forms of Statements";

    CAST {
        name: "cast",
        arguments: "value AS type",
        arity: 2..=2,
        syntax: Keyword,
        bound: Bound,
        help: "Converts a value to a type: BINARY, CHAR, DATE, DATETIME, DECIMAL, DOUBLE, FLOAT, SIGNED, TIME or \
               UNSIGNED.",
        example: "CAST('12.6' AS DECIMAL(4,1))" => "12.6",
    }
    CONVERT {
        name: "convert",
        arguments: "value, type",
        arity: 2..=2,
        syntax: Keyword,
        bound: Bound,
        help: "Converts a value to a type, as CAST does. CONVERT(text USING name) converts a text to a character set.",
        example: "CONVERT('12', SIGNED)" => "12",
    }
    VALUES {
        name: "values",
        aliases: ["value"],
        arguments: "column",
        arity: 1..=1,
        syntax: InsertedValue,
        bound: Bound,
        help: "In ON DUPLICATE KEY UPDATE: the value that INSERT would have stored in the column.",
    }
}
