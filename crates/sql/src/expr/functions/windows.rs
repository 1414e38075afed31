//! Functions over a window of rows. Their evaluation is in `exec/window`.

functions! {
    "Window Functions";

    ROW_NUMBER {
        name: "row_number",
        arguments: "",
        arity: 0..=0,
        window: RowNumber,
        help: "Numbers the rows of a partition from 1 on. ROW_NUMBER() OVER (PARTITION BY value ORDER BY value).",
    }
    RANK {
        name: "rank",
        arguments: "",
        arity: 0..=0,
        window: Rank,
        help: "Gives one more than the number of rows that come before in the window's order. Equal rows have \
               the same rank, and the ranks after them are left out.",
    }
    DENSE_RANK {
        name: "dense_rank",
        arguments: "",
        arity: 0..=0,
        window: DenseRank,
        help: "Gives the rank of a row in the window's order. Equal rows have the same rank, and no rank is \
               left out.",
    }
    PERCENT_RANK {
        name: "percent_rank",
        arguments: "",
        arity: 0..=0,
        window: PercentRank,
        help: "Gives the share of the other rows of the partition that come before, from 0 to 1.",
    }
    CUME_DIST {
        name: "cume_dist",
        arguments: "",
        arity: 0..=0,
        window: CumeDist,
        help: "Gives the share of the rows of the partition that come before or are equal, up to 1.",
    }
    NTILE {
        name: "ntile",
        arguments: "count",
        arity: 1..=1,
        window: Ntile,
        help: "Divides the rows of a partition into as many parts of the same size as asked for, and gives the \
               number of the row's part.",
    }
    LAG {
        name: "lag",
        arguments: "value[, rows]",
        arity: 1..=2,
        window: Lag,
        help: "Gives the value in the row before, or in the one so many rows before. NULL if there is none in \
               the partition.",
    }
    LEAD {
        name: "lead",
        arguments: "value[, rows]",
        arity: 1..=2,
        window: Lead,
        help: "Gives the value in the next row, or in the one so many rows later. NULL if there is none in the \
               partition.",
    }
    FIRST_VALUE {
        name: "first_value",
        arguments: "value",
        arity: 1..=1,
        window: FirstValue,
        help: "Gives the value in the first row of the window's frame.",
    }
    LAST_VALUE {
        name: "last_value",
        arguments: "value",
        arity: 1..=1,
        window: LastValue,
        help: "Gives the value in the last row of the window's frame.",
    }
    NTH_VALUE {
        name: "nth_value",
        arguments: "value, number",
        arity: 2..=2,
        window: NthValue,
        help: "Gives the value in the row of this number of the window's frame, counted from 1.",
    }
    MEDIAN {
        name: "median",
        arguments: "number",
        arity: 1..=1,
        window: Median,
        help: "Gives the number in the middle of those of the partition, or the mean of the two that are there. \
               MEDIAN(number) OVER (PARTITION BY value).",
    }
    PERCENTILE_CONT {
        name: "percentile_cont",
        arguments: "share",
        arity: 1..=1,
        window: PercentileCont,
        help: "Gives the number below which this share of the numbers of the partition lies, between two of them \
               if need be. PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY number) OVER (PARTITION BY value).",
    }
    PERCENTILE_DISC {
        name: "percentile_disc",
        arguments: "share",
        arity: 1..=1,
        window: PercentileDisc,
        help: "Gives the first value of the partition up to which at least this share of the values lies. \
               PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY value) OVER (PARTITION BY value).",
    }
}
