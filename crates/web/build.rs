//! Packs the files of the page: the program carries a third of their size, and browsers take them as they are then.

use flate2::{Compression, write::GzEncoder};
use std::error::Error;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/page");
    let into = Path::new(&std::env::var("OUT_DIR")?).join("page");
    for folder in ["", "js"] {
        std::fs::create_dir_all(into.join(folder))?;
        for entry in std::fs::read_dir(Path::new("src/page").join(folder))? {
            let path = entry?.path();
            let (true, Some(name)) = (path.is_file(), path.file_name()) else { continue };
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&std::fs::read(&path)?)?;
            std::fs::write(into.join(folder).join(name), packed.finish()?)?;
        }
    }
    Ok(())
}
