//! Nothing but a workload, for the tests of this crate.

fn main() {
    sim::run_workload_if_asked();
    eprintln!("this program is started by a simulated machine");
    std::process::exit(2);
}
