//! `pmmpi report --correlate`: what goes with slowness, as a user sees it.

mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::{Folder, assert_valid, json, out, report};
use pmmpi_analysis::stats::random::Random;
use runs::run;
use serde_json::Value;
use std::path::PathBuf;

/// 40 nodes with 7 runs; each fifth node has a slow run with twice the L2 fills. The even nodes have fewer DIMMs and are 2 %
/// slower. Interrupts come at a constant rate.
fn fleet(folder: &Folder) -> PathBuf {
    let mut random = Random::new(7);
    let mut csv = String::from(
        "node,run,elapsed_s,l2_fills,interrupts,dimms,cycles,instructions,never,gflops,page_faults\n",
    );
    for node in 0..40 {
        let (dimms, level) = if node % 2 == 0 { (11, 1.02) } else { (12, 1.0) };
        let fills = 1e9 * (1.0 + 0.1 * random.normal());
        for run in 0..7 {
            let (slow, more) = if node % 5 == 0 && run == 3 { (1.2, 2.0) } else { (1.0, 1.0) };
            let seconds = 100.0 * level * slow * (1.0 + 0.002 * random.normal());
            let fills = fills * more * (1.0 + 0.05 * random.normal());
            let interrupts = 250.0 * seconds * (1.0 + 0.01 * random.normal());
            let faults = if run == 0 { 0.0 } else { 1000.0 * (1.0 + 0.1 * random.normal()) };
            csv += &format!(
                "n{node:02},{run},{seconds:.6},{fills:.0},{interrupts:.0},{dimms},{:.0},1e12,7,{:.6},{faults:.0}\n",
                seconds * 3e9,
                5000.0 / seconds
            );
        }
    }
    folder.put("fleet.csv", csv)
}

fn column<'a>(report: &'a Value, name: &str) -> &'a Value {
    let columns = report["goes_with_slowness"][0]["columns"].as_array().unwrap();
    columns.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("{name}: {columns:?}"))
}

#[test]
fn slow_runs_and_slow_nodes_have_what_goes_with_them() {
    let folder = Folder::new();
    let file = fleet(&folder);
    let output = report(&["report", "--correlate", "--format", "json", file.to_str().unwrap()]);
    let all = json(&output);
    assert_valid("report", &all);
    let class = &all["goes_with_slowness"][0];
    assert_eq!(class["runs"], 280);
    assert!((class["slow_runs_take"].as_f64().unwrap() - 1.2).abs() < 0.02, "{class}");
    assert!((class["slow_nodes_take"].as_f64().unwrap() - 1.02).abs() < 0.01, "{class}");

    let fills = column(&all, "l2_fills");
    let within = &fills["within"];
    assert_eq!((&within["significant"], &within["only_counts_longer"]), (&true.into(), &false.into()));
    assert!((within["ratio"].as_f64().unwrap() - 2.0).abs() < 0.2, "{within}");
    assert_eq!((&within["runs"], &within["nodes"]), (&280.into(), &40.into()));
    assert_eq!(fills["between"]["significant"], false);
    assert_eq!(class["columns"][0]["within"]["significant"], true, "the significant ones come first");

    let interrupts = &column(&all, "interrupts")["within"];
    assert_eq!((&interrupts["significant"], &interrupts["only_counts_longer"]), (&true.into(), &true.into()));
    let dimms = column(&all, "dimms");
    assert!(dimms["within"].is_null());
    assert_eq!(
        dimms["null_reasons"]["within"],
        "the value, or the time, is the same in all runs of each node"
    );
    assert!(dimms["between"]["rho"].as_f64().unwrap() < -0.5, "{dimms}");
    assert_eq!(dimms["between"]["significant"], true);

    for (name, reason) in [
        ("cycles", "measures the time itself"),
        ("gflops", "measures the time itself"),
        ("never", "is the same"),
    ] {
        let column = column(&all, name);
        assert!(column["within"].is_null() && column["between"].is_null(), "{column}");
        assert!(column["null_reasons"]["within"].as_str().unwrap().contains(reason), "{column}");
    }
    // Cycles per instruction are what makes these runs slow.
    let cpi = column(&all, "cpi");
    assert_eq!((&cpi["kind"], &cpi["within"]["significant"]), (&"metric".into(), &true.into()));
    let faults = &column(&all, "page_faults")["within"];
    assert!(faults["ratio"].is_null() && faults["null_reasons"]["ratio"].is_string(), "{faults}");
}

