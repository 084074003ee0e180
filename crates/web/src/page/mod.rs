//! The page that a browser shows: plain HTML, CSS and JavaScript, as they are in this folder.
//!
//! `js/main.js` is the frame, with a file for each view; `js/store.js` holds the data and keeps it current; `js/figures.js` has the
//! tables of figures that the views are made of. What a process writes about itself only becomes the text of a text node.

/// A file of the page.
pub struct Asset {
    /// From the root, `/` for the page itself.
    pub path: &'static str,
    /// The HTTP content type.
    pub content_type: &'static str,
    /// What is in it, with gzip.
    pub packed: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($path:literal $content_type:ident $file:literal)+) => {
        &[$(Asset { path: $path, content_type: $content_type, packed: include_bytes!(concat!(env!("OUT_DIR"), "/page/", $file)) },)+]
    };
}

/// All files, the page itself first.
pub const ASSETS: &[Asset] = assets! {
    "/" HTML "index.html"
    "/assets/style.css" CSS "style.css"
    "/assets/icon.svg" SVG "icon.svg"
    "/assets/js/chart.js" SCRIPT "js/chart.js"
    "/assets/js/deaths.js" SCRIPT "js/deaths.js"
    "/assets/js/device.js" SCRIPT "js/device.js"
    "/assets/js/dom.js" SCRIPT "js/dom.js"
    "/assets/js/figures.js" SCRIPT "js/figures.js"
    "/assets/js/format.js" SCRIPT "js/format.js"
    "/assets/js/history.js" SCRIPT "js/history.js"
    "/assets/js/log.js" SCRIPT "js/log.js"
    "/assets/js/main.js" SCRIPT "js/main.js"
    "/assets/js/memory.js" SCRIPT "js/memory.js"
    "/assets/js/mesh.js" SCRIPT "js/mesh.js"
    "/assets/js/overview.js" SCRIPT "js/overview.js"
    "/assets/js/pieces.js" SCRIPT "js/pieces.js"
    "/assets/js/process.js" SCRIPT "js/process.js"
    "/assets/js/processes.js" SCRIPT "js/processes.js"
    "/assets/js/route.js" SCRIPT "js/route.js"
    "/assets/js/store.js" SCRIPT "js/store.js"
};

/// What the page may do: nothing but ask the service that it comes from.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests;
