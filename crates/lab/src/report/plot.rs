//! One plot as SVG. Lines differ by dashes, markers and labels at their ends, not by colour alone.
//! `report.js` computes the layout again, by the same rules, when lines are hidden or an axis changes its
//! scale; the browser test compares the two layouts.

use super::html::escape;
use super::view::grouped;
use crate::json::Json;
use crate::stats::Estimate;
use std::fmt::Write;

/// The viewBox, in pixels at its natural size, and the margins around the plotted area.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
/// The margin above a plot that is a file of its own.
const CAPTION: f64 = 28.0;
/// The distance from the edges of the plotted area to the first and the last x.
const PADDING: f64 = 14.0;
/// Half the width of a whisker's caps.
const CAP: f64 = 3.0;
/// The distance from a line's last marker to its label, and the width of a bold letter of the label.
const LABEL_GAP: f64 = 22.0;
const LABEL_LETTER: f64 = 7.3;
/// The least distance between the values of x on the axis.
const X_LABEL_STEP: f64 = 48.0;
/// The least distance between the labels at the ends of the lines.
const LABEL_STEP: f64 = 15.0;
const TICKS_MAX: f64 = 6.0;
/// How much the intervals may add to the range of the medians, at each end.
const ROOM_SHARE: f64 = 0.25;
/// The value that a logarithmic axis shows for zero.
const LOG_FLOOR: f64 = 1e-6;
pub(crate) const COLOURS: usize = 8;
const DASHES: [&str; 6] = ["none", "7 4", "2 3", "10 4 2 4", "14 5", "5 2 2 2 2 2"];
/// Markers of about eight pixels around the origin.
const MARKERS: [&str; 8] = [
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    "M-3.5 -3.5H3.5V3.5H-3.5Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 -4.5L4.5 3.5H-4.5Z",
    "M0 4.5L-4.5 -3.5H4.5Z",
    "M-4 -4L4 4M-4 4L4 -4",
    "M0 -5V5M-5 0H5",
    "M-4.5 0L-2 -4H2L4.5 0L2 4H-2Z",
];

/// A plot's data.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub title: String,
    pub y_name: String,
    pub x_name: String,
    pub xs: Vec<u32>,
    pub x_scale: Scaling,
    pub y_scale: Scaling,
    pub lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scaling {
    Linear,
    /// Logarithmic axes: the horizontal one to the base of two, because thread counts double, the vertical
    /// one to the base of ten.
    Logarithmic,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Decides colour, dash and marker, the same in all plots.
    pub number: usize,
    pub label: String,
    pub points: Vec<(u32, Estimate)>,
}

/// The dash pattern and marker of line `number`.
pub(crate) fn style(number: usize) -> (&'static str, &'static str) {
    (DASHES[number % DASHES.len()], MARKERS[number % MARKERS.len()])
}

