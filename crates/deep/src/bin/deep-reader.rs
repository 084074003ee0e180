//! The reader process of this crate's own tests. In the product, `ttmon` itself is the reader.

fn main() {
    deep::run_reader_if_asked();
    eprintln!("this program is started by tests");
    std::process::exit(2);
}
