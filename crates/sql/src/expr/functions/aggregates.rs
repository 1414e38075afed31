//! Functions of all rows of a group. Their evaluation is in [`crate::expr::aggregate`].

use super::MANY;

functions! {
    "Aggregate Functions";

    COUNT {
        name: "count",
        arguments: "value, ...",
        arity: 1..=MANY,
        aggregate: Count,
        help: "Counts the rows in which the value is not NULL. COUNT(*) counts all rows. COUNT(DISTINCT value, ...) \
               counts different rows of values.",
    }
    SUM {
        name: "sum",
        arguments: "number",
        arity: 1..=1,
        aggregate: Sum,
        help: "Adds the numbers that are not NULL. Gives NULL if there are none.",
    }
    AVG {
        name: "avg",
        arguments: "number",
        arity: 1..=1,
        aggregate: Average,
        help: "Gives the mean of the numbers that are not NULL.",
    }
    MIN {
        name: "min",
        arguments: "value",
        arity: 1..=1,
        aggregate: Minimum,
        help: "Gives the smallest value that is not NULL.",
    }
    MAX {
        name: "max",
        arguments: "value",
        arity: 1..=1,
        aggregate: Maximum,
        help: "Gives the largest value that is not NULL.",
    }
    GROUP_CONCAT {
        name: "group_concat",
        arguments: "text, ...",
        arity: 1..=MANY,
        aggregate: GroupConcat,
        help: "Joins the texts of a group with commas. GROUP_CONCAT(DISTINCT text ORDER BY value SEPARATOR 'between') \
               leaves out equal texts, orders them, and sets what stands between them.",
    }
    JSON_ARRAYAGG {
        name: "json_arrayagg",
        arguments: "value",
        arity: 1..=1,
        aggregate: JsonArray,
        help: "Makes a JSON array of the values of a group, NULL as null. JSON_ARRAYAGG(DISTINCT value ORDER BY value) \
               leaves out equal values and orders them.",
    }
    JSON_OBJECTAGG {
        name: "json_objectagg",
        arguments: "key, value",
        arity: 2..=2,
        aggregate: JsonObject,
        help: "Makes a JSON object of the keys and values of a group. A key that is NULL is left out.",
    }
    BIT_AND {
        name: "bit_and",
        arguments: "number",
        arity: 1..=1,
        aggregate: BitAnd,
        help: "Gives the bits that are set in all numbers, and all 64 bits if there is no number.",
    }
    BIT_OR {
        name: "bit_or",
        arguments: "number",
        arity: 1..=1,
        aggregate: BitOr,
        help: "Gives the bits that are set in at least one number.",
    }
    BIT_XOR {
        name: "bit_xor",
        arguments: "number",
        arity: 1..=1,
        aggregate: BitXor,
        help: "Gives the bits that are set in an odd number of the numbers.",
    }
    STANDARD_DEVIATION {
        name: "std",
        aliases: ["stddev", "stddev_pop"],
        arguments: "number",
        arity: 1..=1,
        aggregate: StandardDeviation,
        help: "Gives the standard deviation of the numbers, taken as the whole population.",
    }
    SAMPLE_STANDARD_DEVIATION {
        name: "stddev_samp",
        arguments: "number",
        arity: 1..=1,
        aggregate: SampleStandardDeviation,
        help: "Gives the standard deviation of the numbers, taken as a sample. NULL for fewer than two.",
    }
    VARIANCE {
        name: "variance",
        aliases: ["var_pop"],
        arguments: "number",
        arity: 1..=1,
        aggregate: Variance,
        help: "Gives the variance of the numbers, taken as the whole population.",
    }
    SAMPLE_VARIANCE {
        name: "var_samp",
        arguments: "number",
        arity: 1..=1,
        aggregate: SampleVariance,
        help: "Gives the variance of the numbers, taken as a sample. NULL for fewer than two.",
    }
}
