//! The HTML report in a browser, with a reader's clicks, keys and prints. There is one run of the lab and one
//! browser.

mod chromium;

use chromium::Chromium;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

fn lab(arguments: &str, folder: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_latchwork"))
        .arg("lab")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two runs with several series, in one page.
fn report(folder: &Path) -> String {
    let sizes = "run segments --rows 1000 --points 5 --time 20ms --warmup 5ms --scratch .";
    lab(&format!("{sizes} --threads 1,3 --segments 0,4 --out one"), folder);
    lab(&format!("{sizes} --threads 2 --segments 0 --samples 1 --out two"), folder);
    lab("report one two/result.json --out page.html --svg chart.svg", folder);
    format!("file://{}", folder.join("page.html").display())
}

const LINES: &str = "[...document.querySelectorAll('#run-0 svg.plot:first-of-type .line')]";

/// For each line of the first plot of the first run: whether it can be seen.
fn seen(browser: &mut Chromium) -> Vec<bool> {
    let lines = "document.querySelector('#run-0 svg.plot').querySelectorAll('.line')";
    let value =
        browser.evaluate(&format!("[...{lines}].map((line) => getComputedStyle(line).display !== 'none')"));
    serde_json::from_value(value).unwrap()
}

fn pressed(browser: &mut Chromium, selector: &str) -> bool {
    let value =
        browser.evaluate(&format!("document.querySelector('{selector}').getAttribute('aria-pressed')"));
    value == "true"
}

/// All numbers of the plots' shapes, in their order.
fn shapes(browser: &mut Chromium) -> Vec<f64> {
    let value = browser.evaluate(&format!(
        "{LINES}.flatMap((line) => [...line.querySelectorAll('polyline, .whisker, .marker, text')].flatMap((shape) => \
         ['points', 'd', 'transform', 'y'].map((name) => shape.getAttribute(name) ?? '').join(' ')\
         .match(/-?[0-9]+(\\.[0-9]+)?/g).map(Number)))"
    ));
    serde_json::from_value(value).unwrap()
}

fn assert_alike(left: &[f64], right: &[f64]) {
    assert_eq!(left.len(), right.len());
    assert!(left.len() > 20, "there is something to compare");
    for (position, (left, right)) in left.iter().zip(right).enumerate() {
        assert!((left - right).abs() < 0.2, "number {position}: {left} and {right}");
    }
}

#[test]
fn the_report_works_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut browser) = Chromium::start(&folder.path().join("profile")) else { return };
    let url = report(folder.path());
    browser.open(&url);
    assert_eq!(seen(&mut browser), [true; 4]);
    let (legend, other) = ("#run-0 .legend button", "#run-0 .legend button:nth-of-type(2)");

    // A click on a series hides it. Another click shows it again, and the page's script then gives the same
    // layout as the page had at first.
    let as_loaded = shapes(&mut browser);
    browser.click(legend);
    assert_eq!(seen(&mut browser), [false, true, true, true]);
    assert!(!pressed(&mut browser, legend) && pressed(&mut browser, other));
    assert_eq!(browser.evaluate("document.querySelectorAll('#run-1 .line.hidden').length"), 0);
    browser.click(legend);
    assert_eq!(seen(&mut browser), [true; 4]);
    assert_alike(&shapes(&mut browser), &as_loaded);

    // Keys do the same, and the page shows which element has the focus.
    browser.evaluate(&format!("document.querySelector('{legend}').focus()"));
    browser.key("Tab", "Tab", 9);
    assert_eq!(
        browser.evaluate(&format!("document.activeElement === document.querySelector('{other}')")),
        true
    );
    assert_eq!(browser.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "solid");
    browser.key(" ", "Space", 32);
    assert_eq!(seen(&mut browser), [true, false, true, true]);
    browser.key("\r", "Enter", 13);
    assert_eq!(seen(&mut browser), [true; 4]);

    // Each axis has its scale.
    for axis in ["y", "x"] {
        let switch = format!("#run-0 [data-switch={axis}]");
        let before = (pressed(&mut browser, &switch), shapes(&mut browser));
        browser.click(&switch);
        assert_ne!(pressed(&mut browser, &switch), before.0);
        // With two values of x, the points are at the ends of the horizontal axis on any scale.
        assert_eq!(shapes(&mut browser) != before.1, axis == "y");
        browser.click(&switch);
        assert_alike(&shapes(&mut browser), &before.1);
    }

    // One click leaves out the worst series. Its entry in the legend shows that, and a click there brings it
    // back.
    let worst = browser.evaluate("Number(document.querySelector('#run-0').dataset.worst)").as_u64().unwrap();
    browser.click("#run-0 [data-switch=worst]");
    let hidden: Vec<bool> = (0..4).map(|line| line != worst).collect();
    assert_eq!(seen(&mut browser), hidden);
    browser.click(&format!("#run-0 .legend button[data-line=\"{worst}\"]"));
    assert!(!pressed(&mut browser, "#run-0 [data-switch=worst]"));
    assert_eq!(browser.evaluate("document.querySelector('#run-1 [data-switch=worst]')"), Value::Null);

    another_base_changes_the_table(&mut browser);
    the_samples_are_inside(&mut browser, folder.path());

    // On a telephone the page is as wide as the screen. The text in a plot can still be read, because the
    // plot is scrolled in its frame.
    let width = |browser: &mut Chromium, pixels: u32| {
        let screen =
            serde_json::json!({"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", screen);
    };
    let letters = "document.querySelector('svg.plot').getScreenCTM().a * 12";
    width(&mut browser, 400);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 400);
    assert!(browser.evaluate(letters).as_f64().unwrap() >= 9.0);
    width(&mut browser, 1000);

    // On paper the page is black on white, whatever the screen's scheme. It has no switches, and nothing is
    // folded away.
    let background = "getComputedStyle(document.body).backgroundColor";
    browser.emulate("screen", "dark");
    assert_eq!(browser.evaluate(background), "rgb(20, 23, 26)");
    let dark = browser.screenshot();
    browser.click("#theme");
    assert_eq!(browser.evaluate(background), "rgb(255, 255, 255)");
    browser.click("#theme");
    browser.emulate("print", "dark");
    assert_eq!(browser.evaluate(background), "rgb(255, 255, 255)");
    assert_eq!(browser.evaluate("getComputedStyle(document.querySelector('.switches')).display"), "none");
    assert!(browser.evaluate(letters).as_f64().unwrap() >= 11.0);
    let pdf = browser.call("Page.printToPDF", serde_json::json!({}));
    assert!(pdf["data"].as_str().unwrap().starts_with("JVBERi"), "the base64 of %PDF");
    browser.evaluate("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.evaluate("document.querySelectorAll('details:not([open])').length"), 0);
    browser.evaluate("dispatchEvent(new Event('afterprint'))");
    assert!(
        browser.evaluate("document.querySelectorAll('details:not([open])').length").as_u64().unwrap() > 0
    );
    browser.emulate("screen", "light");
    browser.evaluate("scrollTo(0, 0)");
    let light = browser.screenshot();
    for (colours, _) in [&dark, &light] {
        assert!(*colours > 50, "{colours} colours are a blank page");
    }
    assert_ne!(dark.1, light.1);

    // The picture for a README can be shown, too.
    browser.open(&format!("file://{}", folder.path().join("chart.svg").display()));
    assert_eq!(browser.evaluate("document.querySelectorAll('.line').length"), 4);
    assert_eq!(browser.complaints, [""; 0]);
}