#[test]
fn each_format_shows_what_is_significant_and_nothing_else() {
    let folder = Folder::new();
    let file = fleet(&folder);
    let of =
        |format: &str| out(&report(&["report", "--correlate", "--format", format, file.to_str().unwrap()]));
    let text = of("text");
    let start = text.find("GOES WITH SLOWNESS").expect(&text);
    let table: Vec<&str> = text[start..].lines().take_while(|line| !line.is_empty()).collect();
    let row = |name: &str| table.iter().find(|line| line.starts_with(name)).copied();
    let fills = row("l2_fills").expect(&text);
    assert!(fills.contains("runs") && (fills.contains("x2.") || fills.contains("x1.9")), "{fills}");
    assert!(row("interrupts").is_some_and(|row| row.contains("=time")), "{text}");
    assert!(row("dimms").is_some_and(|row| row.contains("nodes")), "{text}");
    assert!(row("page_faults").is_none() && row("cycles").is_none(), "{text}");
    assert!(text.contains("of the times: runs x1.2"), "{text}");
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{table:#?}");
    for format in ["md", "html"] {
        let text = of(format);
        assert!(text.contains("Goes with slowness") && text.contains("l2") && !text.contains("page_faults"));
    }
    // Without the option, and for a fleet in which nothing goes with slowness.
    let without = report(&["report", file.to_str().unwrap()]);
    assert!(!out(&without).contains("GOES WITH SLOWNESS"));
    let without = json(&report(&["report", "--format", "json", file.to_str().unwrap()]));
    assert!(without.get("goes_with_slowness").is_none());
    let mut random = Random::new(3);
    let row = |at: usize, random: &mut Random| {
        let [a, b] = [0, 1].map(|_| 1.0 + 0.01 * random.normal());
        format!("n{},{},{a},{b}\n", at / 7, at % 7)
    };
    let rows: String = (0..210).map(|at| row(at, &mut random)).collect();
    let nothing = folder.put("nothing.csv", format!("node,run,elapsed_s,l2_fills\n{rows}"));
    assert!(!out(&report(&["report", "--correlate", nothing.to_str().unwrap()])).contains("GOES WITH"));
}

/// A slow job makes all of its nodes slow: ten jobs on 50 nodes are ten runs, not 500.
#[test]
fn a_job_on_many_nodes_is_one_run() {
    let folder = Folder::new();
    let mut random = Random::new(5);
    let mut csv = String::from("node,run,elapsed_s,l2_fills\n");
    for run in 0..10 {
        let (seconds, fills) = (100.0 + random.normal(), 1e9 * (1.0 + 0.1 * random.normal()));
        for node in 0..50 {
            csv += &format!("n{node},{run},{seconds},{}\n", fills * (1.0 + 0.01 * random.normal()));
        }
    }
    let file = folder.put("jobs.csv", csv);
    let all = json(&report(&["report", "--correlate", "--format", "json", file.to_str().unwrap()]));
    assert_valid("report", &all);
    assert_eq!(all["goes_with_slowness"][0]["runs"], 10);
    let fills = column(&all, "l2_fills");
    assert_eq!((&fills["within"]["nodes"], &fills["within"]["significant"]), (&1.into(), &false.into()));
    assert!(fills["between"].is_null() && fills["null_reasons"]["between"].is_string(), "{fills}");
}

/// Facts of nodes in run files are columns: those that are no number are compared with the value of most runs.
#[test]
fn a_fact_goes_with_slow_nodes() {
    const S: i64 = 1_000_000_000;
    let folder = Folder::new();
    let mut random = Random::new(11);
    for (node, number) in (0..40).flat_map(|node| (0..3).map(move |number| (node, number))) {
        let lacks_dimm = node % 4 == 0;
        let level = if lacks_dimm { 1.05 } else { 1.0 };
        let took = (100e9 * level * (1.0 + 0.003 * random.normal())) as i64;
        let name = format!("n{node:02}");
        let mut run = run(&format!("r-{node:02}-{number}"), &[(&name, [0, S, S + took, 2 * S + took])]);
        let dimms = if lacks_dimm { "7 x 65536 MiB" } else { "8 x 65536 MiB" };
        let facts = run.nodes[0].facts.as_mut().unwrap();
        facts.inventory.set("dimms", dimms.into());
        facts.inventory.set("pcie_adapters", "1 x 32.0 GT/s PCIe x16".into());
        folder.write(&run);
    }
    let path = folder.path().to_str().unwrap();
    let all = json(&report(&["report", "--correlate", "--format", "json", path]));
    assert_valid("report", &all);
    let dimms = column(&all, "dimms other than 8 x 65536 MiB");
    assert_eq!((&dimms["kind"], &dimms["between"]["significant"]), (&"fact".into(), &true.into()));
    assert!(dimms["between"]["rho"].as_f64().unwrap() > 0.6, "{dimms}");
    assert!(dimms["within"].is_null());
    let columns = all["goes_with_slowness"][0]["columns"].as_array().unwrap();
    let is_constant = |column: &&Value| column["name"].as_str().unwrap().starts_with("pcie");
    assert_eq!(columns.iter().find(is_constant), None, "a fact in which no nodes differ");
}
