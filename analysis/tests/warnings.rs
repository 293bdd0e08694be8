//! docs/warnings.md is generated from the codes.

use pmmpi_analysis::report::run_flags::RunFlag;
use pmmpi_analysis::warnings::WarningCode;
use pmmpi_events::metrics::catalogue;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Warnings

`pmmpi report` shows warnings at the end. Each warning names something that limits the result, and has a code (in
brackets) and advice. In JSON each warning has the keys `code`, `message` and `advice`; a script should test the code.
For the checks of `pmmpi doctor` see [doctor.md](doctor.md), for the verdicts of `pmmpi validate` see
[validate.md](validate.md).

This page is generated from analysis/src/warnings/code.rs, from analysis/src/report/run_flags.rs and from the rules in
src/events/metrics/metrics.toml. After a change there, `PMMPI_WRITE_DOCS=1 cargo test --release --workspace --exclude pmmpi-runner --test warnings` writes the
page again.

";

const FLAGS: &str = "\
## Flags of a measurement

Counts, times, the places of the ranks or the facts of the nodes may show that the measurement itself is questionable.
The report then shows a flag with the metrics of the run (`runs[].flags` in JSON).

| code | meaning | use the measurement |
|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for code in WarningCode::ALL {
        let (name, meaning, advice, example) = (code.name(), code.meaning(), code.advice(), code.example());
        writeln!(
            page,
            "## {name}\n\n{meaning}\n\n- Do: {advice}\n- Example: `{}`\n",
            example.replace('`', "'")
        )
        .unwrap();
    }
    page.push_str(FLAGS);
    for rule in &catalogue().rules {
        let worth = if rule.discards { "no" } else { "with care" };
        writeln!(page, "| {} | {} | {worth} |", rule.code, rule.text).unwrap();
    }
    for flag in RunFlag::ALL {
        writeln!(page, "| {} | {} | with care |", flag.code(), flag.meaning()).unwrap();
    }
    page
}

#[test]
fn the_page_of_warnings_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/warnings.md");
    let page = page();
    if std::env::var_os("PMMPI_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == page, "see the head of {}", path.display());
}

/// Scripts sort and match the codes.
#[test]
fn codes_are_plain_words_in_the_order_of_the_alphabet() {
    let names: Vec<&str> = WarningCode::ALL.iter().map(|code| code.name()).collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    let is_plain = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    assert!(names.iter().all(is_plain));
    assert!(
        WarningCode::ALL.iter().all(|code| code.advice().ends_with('.') && code.meaning().ends_with('.'))
    );
}
