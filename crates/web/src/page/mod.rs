//! The page that a browser shows: plain HTML, CSS and JavaScript, as they are in this folder.
//!
//! `js/main.js` is the frame, with a file for each view; `js/stream.js` has the one stream of all tabs; `js/store.js` holds the data
//! and keeps it current; `js/figures.js` has the tables of figures that the views are made of. What a process writes about itself only
//! becomes the text of a text node.

pub struct Asset {
    /// From the root, `/` for the page itself.
    pub path: &'static str,
    pub content_type: &'static str,
    /// What is in it, with gzip.
    pub packed: &'static [u8],
}

const fn asset(path: &'static str, extension: &str, packed: &'static [u8]) -> Asset {
    let content_type = match extension.as_bytes() {
        b"html" => "text/html; charset=utf-8",
        b"css" => "text/css; charset=utf-8",
        b"svg" => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    };
    Asset { path, content_type, packed }
}

/// All files, as `build.rs` found and packed them.
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/page/assets.rs"));

/// What the page may do: nothing but ask the service that it comes from.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests;
