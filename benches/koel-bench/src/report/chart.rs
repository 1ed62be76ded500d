//! One plot: lines or points, a title, named axes, and the legend beside the lines, never over them.

use plotters::{
    coord::{ranged1d::AsRangedCoord, types::RangedCoordf64},
    prelude::*,
};

use super::tables;

const SIZE: (u32, u32) = (960, 540);
const LEGEND_WIDTH: i32 = 210;

/// Colours that are told apart on white; ours first. Every filter has the same in all plots; where they come again, the markers differ.
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
            let range = (y_low..y_high).log_scale().with_key_points(steps(y_low, y_high));
            chart(&root, title, (x, x_range), (y, range), series, lines)
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
    let mut others = 0;
    let styles: Vec<Style> = series.iter().map(|series| Style::of(&series.name, &mut others)).collect();
    for (series, style) in series.iter().zip(&styles) {
        if lines {
            let line = style.colour.stroke_width(if series.ours { 3 } else { 1 });
            chart.draw_series(LineSeries::new(series.points.iter().copied(), line))?;
        }
        let points = series.points.iter().copied();
        match style.marker {
            Marker::Circle => chart.draw_series(points.map(|point| Circle::new(point, 4, style.filled())))?,
            Marker::Cross => chart.draw_series(points.map(|point| Cross::new(point, 5, style.stroke())))?,
            Marker::Triangle => chart.draw_series(points.map(|point| TriangleMarker::new(point, 6, style.filled())))?,
        };
    }
    for (number, (series, style)) in series.iter().zip(&styles).enumerate() {
        let height = 60 + 22 * number as i32;
        if lines {
            let line = style.colour.stroke_width(if series.ours { 3 } else { 1 });
            right.draw(&PathElement::new(vec![(0, height), (28, height)], line))?;
        }
        let at = (14, height);
        match style.marker {
            Marker::Circle => right.draw(&Circle::new(at, 4, style.filled()))?,
            Marker::Cross => right.draw(&Cross::new(at, 5, style.stroke()))?,
            Marker::Triangle => right.draw(&TriangleMarker::new(at, 6, style.filled()))?,
        }
        right.draw(&Text::new(series.name.clone(), (36, height - 7), ("sans-serif", 14)))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Marker {
    Circle,
    Cross,
    Triangle,
}

/// How a filter's line looks.
#[derive(Clone, Copy)]
struct Style {
    colour: RGBColor,
    marker: Marker,
}

impl Style {
    /// By the place in the registry; the limits black; what is no filter of the registry in turn, with triangles.
    fn of(name: &str, others: &mut usize) -> Self {
        if tables::is_limit(name) {
            let colour = if tables::is_first_limit(name) { RGBColor(0, 0, 0) } else { RGBColor(110, 110, 110) };
            return Self { colour, marker: Marker::Triangle };
        }
        let (place, marker) = match tables::place(name) {
            Some(place) if place < COLOURS.len() => (place, Marker::Circle),
            Some(place) => (place, Marker::Cross),
            None => {
                *others += 1;
                (*others - 1, Marker::Triangle)
            }
        };
        Self { colour: COLOURS[place % COLOURS.len()], marker }
    }

    fn filled(self) -> ShapeStyle {
        self.colour.filled()
    }

    fn stroke(self) -> ShapeStyle {
        self.colour.stroke_width(2)
    }
}

/// Where a logarithmic axis has its labels: 1, 2, 5, 10 and so on, or the powers of ten alone if these are many.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high / low > 3e3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    all.filter(|step| (low..=high).contains(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithmic_steps() {
        assert_eq!(steps(1.5, 60.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(steps(0.9, 11_000.0), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn plots_name_their_axes_and_lines() {
        let series =
            |name: &str| Series { name: name.to_string(), points: vec![(50.0, 3.0), (90.0, 200.0)], ours: false };
        let (x, y) = (Axis::linear("load"), Axis::log("million"));
        let svg = draw("Title", &x, &y, &[series("koel"), series("other")], true).unwrap();
        for text in ["Title", "load", "million", "koel", "other", "100"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(draw("Title", &x, &y, &[], true).is_none());
    }
}
