//! What people and programs read, pinned. Refresh with `UPDATE_EXPECT=1` and read the difference.

use super::*;
use super::{report, tt_smi};
use expect_test::{expect, expect_file};
use model::Bytes;
use show::example;
use show::style::Style;

const TIME: &str = "Fri Jan  2 03:04:05 2026";

fn style(columns: usize) -> Style {
    Style { columns, rows: None, color: false, unicode: true }
}

fn device_query(fields: &str, header: bool, units: bool) -> String {
    let fields: Vec<String> = fields.split(',').map(str::to_owned).collect();
    let query = csv::CsvQuery::of_devices(&fields, csv::CsvForm { header, units }).unwrap();
    query.text(&example::machine(), "2026/01/02 03:04:05.678", true)
}

fn process_query(fields: &str) -> String {
    let fields: Vec<String> = fields.split(',').map(str::to_owned).collect();
    let query = csv::CsvQuery::of_processes(&fields, csv::CsvForm { header: true, units: true }).unwrap();
    query.text(&example::machine(), "2026/01/02 03:04:05.678", true)
}

#[test]
fn the_table_fits_80_columns() {
    let text = table::text(&example::machine(), &style(80), TIME);
    for line in text.lines().filter(|line| !line.starts_with("note: ")) {
        assert!(show::text::width(line) <= 80, "{line}");
    }
    expect_file!["golden/table-80.txt"].assert_eq(&text);
}

#[test]
fn the_table_uses_more_columns_when_there_are_more() {
    expect_file!["golden/table-120.txt"].assert_eq(&table::text(&example::machine(), &style(120), TIME));
}

#[test]
fn a_low_terminal_gets_a_line_per_device_so_that_the_processes_stay_in_view() {
    let text = table::text(&example::machine(), &Style { rows: Some(23), ..style(80) }, TIME);
    assert!(text.lines().count() <= 23, "{text}");
    expect_file!["golden/table-80x24.txt"].assert_eq(&text);
    let room = table::text(&example::machine(), &Style { rows: Some(40), ..style(80) }, TIME);
    assert_eq!(room, table::text(&example::machine(), &style(80), TIME));
}

#[test]
fn a_narrow_terminal_loses_columns_and_not_its_shape() {
    let text = table::text(&example::machine(), &style(60), TIME);
    for line in text.lines().filter(|line| !line.starts_with("note: ")) {
        assert!(show::text::width(line) <= 60, "{line}");
    }
    expect_file!["golden/table-60.txt"].assert_eq(&text);
}

#[test]
fn a_table_has_no_figure_that_it_does_not_ask_for() {
    use model::figure::Value;
    use model::figure::device::DEVICE_FIGURES;
    let color = Style { color: true, ..style(120) };
    for machine in [example::machine(), example::galaxy()] {
        for style in [color, style(120), style(103), style(80), style(60), Style { rows: Some(23), ..color }] {
            let mut read = machine.clone();
            for figure in DEVICE_FIGURES.iter().filter(|one| !table::shows(one, machine.devices.len(), &style)) {
                read.devices.iter_mut().for_each(|device| (figure.set)(device, 0, &Value::Absent));
            }
            assert_ne!(machine.devices, read.devices);
            assert_eq!(table::text(&read, &style, TIME), table::text(&machine, &style, TIME));
        }
    }
}

#[test]
fn figures_that_are_not_shown_are_read_where_a_rule_may_compare_them() {
    let mut rules = AlertSettings::default();
    let reads_voltage =
        |view: SmiView, rules: &AlertSettings| view.wanted(rules, style(80), false)(&model::figure::device::VCORE, 1);
    assert!(!reads_voltage(SmiView::Table, &rules) && reads_voltage(SmiView::List, &rules));
    rules.rules[0].condition = "vcore > 0.9 for 10s".parse().unwrap();
    assert!(!reads_voltage(SmiView::Table, &rules));
    for condition in ["vcore > 0.9", "link_degraded or dram > 90%", "current > 90%"] {
        rules.rules[0].condition = condition.parse().unwrap();
        assert!(reads_voltage(SmiView::Table, &rules), "{condition}");
    }
}

