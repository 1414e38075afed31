//! The parts of Student's t distribution that intervals need.

/// The `t` at the ends of a two-sided interval of this confidence. `degrees` of freedom need not be whole.
/// It inverts the distribution by bisection: that is fast enough for a report, which asks a few hundred
/// times.
pub(crate) fn two_sided(confidence: f64, degrees: f64) -> f64 {
    let tails = 1.0 - confidence;
    let (mut low, mut high) = (0.0, 1.0);
    while both_tails(high, degrees) > tails {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if both_tails(middle, degrees) > tails { low = middle } else { high = middle }
    }
    high
}

/// P(|T| > t).
fn both_tails(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun, 26.5.8). The
/// fraction converges fast below the mean of the distribution. Above the mean the function computes the other
/// tail.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    front.exp() / a * beta_fraction(x, a, b)
}

/// By Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERMS_MAX: u32 = 300;
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut numerator = 1.0;
    let mut denominator = away_from_zero(1.0 - (a + b) * x / (a + 1.0)).recip();
    let mut value = denominator;
    for term in 1..=TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            denominator = away_from_zero(1.0 + coefficient * denominator).recip();
            numerator = away_from_zero(1.0 + coefficient / numerator);
            change = numerator * denominator;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function of a positive number, by Lanczos' approximation (g = 7, nine terms),
/// exact to 15 digits.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // The reflection formula, because the terms are only good for larger numbers.
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let base = x + 7.5;
    let terms = TERMS.iter().zip(1u32..).map(|(term, position)| term / (x + f64::from(position)));
    let sum = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (confidence, degrees, t) in [
            (0.95, 1.0, 12.706_2),
            (0.95, 2.0, 4.302_7),
            (0.95, 4.0, 2.776_4),
            (0.95, 10.0, 2.228_1),
            (0.99, 5.0, 4.032_1),
            (0.90, 30.0, 1.697_3),
            (0.95, 1_000_000.0, 1.959_97),
        ] {
            let found = two_sided(confidence, degrees);
            assert!((found - t).abs() < 1e-4, "{confidence} with {degrees}: {found}, not {t}");
        }
        let between = two_sided(0.95, 2.5);
        assert!(two_sided(0.95, 3.0) < between && between < two_sided(0.95, 2.0));
    }

    #[test]
    fn the_gamma_function_interpolates_factorials() {
        for (x, factorial) in [(1.0, 1.0), (2.0, 1.0), (5.0, 24.0), (11.0, 3_628_800.0)] {
            assert!((ln_gamma(x) - f64::ln(factorial)).abs() < 1e-12);
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
        assert!((ln_gamma(0.25).exp() - 3.625_609_908_221_908).abs() < 1e-12);
    }
}