/// For the same base the script gives the figures that the page had at first, and for another base it gives
/// others.
fn another_base_changes_the_table(browser: &mut Chromium) {
    let fields = "[...document.querySelectorAll('#run-0 .relative td')].map((field) => field.textContent)";
    let choose = |browser: &mut Chromium, line: &str| {
        browser.evaluate(&format!(
            "{{ const base = document.querySelector('#run-0-base'); base.value = '{line}'; \
             base.dispatchEvent(new Event('change')); }}"
        ));
        browser.evaluate(fields)
    };
    let base = browser.evaluate("document.querySelector('#run-0-base').value");
    let base = base.as_str().unwrap();
    let as_loaded = browser.evaluate(fields);
    assert_eq!(as_loaded.as_array().unwrap().len(), 4 * 2);
    assert_ne!(choose(browser, if base == "0" { "1" } else { "0" }), as_loaded);
    assert_eq!(choose(browser, base), as_loaded);
}

fn the_samples_are_inside(browser: &mut Chromium, folder: &Path) {
    let text = |kind: &str| {
        format!("fetch(document.querySelector('#run-0-{kind}').href).then((answer) => answer.text())")
    };
    let json = browser.evaluate(&text("json"));
    assert_eq!(json, std::fs::read_to_string(folder.join("one/result.json")).unwrap());
    let csv = browser.evaluate(&text("csv"));
    assert_eq!(csv.as_str().unwrap().lines().count(), 1 + 4 * 2 * 3, "a line a sample");
}
