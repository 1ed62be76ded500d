//! One plot: lines or points, a title, named axes, and the legend beside the lines, never over them.

use plotters::{
    coord::{ranged1d::AsRangedCoord, types::RangedCoordf64},
    prelude::*,
};

const SIZE: (u32, u32) = (960, 540);
const LEGEND_WIDTH: i32 = 210;

/// Colours that are told apart on white; ours first. With more lines than colours the markers differ.
const COLOURS: [RGBColor; 10] = [
    RGBColor(214, 39, 40),
    RGBColor(148, 0, 60),
    RGBColor(31, 119, 180),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
    RGBColor(188, 150, 34),
    RGBColor(23, 190, 207),
];

/// A line, or single points, with a name.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Ours are drawn thicker.
    pub(super) ours: bool,
}

/// How an axis is scaled and labelled.
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) log: bool,
    /// Labels of whole numbers on the axis (for sizes and categories), else the numbers themselves.
    pub(super) names: Option<Box<dyn Fn(i64) -> String>>,
}

impl Axis {
    pub(super) fn linear(label: &'static str) -> Self {
        Self { label, log: false, names: None }
    }

    pub(super) fn log(label: &'static str) -> Self {
        Self { label, log: true, names: None }
    }

    fn text(&self, value: f64) -> String {
        match &self.names {
            Some(names) if (value - value.round()).abs() < 1e-6 => names(value.round() as i64),
            Some(_) => String::new(),
            None if value != 0.0 && !(0.01..1e5).contains(&value) => format!("{value:.0e}"),
            None => format!("{}", (value * 1000.0).round() / 1000.0),
        }
    }

    /// The ends of the axis: all values and some room, from 0 if it is linear and unnamed.
    fn range(&self, values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        if self.names.is_some() {
            (low - 0.2, high + 0.2)
        } else if self.log {
            (low / 1.3, high * 1.3)
        } else if low > 0.4 * high {
            // Loads, bits per key: nothing is to be seen near 0.
            (low - 0.05 * (high - low).max(1.0), high + 0.05 * (high - low).max(1.0))
        } else {
            (0.0, high * 1.08)
        }
    }
}

/// The plot as SVG; `None` if there is nothing to show.
pub(super) fn draw(title: &str, x: &Axis, y: &Axis, series: &[Series], lines: bool) -> Option<String> {
    let points = || series.iter().flat_map(|series| series.points.iter().copied());
    points().next()?;
    let (x_low, x_high) = x.range(points().map(|(x, _)| x).collect::<Vec<_>>().into_iter());
    let (y_low, y_high) = y.range(points().map(|(_, y)| y).collect::<Vec<_>>().into_iter());
    let x_range = x_low..x_high;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = if y.log {
            chart(&root, title, (x, x_range), (y, (y_low..y_high).log_scale()), series, lines)
        } else {
            chart(&root, title, (x, x_range), (y, y_low..y_high), series, lines)
        };
        // A string can always be written to.
        drawn.expect("a plot");
        root.present().expect("a plot");
    }
    Some(svg)
}

type Root<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn chart<'a, Y>(
    root: &Root<'a>,
    title: &str,
    (x, x_range): (&Axis, std::ops::Range<f64>),
    (y, y_range): (&Axis, Y),
    series: &[Series],
    lines: bool,
) -> Drawn<'a>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: plotters::coord::ranged1d::ValueFormatter<f64>,
{
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 as i32 - LEGEND_WIDTH);
    let ticks = if x.names.is_some() { (x_range.end - x_range.start) as usize + 1 } else { 10 };
    let mut chart: ChartContext<'_, _, Cartesian2d<RangedCoordf64, Y::CoordDescType>> = ChartBuilder::on(&left)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(x_range, y_range)?;
    chart
        .configure_mesh()
        .x_desc(x.label)
        .y_desc(y.label)
        .x_labels(ticks)
        .y_labels(10)
        .x_label_formatter(&|value| x.text(*value))
        .y_label_formatter(&|value| y.text(*value))
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .draw()?;
    for (number, series) in series.iter().enumerate() {
        let style = colour(number).stroke_width(if series.ours { 3 } else { 1 });
        if lines {
            chart.draw_series(LineSeries::new(series.points.iter().copied(), style))?;
        }
        let points = series.points.iter().copied();
        if is_circle(number) {
            chart.draw_series(points.map(|point| Circle::new(point, 4, colour(number).filled())))?;
        } else {
            chart.draw_series(points.map(|point| Cross::new(point, 5, colour(number).stroke_width(2))))?;
        }
    }
    for (number, series) in series.iter().enumerate() {
        let height = 60 + 22 * number as i32;
        if lines {
            let style = colour(number).stroke_width(if series.ours { 3 } else { 1 });
            right.draw(&PathElement::new(vec![(0, height), (28, height)], style))?;
        }
        if is_circle(number) {
            right.draw(&Circle::new((14, height), 4, colour(number).filled()))?;
        } else {
            right.draw(&Cross::new((14, height), 5, colour(number).stroke_width(2)))?;
        }
        right.draw(&Text::new(series.name.clone(), (36, height - 7), ("sans-serif", 14)))?;
    }
    Ok(())
}

fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// Circles first, then crosses, where colours come again.
fn is_circle(number: usize) -> bool {
    number < COLOURS.len()
}