#[test]
fn how_busy_processes_keep_a_device_is_shown_where_the_driver_counts() {
    let mut machine = example::machine();
    let held = &mut machine.processes[0].devices[0];
    (held.source, held.activity.utilization_percent, held.usage.cb) = (Some(model::Source::Kernel), Some(62.5), None);
    let table = table::text(&machine, &style(80), TIME);
    let processes: Vec<&str> = table.lines().filter(|line| line.contains("Util") || line.contains('%')).collect();
    expect_test::expect![[r#"
        │ State      Util   rpm     Temp    Power  MHz │                               │
        │ ok         ≥62%  2068  54/90°C  65/150W 1350 │ L1   ▇░░░░░░░   ≥25.3/180 MiB │
        │             62%           74°C 145/235W      │ L1   ▏░░░░░░░   ≥25.3/543 MiB │
        │ Dev   PID User        Via   Name          DRAM    L1 TRACE    CB Util From   │
        │   0  4711 ttuser      ttnn  serve.py     12.4G 25.3M  8.0K  1.3M  62% exact  │
        │   2    81 a-rather-l… metal 日本語の名前  8.0K  1.3M  8.0K     –  62% kernel │"#]]
    .assert_eq(&processes.join("\n"));
}

#[test]
fn users_have_a_line_each() {
    let mut machine = example::machine();
    (machine.devices[0].names_all_holders, machine.devices[2].names_all_holders) = (true, true);
    let shown = |words: &str, style: Style| {
        let words = ["ttmon", "smi", "--by", "user"].into_iter().chain(words.split_whitespace());
        let crate::cli::Command::Smi(args) = <crate::cli::Cli as clap::Parser>::parse_from(words).command else {
            panic!("not smi");
        };
        SmiView::chosen(&args, true).unwrap().text(&machine, &style, 1)
    };
    let ascii = Style { unicode: false, ..style(80) };
    let below_time = |text: String| text[text.find('\n').unwrap() + 1..].to_owned();
    let text = [
        below_time(shown("", style(80))),
        below_time(shown("--filter dram>12G", ascii)),
        below_time(shown("", style(48))),
        below_time(shown("--filter user:nobody", style(80))),
        shown("--format csv", style(80)),
        shown("--format csv,noheader,nounits --filter user:ttuser", style(80)),
        shown("--json", style(80)),
    ];
    for line in text[..4].concat().lines() {
        assert!(show::text::width(line) <= 80, "{line}");
    }
    expect_file!["golden/by-user.txt"].assert_eq(&text.join("\n"));
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let text = table::text(
        &Snapshot { processes: vec![], ..example::machine() },
        &Style { unicode: false, ..style(80) },
        TIME,
    );
    assert!(text.is_ascii(), "{text}");
    expect_file!["golden/table-ascii.txt"].assert_eq(&text);
}

#[test]
fn memory_of_exited_processes_is_hatched_in_every_bar() {
    let mut machine = example::machine();
    let memory = &mut machine.devices[0].memory;
    (memory.stale, memory.stale_l1) = (Some(Bytes((8 << 30) + (90 << 20))), Some(Bytes(90 << 20)));
    let text = table::text(&machine, &style(120), TIME);
    let bars: Vec<&str> =
        text.lines().filter_map(|line| line.split(['│', ' ']).find(|word| word.contains('╳'))).collect();
    // Of device 0, and of all devices together.
    expect![[r#"
        [
            "▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇╳╳╳╳╳╳╳╳╳╳╳╳░░░░░░░░░░░░░░░░░",
            "▇▇▇▇▇▇▇╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳░░░░░░░░░░░░░░░░░",
            "▇▇▇▇▇▇▇▇▇▇▇▇▇╳╳╳╳░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░",
            "▇▇╳╳╳╳╳╳╳╳░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░",
        ]
    "#]]
    .assert_debug_eq(&bars);
    machine.devices = (0..12).map(|_| machine.devices[0].clone()).collect();
    let rows = table::text(&machine, &style(120), TIME);
    assert_eq!(rows.matches('╳').count() % 13, 0, "a line for each chip, and one for all, are alike: {rows}");
    assert!(rows.contains('╳'));
}

#[test]
fn colour_says_what_is_wrong() {
    let text = table::text(&example::machine(), &Style { color: true, ..style(80) }, TIME);
    expect_file!["golden/table-color.txt"].assert_eq(&text.replace('\x1b', "␛"));
}

#[test]
fn an_idle_process_is_marked_and_the_reason_for_an_unknown_utilization_is_below_the_table() {
    let mut machine = example::machine();
    machine.processes[1].idle_seconds = Some(700.0);
    let text = table::text(&machine, &style(80), TIME);
    let row = text.lines().find(|line| line.contains("4711")).unwrap();
    assert!(row.contains(" idle exact "), "{row}");
    assert!(text.contains("note: utilization of device 2 unknown: no agent (use ttmon run)\n"), "{text}");
    machine.processes[1].idle_seconds = None;
    assert!(!table::text(&machine, &style(80), TIME).contains("idle"), "without the agent it is not said");
}

#[test]
fn a_galaxy_has_a_line_for_each_of_its_32_chips() {
    let text = table::text(&example::galaxy(), &style(80), TIME);
    assert!(text.lines().all(|line| show::text::width(line) <= 80), "{text}");
    expect_file!["golden/table-galaxy-80.txt"].assert_eq(&text);
    let mut galaxy = example::galaxy();
    galaxy.devices[3].pcie.host_to_device = Some(model::BytesPerSecond(3.2e9));
    galaxy.devices[3].pcie.device_to_host = Some(model::BytesPerSecond(4.5e6));
    expect_file!["golden/table-galaxy-140.txt"].assert_eq(&table::text(&galaxy, &style(140), TIME));
}

#[test]
fn a_simulated_machine_says_so_wherever_a_person_looks() {
    let mut machine = example::machine();
    machine.host.simulated = true;
    let mut stream = streams::Stream::of_devices(&args::StreamArgs::default());
    for text in [
        table::text(&machine, &style(80), TIME),
        list::text(&machine),
        report::text(&machine, &report::sections(&[]).unwrap(), TIME),
        stream.text(&machine, "20260102 03:04:05"),
    ] {
        assert!(text.contains("SIMULATED"), "{text}");
    }
    assert!(json(&machine, true).contains("\"simulated\":true"));
    assert!(!json(&example::machine(), true).contains("simulated"));
}

#[test]
fn the_list_has_a_line_per_device() {
    expect_file!["golden/list.txt"].assert_eq(&list::text(&example::machine()));
}

#[test]
fn the_report_tells_everything_in_words() {
    let all = report::sections(&[]).unwrap();
    expect_file!["golden/report.txt"].assert_eq(&report::text(&example::machine(), &all, TIME));
}

/// The example's Blackhole and Wormhole with a deep read, and a chip of which there is none.
fn read_deeply() -> Snapshot {
    let mut machine = example::machine();
    let newest = |chip: sim::tree::Chip| sim::tree::Chip { fw_bundle: Some("19.15.0.0".into()), ..chip };
    for (number, chip) in [(0, newest(sim::tree::Chip::p100a(0))), (2, sim::tree::Chip::n300(2))] {
        let mut entries = sim::telemetry_table(&chip);
        // Of the Blackhole, channel 3 has failed, channel 1 has had errors, and another tag is new.
        let changed = [(22, 0x1515_1595), (46, 0x0302_0000), (50, 0b0100), (66, 0x0007_0384), (200, 0xC0FF_EE00)];
        for (tag, value) in changed.into_iter().filter(|_| number == 0) {
            entries.retain(|entry| entry.tag != tag);
            entries.push(model::TelemetryTag { tag, value });
        }
        let mut deep = deep::decode(&deep::RawTable { arch: chip.arch, version: 0x100, entries });
        deep.age_seconds = Some(1.25);
        machine.devices[number].deep = Some(Box::new(deep));
    }
    let why = Some(model::DeepUnavailable::Remote);
    machine.devices[3].deep = Some(Box::new(model::Deep { unavailable: why, ..model::Deep::default() }));
    machine.devices.remove(1);
    machine
}

#[test]
fn a_deep_read_adds_its_figures_and_says_what_is_not_published() {
    let all = report::sections(&[]).unwrap();
    let (read, plain) = (report::text(&read_deeply(), &all, TIME), report::text(&example::machine(), &all, TIME));
    let added: Vec<&str> = read.lines().filter(|line| !plain.contains(line)).collect();
    expect_file!["golden/report-deep.txt"].assert_eq(&(added.join("\n") + "\n"));
}

#[test]
fn sections_of_deep_reads_are_shown_alone_and_fit_a_terminal() {
    let some = ["GDDR", "Ethernet", "units", "RAW"].map(str::to_owned);
    let some = report::sections(&some).unwrap();
    let text = report::text(&Snapshot { faults: vec![], ..read_deeply() }, &some, TIME);
    let devices = &text[text.find("\nDevice ").unwrap()..];
    assert!(devices.lines().all(|line| show::text::width(line) <= 80), "{devices}");
    expect_file!["golden/report-deep-sections.txt"].assert_eq(devices);
    let plain = report::text(&example::machine(), &some, TIME);
    assert!(plain.contains("    GDDR\n        (not read: needs --deep)\n"), "{plain}");
}

#[test]
fn xml_has_the_raw_table_where_it_was_asked_for() {
    let text = xml::text(&read_deeply(), &report::sections(&["RAW".into()]).unwrap(), TIME, false);
    assert!(text.contains("<tag number=\"22\" name=\"GDDR_STATUS\">0x15151595</tag>"), "{text}");
    assert!(text.contains("<tag number=\"200\" name=\"\">0xc0ffee00</tag>"), "{text}");
}

#[test]
fn the_report_can_be_cut_to_sections() {
    let some = report::sections(&["memory".into(), "PIDS".into()]).unwrap();
    expect_file!["golden/report-memory-pids.txt"].assert_eq(&report::text(&example::machine(), &some, TIME));
    let unmeasured = report::sections(&["ecc".into()]).unwrap_err().to_string();
    assert!(unmeasured.starts_with("-d: nothing of nvidia-smi's section ECC is measured here"), "{unmeasured}");
    let error = report::sections(&["MEMROY".into()]).unwrap_err().to_string();
    assert!(error.starts_with("-d: \"MEMROY\" is not a section: did you mean MEMORY?"), "{error}");
}

#[test]
fn nvidia_smi_s_fields_are_answered_in_its_form() {
    let fields = "index,name,uuid,pci.bus_id,temperature.gpu,power.draw,power.limit,clocks.gr,memory.used,memory.total,utilization.gpu";
    let text = [
        device_query(fields, true, true),
        device_query(fields, false, false),
        device_query("timestamp,gpu_name,clocks.sm", true, true),
    ];
    expect_file!["golden/query-nvidia.csv"].assert_eq(&text.concat());
}

#[test]
fn every_device_field_has_an_answer() {
    let fields = csv_fields::device_fields();
    let all: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    expect_file!["golden/query-device-all.csv"].assert_eq(&device_query(&all.join(","), true, true));
}

#[test]
fn every_process_field_has_an_answer() {
    let fields = csv_fields::process_fields();
    let all: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    expect_file!["golden/query-processes-all.csv"].assert_eq(&process_query(&all.join(",")));
}

#[test]
fn the_header_shows_the_canonical_name_of_an_alias() {
    assert!(process_query("pid,used_memory").starts_with("pid, used_gpu_memory [MiB]\n"));
}

#[test]
fn the_help_lists_every_field() {
    expect_file!["golden/help-query.txt"].assert_eq(&csv::help());
}

#[test]
fn json_is_the_schema() {
    expect_file!["golden/snapshot.json"].assert_eq(&json(&example::machine(), false));
}

#[test]
fn json_lines_hold_one_snapshot_each_and_can_be_read_back() {
    let line = json(&example::machine(), true);
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(serde_json::from_str::<Snapshot>(&line).unwrap(), example::machine());
}

#[test]
fn dmon_and_pmon_stream_lines() {
    let args = args::StreamArgs { options: "DT".into(), ..args::StreamArgs::default() };
    let mut text = String::new();
    let mut devices = streams::Stream::of_devices(&args);
    let processes = |parts| args::ProcessStreamArgs { parts, ..args::ProcessStreamArgs::default() };
    for second in 5..7 {
        text += &devices.text(&example::machine(), &format!("20260102 03:04:0{second}"));
    }
    for parts in [false, true] {
        text += &streams::Stream::of_processes(&processes(parts)).text(&example::machine(), "20260102 03:04:05");
    }
    // Without date and parts, nothing is wider than a terminal, unless a name is.
    let without_names = text.replace("a-rather-long-login", "someone");
    let narrow = without_names.lines().skip_while(|line| !line.contains("command")).take(7);
    assert!(narrow.clone().count() == 7 && narrow.clone().all(|line| show::text::width(line) <= 80), "{text}");
    expect_file!["golden/streams.txt"].assert_eq(&text);
}

#[test]
fn pmon_names_a_process_by_its_script() {
    let mut machine = example::machine();
    machine.processes[0].command = Some("/usr/bin/python3 -c print(1)".into());
    machine.processes[0].name = Some("python3".into());
    let mut stream = streams::Stream::of_processes(&args::ProcessStreamArgs::default());
    let text = stream.text(&machine, "20260102 03:04:05");
    let names: Vec<&str> = text.lines().skip(2).filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["serve.py", "-", "-", "python3_-c", "python3_-c"]);
}

#[test]
fn columns_are_chosen_by_nvidia_s_letters() {
    let heading = |by_process: bool, groups: &str| {
        let args = args::StreamArgs { select: Some(groups.into()), ..args::StreamArgs::default() };
        let mut stream = match by_process {
            true => streams::Stream::of_processes(&args::ProcessStreamArgs { stream: args, parts: true }),
            false => streams::Stream::of_devices(&args),
        };
        let text = stream.text(&example::machine(), "20260102 03:04:05");
        text.lines().next().unwrap().split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(heading(false, "p"), "dev pwr temp fan state");
    assert_eq!(heading(false, "uct"), "dev util progs aiclk rxpci txpci state");
    assert_eq!(heading(false, "m"), "dev dram l1 state");
    assert_eq!(heading(false, "ve"), "dev state");
    assert_eq!(heading(true, "m"), "dev pid user via dram l1 l1sml trace cb command");
    assert_eq!(heading(true, "u"), "dev pid user via cpu util launch wait command");
}

#[test]
fn xml_has_nvidia_s_names_and_all_figures() {
    let mut machine = example::machine();
    machine.processes[0].name = Some("<a> & \"b\"\n".into());
    let text = |as_nvidia| xml::text(&machine, &report::sections(&[]).unwrap(), TIME, as_nvidia);
    expect_file!["golden/query.xml"].assert_eq(&text(false));
    // Telegraf, netdata and CloudWatch look for this root.
    let begin = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n";
    assert!(text(true).starts_with(begin) && text(true).ends_with("</nvidia_smi_log>\n"));
}

#[test]
fn links_are_a_matrix_and_a_list() {
    expect_file!["golden/topo.txt"].assert_eq(&links::matrix(&example::machine()));
    expect_file!["golden/nvlink.txt"].assert_eq(&links::status(&example::machine()));
}

#[test]
fn links_have_states_where_deep_reads_know_them() {
    let mut machine = example::machine();
    for (device, down) in machine.devices.iter_mut().zip([&[0, 5][..], &[], &[9], &[]]) {
        let deep = model::Deep {
            eth_link_up: (0..16).map(|port| Some(!down.contains(&port))).collect(),
            eth_heartbeat: (0..16).map(|port| Some(port != 9)).collect(),
            ..model::Deep::default()
        };
        device.deep = (device.state == model::State::Ok).then(|| Box::new(deep));
    }
    let text = links::matrix(&machine) + &links::status(&machine);
    expect_file!["golden/links-deep.txt"].assert_eq(&text);
}

#[test]
fn fields_that_do_not_apply_are_not_available_and_every_chip_has_an_index() {
    let fields = "index,pstate,clocks.mem,clocks_throttle_reasons.active,power.draw,pci.bus";
    expect_test::expect![[r#"
        index, pstate, clocks.mem [MHz], clocks_throttle_reasons.active, power.draw [W], pci.bus
        0, [N/A], [N/A], [N/A], 65.00 W, 0x01
        1, [N/A], [N/A], [N/A], [N/A], 0x41
        2, [N/A], [N/A], [N/A], 80.00 W, 0x81
        3, [N/A], [N/A], [N/A], [N/A], 0x81
    "#]]
    .assert_eq(&device_query(fields, true, true));
}

#[test]
fn a_stream_has_no_old_values() {
    let args = args::StreamArgs::default();
    let mut machine = example::machine();
    machine.devices[0].state = model::State::Silent;
    machine.devices[0].sample_age_seconds = Some(2.0);
    let text = streams::Stream::of_devices(&args).text(&machine, "20260102 03:04:05");
    let words: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(words, ["0", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "silent"]);
}

#[test]
fn a_stream_repeats_its_header_after_a_screenful() {
    let args = args::StreamArgs::default();
    let mut stream = streams::Stream::of_devices(&args);
    let text: String = (0..13).map(|_| stream.text(&example::machine(), "20260102 03:04:05")).collect();
    assert_eq!(text.matches("#  dev").count(), 3, "{text}");
}

#[test]
fn the_official_tt_smi_snapshot_is_matched() {
    let host =
        tt_smi::TtSmiHost { distro: "Ubuntu 24.04 LTS".into(), platform: "x86_64".into(), memory: "503.51 GB".into() };
    let text = tt_smi::text(&example::machine(), &host, "2026-01-02T03:04:05.678000");
    assert!(text.is_ascii());
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    expect_file!["golden/tt-smi.json"].assert_eq(&text);
}

proptest::proptest! {
    #[test]
    fn output_is_valid_for_any_bytes_in_a_command_line(bytes: Vec<u8>, columns in 0usize..200) {
        let mut machine = example::machine();
        let command = String::from_utf8_lossy(&bytes).into_owned();
        machine.processes[0].command = Some(command.clone());
        machine.processes[0].name = Some(command.clone());
        machine.processes[0].user = Some(command);
        assert_eq!(serde_json::from_str::<Snapshot>(&json(&machine, true)).unwrap(), machine);
        let host = tt_smi::TtSmiHost { distro: String::new(), platform: String::new(), memory: String::new() };
        serde_json::from_str::<serde_json::Value>(&tt_smi::text(&machine, &host, "")).unwrap();
        let text = table::text(&machine, &style(columns), TIME);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        let widths: std::collections::HashSet<usize> = text.lines().filter(|line| line.starts_with(['│', '┌', '└'])).map(show::text::width).collect();
        assert_eq!(widths.len(), 1, "{text}");
    }
}
