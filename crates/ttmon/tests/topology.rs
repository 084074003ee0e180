//! Where the chips of simulated machines are, from their files to the grid.

use expect_test::{Expect, expect};
use model::topology::of_machine;
use sources::{Options, Root, Sampler};
use std::path::Path;
use std::time::Duration;

/// The grid, the links, and the groups without their serials.
fn check(spec: &str, expected: Expect) {
    // Idle, it starts no program.
    let machine = sim::SimMachine::start(&format!("{spec},idle").parse().unwrap(), Path::new("")).unwrap();
    let options = Options { deadline: Duration::from_secs(30), rates: false, relaxed: false };
    let snapshot = Sampler::new(Root::under(machine.root()).with_faults(machine.inject()), options).sample();
    let topology = of_machine(&snapshot.devices);
    let mut text = String::new();
    for row in 0..topology.shape.rows {
        for column in 0..topology.shape.columns {
            let chip = topology.chips.iter().find(|chip| (chip.column, chip.row) == (column, row));
            text += &format!("{:<3} ", chip.map_or("·".into(), |chip| chip.id.to_string()));
        }
        text = format!("{}\n", text.trim_end());
    }
    for link in &topology.links {
        let [one, other] = &link.ends;
        text += &format!("{one} ={}= {other} ({:?})\n", link.count, link.source);
    }
    let names: Vec<&str> = topology.groups.iter().map(|group| group.name.split(" serial").next().unwrap()).collect();
    expected.assert_eq(&format!("{text}{}\n", names.join(", ")));
}

#[test]
fn single_cards_have_no_links() {
    check(
        "n150",
        expect![[r#"
            0
            n150
        "#]],
    );
    check(
        "p150x8",
        expect![[r#"
            0   1   2   3
            4   5   6   7
            p150a, p150a, p150a, p150a, p150a, p150a, p150a, p150a
        "#]],
    );
}

#[test]
fn boards_with_two_chips_have_them_side_by_side() {
    check(
        "n300",
        expect![[r#"
            0   0R
            0 =2= 0R (Board)
            n300
        "#]],
    );
    check(
        "p300x2",
        expect![[r#"
            0   1   2   3
            0 =2= 1 (Board)
            2 =2= 3 (Board)
            p300a, p300a
        "#]],
    );
    check(
        "mixed",
        expect![[r#"
            0   1   2   2R
            3   ·   ·   ·
            2 =2= 2R (Board)
            p150a, p150b, n300, n150
        "#]],
    );
}

#[test]
fn four_n300_are_a_mesh_that_is_assumed() {
    check(
        "n300x4",
        expect![[r#"
            0R  0   2   2R
            1R  1   3   3R
            0 =2= 0R (Board)
            0 =2= 1 (Assumed)
            0 =2= 2 (Assumed)
            0R =2= 1R (Assumed)
            1 =2= 1R (Board)
            1 =2= 3 (Assumed)
            2 =2= 2R (Board)
            2 =2= 3 (Assumed)
            2R =2= 3R (Assumed)
            3 =2= 3R (Board)
            n300, n300, n300, n300
        "#]],
    );
}

#[test]
fn a_galaxy_is_four_trays_of_eight() {
    check(
        "galaxy-wh",
        expect![[r#"
            0   1   2   3   4   5   6   7
            8   9   10  11  12  13  14  15
            16  17  18  19  20  21  22  23
            24  25  26  27  28  29  30  31
            tray 1, tray 2, tray 3, tray 4
        "#]],
    );
    check(
        "galaxy-bh",
        expect![[r#"
            0   1   2   3   4   5   6   7
            8   9   10  11  12  13  14  15
            16  17  18  19  20  21  22  23
            24  25  26  27  28  29  30  31
            tray 1, tray 2, tray 3, tray 4
        "#]],
    );
}