impl Plot {
    /// The margin that the labels need.
    fn right(&self) -> f64 {
        let letters = self.lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0);
        (LABEL_GAP + LABEL_LETTER * letters as f64).clamp(60.0, WIDTH / 2.0)
    }

    /// The `<svg>` element. `id` is unique in the page.
    pub(crate) fn to_svg(&self, id: &str) -> String {
        let scale = Scale::of(self);
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title\" \
             data-plot=\"{}\"><title id=\"{id}-title\">{}</title>",
            escape(&self.data(&scale).to_string()),
            escape(&format!("{}: {} over {}", self.title, self.y_name, self.x_name)),
        );
        self.frame(&scale, &mut svg);
        let labels = label_places(
            &self
                .lines
                .iter()
                .map(|line| line.points.last().map(|(_, last)| scale.y(last.median)))
                .collect::<Vec<_>>(),
        );
        for (line, label_y) in self.lines.iter().zip(labels) {
            line_svg(line, &scale, label_y, self, &mut svg);
        }
        svg.push_str("</svg>");
        svg
    }

    /// A file of its own, with its styles and a title.
    pub(crate) fn to_picture(&self, style: &str) -> String {
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 -{CAPTION} {WIDTH} {}\" \
             role=\"img\"><style>{style}</style><rect y=\"-{CAPTION}\" width=\"100%\" height=\"100%\" \
             style=\"fill: var(--paper)\"/><text x=\"{LEFT}\" y=\"-8\" style=\"font-weight: 600\">{}</text>",
            HEIGHT + CAPTION,
            escape(&format!("{}, {}", self.y_name, self.title)),
        );
        let svg = self.to_svg("plot");
        let inside = svg.find("<title").expect("a plot has a title");
        head + &svg[inside..]
    }

    /// Axes, ticks and names.
    fn frame(&self, scale: &Scale, svg: &mut String) {
        svg.push_str("<g class=\"ticks\">");
        for (tick, step) in scale.ticks() {
            let y = scale.y(tick);
            let zero = if tick == 0.0 { " class=\"zero\"" } else { "" };
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"{zero}/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                WIDTH - scale.right,
                LEFT - 8.0,
                y + 4.0,
                tick_text(tick, step)
            );
        }
        svg.push_str("</g>");
        svg.push_str("<g class=\"xs\">");
        let mut last = f64::NEG_INFINITY;
        for &x in &self.xs {
            if scale.x(x) - last < X_LABEL_STEP {
                continue;
            }
            last = scale.x(x);
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                scale.x(x),
                HEIGHT - BOTTOM + 18.0,
                grouped(x.into())
            );
        }
        let _ = write!(
            svg,
            "</g><text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - scale.right) / 2.0,
            HEIGHT - 8.0,
            escape(&self.x_name)
        );
    }

    /// What the page's script needs to lay the plot out again.
    fn data(&self, scale: &Scale) -> Json {
        let number = |value: f64| Json::Number((value * 100.0).round() / 100.0);
        let lines = self.lines.iter().map(|line| {
            let points = line.points.iter().map(|(x, estimate)| {
                let values = [estimate.median, estimate.low, estimate.high].map(number);
                let mut point = vec![Json::from(*x)];
                point.extend(values);
                Json::List(point)
            });
            Json::object([("number", line.number.into()), ("points", Json::List(points.collect()))])
        });
        Json::object([
            ("height", number(HEIGHT)),
            ("width", number(WIDTH)),
            ("left", number(LEFT)),
            ("right", number(scale.right)),
            ("top", number(TOP)),
            ("bottom", number(BOTTOM)),
            ("padding", number(PADDING)),
            ("cap", number(CAP)),
            ("labelGap", number(LABEL_GAP)),
            ("labelStep", number(LABEL_STEP)),
            ("xLabelStep", number(X_LABEL_STEP)),
            ("ticksMax", number(TICKS_MAX)),
            ("roomShare", number(ROOM_SHARE)),
            ("xs", Json::list(self.xs.iter().copied())),
            ("lines", Json::List(lines.collect())),
        ])
    }
}

fn line_svg(line: &Line, scale: &Scale, label_y: Option<f64>, plot: &Plot, svg: &mut String) {
    let (dash, marker) = style(line.number);
    let places: Vec<(f64, f64)> =
        line.points.iter().map(|(x, estimate)| (scale.x(*x), scale.y(estimate.median))).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        svg,
        "<g class=\"line c{}\" data-line=\"{}\"><polyline points=\"{}\" stroke-dasharray=\"{dash}\"/>",
        line.number % COLOURS,
        line.number,
        path.join(" ")
    );
    for ((x, estimate), (left, top)) in line.points.iter().zip(&places) {
        let _ = write!(
            svg,
            "<path class=\"whisker\" d=\"{}\"/>\
             <path class=\"marker\" d=\"{marker}\" transform=\"translate({left:.1} {top:.1})\"><title>{}</title></path>",
            whisker(*left, scale.y_inside(estimate.low), scale.y_inside(estimate.high)),
            escape(&format!(
                "{}, {x} {}: {} {} ({} to {})",
                line.label,
                plot.x_name,
                value_text(estimate.median),
                plot.y_name,
                value_text(estimate.low),
                value_text(estimate.high)
            ))
        );
    }
    if let (Some(label_y), Some((left, top))) = (label_y, places.last()) {
        let label_x = WIDTH - scale.right + LABEL_GAP;
        let _ = write!(
            svg,
            "<polyline class=\"leader\" points=\"{left:.1},{top:.1} {:.1},{label_y:.1}\"/>\
             <text class=\"label\" x=\"{label_x:.1}\" y=\"{:.1}\">{}</text>",
            label_x - 4.0,
            label_y + 4.0,
            escape(&line.label)
        );
    }
    svg.push_str("</g>");
}

/// From one end of an interval to the other, with caps.
fn whisker(x: f64, low: f64, high: f64) -> String {
    let (left, width) = (x - CAP, 2.0 * CAP);
    format!("M{left:.1} {low:.1}h{width}M{x:.1} {low:.1}V{high:.1}M{left:.1} {high:.1}h{width}")
}

/// Converts data to pixels.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
    x_low: f64,
    x_high: f64,
    /// The margin at the right.
    right: f64,
    x_scale: Scaling,
    y_scale: Scaling,
}

impl Scale {
    /// Covers all medians and zero. Intervals are covered as far as the medians keep at least two thirds of
    /// the height: one wide interval must not flatten every line.
    fn of(plot: &Plot) -> Scale {
        let linear = Scale::linear(plot);
        if plot.y_scale == Scaling::Logarithmic { linear.logarithmic(plot) } else { linear }
    }

