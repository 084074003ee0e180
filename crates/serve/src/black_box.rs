//! The black box of the service: where it is, and what is said of it.

use crate::args::Args;
use alerts::log::{LogLevel, log};
use jiff::tz::TimeZone;
use model::Bytes;
use rustix::process::geteuid;
use std::path::PathBuf;
use watch::black_box::{BlackBox, BlackBoxPlace, BlackBoxStatus};
use watch::exit::{Exit, Failure};
use watch::past::{OF_MACHINE, now, of_user, when};
use watch::service_limits::{BlackBoxSetting, ServiceLimits};

/// Begins to keep one, where that is asked for. What a disk refuses is reported, and the service goes on.
pub fn start(args: &Args, limits: &ServiceLimits) -> anyhow::Result<Option<BlackBox>> {
    let Some(folder) = folder(args, limits)? else { return Ok(None) };
    // The folder is told to clients, which may be in another one.
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let place = BlackBoxPlace { folder, mib: limits.black_box_mib };
    let (path, mib) = (place.folder.display().to_string(), place.mib);
    let black_box = BlackBox::start(place, watch::boot_id())?;
    log(LogLevel::Info, "black-box", &[("path", &path), ("mib", &mib)]);
    Ok(Some(black_box))
}

/// The configuration may switch off what the command line of a unit names.
fn folder(args: &Args, limits: &ServiceLimits) -> anyhow::Result<Option<PathBuf>> {
    let usual = || match geteuid().is_root() {
        true => Some(PathBuf::from(OF_MACHINE)),
        false => of_user(),
    };
    let why = "black_box: neither XDG_STATE_HOME nor HOME is set, so there is no folder for it: name one";
    match (&args.black_box, &limits.black_box) {
        (_, Some(BlackBoxSetting::Off)) => Ok(None),
        (Some(word), _) if word.as_os_str() == "off" => Ok(None),
        (Some(folder), _) | (None, Some(BlackBoxSetting::Folder(folder))) => Ok(Some(folder.clone())),
        (None, Some(BlackBoxSetting::UsualFolder)) => usual().map(Some).ok_or_else(|| Failure::error(Exit::Usage, why)),
        (None, None) => Ok(None),
    }
}

/// For `systemctl status`.
pub fn status_text(status: &BlackBoxStatus) -> String {
    let dropped = match status.dropped {
        0 => String::new(),
        dropped => format!(", samples dropped: {dropped}"),
    };
    match (&status.trouble, status.bytes, status.since) {
        (Some(reason), ..) => format!("; black box: not written: {reason}{dropped}"),
        (None, Some(bytes), Some(since)) => {
            let since = when::text(since, now(), &TimeZone::system());
            format!("; black box: {} since {since}{dropped}", Bytes(bytes))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    #[test]
    fn the_status_says_how_much_since_when_or_why_not() {
        let mut status =
            BlackBoxStatus { bytes: Some(5 << 20), since: Some(Timestamp(0)), ..BlackBoxStatus::default() };
        let text = status_text(&status);
        assert!(text.starts_with("; black box: 5.0 MiB since 19") && text.ends_with(":00"), "{text}");
        status.trouble = Some("No space left on device (os error 28)".into());
        status.dropped = 7;
        let expected = "; black box: not written: No space left on device (os error 28), samples dropped: 7";
        assert_eq!(status_text(&status), expected);
        assert_eq!(status_text(&BlackBoxStatus::default()), "");
    }
}
