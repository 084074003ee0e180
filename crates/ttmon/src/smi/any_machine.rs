//! What holds for any machine: the table says what JSON and `ttmon mem` say, and is not red without a reason.

use super::table;
use crate::json::json;
use model::figure::device::{DRAM_USED, L1_USED};
use model::{Bytes, Snapshot, State};
use show::example::{Chance, any_machine};
use show::figures::used_of_total;
use show::memory::draw::chips::short_figures;
use show::memory::{draw as mem, of_snapshot};
use show::style::{Glyphs, Style};

const SEEDS: std::ops::Range<u64> = 0..60;

fn style(columns: usize, color: bool) -> Style {
    Style { columns, rows: None, color, unicode: true }
}

/// A figure of a device in JSON.
fn in_json(machine: &serde_json::Value, at: usize, path: &str) -> Option<Bytes> {
    let pointer = format!("/devices/{at}/{}", path.replace('.', "/"));
    machine.pointer(&pointer).and_then(serde_json::Value::as_u64).map(Bytes)
}

#[test]
fn the_table_mem_and_json_say_the_same_of_what_is_used() {
    let glyphs = Glyphs::of(true);
    for seed in SEEDS {
        let machine = any_machine(seed);
        let columns = 104 + Chance::new(seed).below(80) as usize;
        let texts = [
            table::text(&machine, &style(columns, false), ""),
            mem::text(&of_snapshot(&machine), &style(columns, false), ""),
        ];
        let value: serde_json::Value = serde_json::from_str(&json(&machine, true)).unwrap();
        for (at, device) in machine.devices.iter().enumerate() {
            let memory = &device.memory;
            for (figure, used, total) in
                [(&DRAM_USED, memory.dram_used, memory.dram_total), (&L1_USED, memory.l1_used, memory.l1_total)]
            {
                assert_eq!(in_json(&value, at, &figure.path()), used, "seed {seed}");
                let whole = used_of_total(used, total, memory.untracked_processes, glyphs);
                let short = short_figures(used, total, memory.untracked_processes > 0, glyphs);
                for text in &texts {
                    assert!(text.contains(&whole) || text.contains(&short), "seed {seed} lacks {whole}:\n{text}");
                }
            }
        }
    }
}

#[test]
fn no_line_is_wider_than_the_terminal_and_every_chip_has_one() {
    for seed in SEEDS {
        let machine = any_machine(seed);
        let columns = 60 + Chance::new(seed).below(140) as usize;
        let text = table::text(&machine, &style(columns, false), "");
        let frame = text.lines().filter(|line| line.starts_with('│'));
        assert!(frame.clone().all(|line| show::text::width(line) <= columns), "seed {seed}:\n{text}");
        for device in &machine.devices {
            let id = format!(" {} ", device.id);
            assert!(frame.clone().any(|line| line.contains(&id)), "seed {seed} lacks {id}:\n{text}");
        }
    }
}

#[test]
fn nothing_is_red_on_a_healthy_machine_at_full_load() {
    for seed in SEEDS {
        let mut machine: Snapshot = any_machine(seed);
        for device in &mut machine.devices {
            device.state = if device.state == State::Remote { State::Remote } else { State::Ok };
            (device.sample_age_seconds, device.power) = (Some(0.0), device.power_max);
            device.asic_temp = Some(model::Celsius(62.0));
        }
        let text = table::text(&machine, &style(120, true), "");
        assert!(!text.contains("\x1b[1;31m"), "seed {seed}:\n{text}");
    }
}