    fn linear(plot: &Plot) -> Scale {
        let estimates =
            || plot.lines.iter().flat_map(|line| line.points.iter().map(|(_, estimate)| estimate));
        let lowest = estimates().map(|estimate| estimate.median).fold(0.0, f64::min);
        let highest = estimates().map(|estimate| estimate.median).fold(0.0, f64::max);
        let room = (highest - lowest) * ROOM_SHARE;
        let low = estimates().map(|estimate| estimate.low).fold(lowest, f64::min).max(lowest - room);
        let high = estimates().map(|estimate| estimate.high).fold(highest, f64::max).min(highest + room);
        let step = nice_step(high - low);
        let xs: Vec<f64> = plot.xs.iter().map(|&x| x_place(x, plot.x_scale)).collect();
        Scale {
            low: (low / step).floor() * step,
            high: ((high / step).ceil() * step).max((low / step).floor() * step + step),
            step,
            x_low: xs.iter().copied().fold(f64::INFINITY, f64::min),
            x_high: xs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            right: plot.right(),
            x_scale: plot.x_scale,
            y_scale: Scaling::Linear,
        }
    }

    /// Whole powers of ten around all medians.
    fn logarithmic(self, plot: &Plot) -> Scale {
        let points = plot.lines.iter().flat_map(|line| &line.points);
        let logs = || points.clone().map(|(_, estimate)| estimate.median.max(LOG_FLOOR).log10());
        let low = logs().fold(f64::INFINITY, f64::min).floor();
        let high = logs().fold(f64::NEG_INFINITY, f64::max).ceil();
        let (low, high) = if low.is_finite() { (low, high.max(low + 1.0)) } else { (0.0, 1.0) };
        Scale { low, high, step: 1.0, y_scale: Scaling::Logarithmic, ..self }
    }

    fn x(&self, x: u32) -> f64 {
        let span = self.x_high - self.x_low;
        // A single column stands in the middle.
        let share = if span > 0.0 { (x_place(x, self.x_scale) - self.x_low) / span } else { 0.5 };
        LEFT + PADDING + share * (WIDTH - LEFT - self.right - 2.0 * PADDING)
    }

    fn y(&self, value: f64) -> f64 {
        let logarithmic = self.y_scale == Scaling::Logarithmic;
        let value = if logarithmic { value.max(LOG_FLOOR).log10() } else { value };
        TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)
    }

    /// Limits a whisker to the plotted area.
    fn y_inside(&self, value: f64) -> f64 {
        self.y(value).clamp(TOP, HEIGHT - BOTTOM)
    }

    /// The positions of grid lines and their distance, which decides how exact the labels must be.
    fn ticks(&self) -> Vec<(f64, f64)> {
        if self.y_scale == Scaling::Logarithmic {
            // If there are few decades, there is room for ticks within each.
            let factors: &[f64] = if self.high - self.low <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let decades = self.low as i32..=self.high as i32;
            let ticks = decades.flat_map(|decade| {
                factors.iter().map(move |factor| (factor * 10f64.powi(decade), 10f64.powi(decade)))
            });
            return ticks.filter(|(tick, _)| tick.log10() <= self.high + 1e-9).collect();
        }
        let count = ((self.high - self.low) / self.step).round() as u32;
        let (low, step) = (self.low, self.step);
        // Adding zero turns a negative zero into a plain one.
        (0..=count).map(|tick| (low + f64::from(tick) * step + 0.0, step)).collect()
    }
}

/// Where x lies on an axis without length or origin.
fn x_place(x: u32, scaling: Scaling) -> f64 {
    match scaling {
        Scaling::Linear => x.into(),
        Scaling::Logarithmic => f64::from(x.max(1)).log2(),
    }
}

/// 1, 2 or 5 times a power of ten, for at most [`TICKS_MAX`] steps.
fn nice_step(span: f64) -> f64 {
    if span <= 0.0 || !span.is_finite() {
        return 1.0;
    }
    let rough = span / TICKS_MAX;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// Where labels go so that they do not overlap: near their lines, in the lines' order.
fn label_places(ends: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        ends.iter().enumerate().filter_map(|(line, end)| Some((line, (*end)?))).collect();
    order.sort_by(|left, right| left.1.total_cmp(&right.1));
    let mut next = TOP;
    for (_, y) in &mut order {
        *y = y.max(next);
        next = *y + LABEL_STEP;
    }
    let mut limit = HEIGHT - 6.0;
    for (_, y) in order.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - LABEL_STEP;
    }
    let mut places = vec![None; ends.len()];
    for (line, y) in order {
        places[line] = Some(y);
    }
    places
}

/// A number with as many decimals as neighbouring labels need to differ.
fn tick_text(value: f64, step: f64) -> String {
    let decimals = (-step.log10() - 1e-9).ceil().clamp(0.0, 6.0) as usize;
    if decimals == 0 { grouped(value) } else { format!("{value:.decimals$}") }
}

