//! Our clusters with unique ids of their own, so that tests do not meet in a region.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::region::Region;

/// A descriptor, in a file that is removed at the end, and the regions of its chips.
pub struct Cluster {
    path: PathBuf,
    pub regions: Vec<Region>,
}

impl Cluster {
    pub fn n150() -> Cluster {
        Cluster::copy(include_str!("../../clusters/n150.yaml"), &["7310579611150000150"])
    }

    pub fn n300() -> Cluster {
        let ids = ["7310579611300000300", "7310579611300000301"];
        Cluster::copy(include_str!("../../clusters/n300.yaml"), &ids)
    }

    pub fn p150() -> Cluster {
        Cluster::copy(include_str!("../../clusters/p150.yaml"), &["7310579611500000150"])
    }

    pub fn t3k() -> Cluster {
        let ids = [0, 1, 2, 3, 4, 5, 6, 7].map(|chip| format!("731057961180000080{chip}"));
        Cluster::copy(include_str!("../../clusters/t3k.yaml"), &ids.each_ref().map(String::as_str))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Of the first chip.
    pub fn region(&self) -> &Region {
        &self.regions[0]
    }

    fn copy(ours: &str, ids: &[&str]) -> Cluster {
        let regions: Vec<Region> = ids.iter().map(|_| Region::unused()).collect();
        let mut theirs = ours.to_owned();
        for (id, region) in ids.iter().zip(&regions) {
            assert!(theirs.contains(id), "{id}");
            theirs = theirs.replace(id, &region.asic_id.to_string());
        }
        let path = env::temp_dir().join(format!("ttmon-cluster-{}.yaml", regions[0].asic_id));
        fs::write(&path, theirs).unwrap();
        Cluster { path, regions }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