fn value_text(value: f64) -> String {
    if value.abs() < 100.0 { format!("{value:.1}") } else { grouped(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_nice_and_few() {
        for (span, step) in [(6.0, 1.0), (61.0, 20.0), (100.0, 20.0), (270.0, 50.0), (0.9, 0.2), (0.0, 1.0)] {
            assert!((nice_step(span) - step).abs() < 1e-9, "{span}: {}", nice_step(span));
        }
    }

    #[test]
    fn labels_keep_their_order_and_their_distance() {
        let places = label_places(&[Some(50.0), None, Some(52.0), Some(51.0), Some(400.0)]);
        let ys: Vec<f64> = [0, 3, 2, 4].map(|line: usize| places[line].unwrap()).to_vec();
        assert!(ys.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_STEP));
        assert!(ys[3] <= HEIGHT);
        assert_eq!(places[1], None);
    }

    #[test]
    fn neighbouring_lines_differ_in_more_than_colour() {
        let styles: Vec<_> = (0..24).map(style).collect();
        for (number, style) in styles.iter().enumerate() {
            assert!(!styles[..number].contains(style), "line {number} looks like another");
        }
    }

    #[test]
    fn one_wild_interval_does_not_flatten_the_lines() {
        let estimate =
            |median, high| Estimate { median, low: median - 1.0, high, confidence: 0.75, samples: 3 };
        let points = vec![(1, estimate(100.0, 10_000.0)), (8, estimate(200.0, 210.0))];
        let plot = Plot {
            title: "t".to_string(),
            y_name: "y".to_string(),
            x_name: "x".to_string(),
            xs: vec![1, 8],
            x_scale: Scaling::Logarithmic,
            y_scale: Scaling::Linear,
            lines: vec![Line { number: 0, label: "l".to_string(), points }],
        };
        let scale = Scale::of(&plot);
        assert_eq!((scale.low, scale.high), (0.0, 250.0));
        assert_eq!(scale.y_inside(10_000.0), TOP);
    }

    #[test]
    fn a_logarithmic_axis_ends_at_powers_of_ten() {
        let estimate = |median| Estimate { median, low: median, high: median, confidence: 0.75, samples: 3 };
        let points = vec![(1_000, estimate(90_000.0)), (1_200, estimate(300.0)), (1_440, estimate(0.0))];
        let plot = Plot {
            title: "t".to_string(),
            y_name: "y".to_string(),
            x_name: "x".to_string(),
            xs: vec![1_000, 1_200, 1_440],
            x_scale: Scaling::Linear,
            y_scale: Scaling::Logarithmic,
            lines: vec![Line { number: 0, label: "l".to_string(), points: points[..2].to_vec() }],
        };
        let scale = Scale::of(&plot);
        let ticks: Vec<f64> = scale.ticks().into_iter().map(|(tick, _)| tick).collect();
        assert_eq!(ticks, [100.0, 1_000.0, 10_000.0, 100_000.0]);
        assert_eq!((scale.y(100_000.0), scale.y(100.0)), (TOP, HEIGHT - BOTTOM));
        // A logarithmic axis cannot show zero, and zero must do no harm.
        let with_zero = Plot { lines: vec![Line { points, ..plot.lines[0].clone() }], ..plot };
        assert!(!with_zero.to_svg("id").contains("inf"));
    }

    #[test]
    fn a_picture_stands_alone() {
        let plot = Plot {
            title: "10 points".to_string(),
            y_name: "queries/s".to_string(),
            x_name: "threads".to_string(),
            xs: vec![1],
            x_scale: Scaling::Logarithmic,
            y_scale: Scaling::Linear,
            lines: Vec::new(),
        };
        let picture = plot.to_picture("text { fill: red }");
        assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>"));
        assert_eq!((picture.matches("<svg").count(), picture.matches("</svg>").count()), (1, 1));
        assert!(picture.contains("text { fill: red }") && picture.contains("queries/s, 10 points"));
    }

    #[test]
    fn ticks_tell_their_neighbours_apart() {
        assert_eq!(tick_text(0.05, 0.05), "0.05");
        assert_eq!(tick_text(1.5, 0.5), "1.5");
        assert_eq!(tick_text(2_000.0, 500.0), "2,000");
        assert_eq!(tick_text(0.0, 0.2), "0.0");
    }

    #[test]
    fn an_empty_plot_is_still_a_plot() {
        let plot = Plot {
            title: "t".to_string(),
            y_name: "y".to_string(),
            x_name: "x".to_string(),
            xs: Vec::new(),
            x_scale: Scaling::Logarithmic,
            y_scale: Scaling::Linear,
            lines: Vec::new(),
        };
        let svg = plot.to_svg("id");
        assert!(svg.ends_with("</svg>") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
