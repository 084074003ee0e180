//! Login names from `/etc/passwd`, then from whatever else the system asks for users (LDAP and the like).

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// Names already looked up.
#[derive(Default)]
pub(crate) struct Users(Mutex<UserNames>);

#[derive(Default)]
struct UserNames {
    local: Option<HashMap<u32, String>>,
    others: HashMap<u32, String>,
    /// Those that are being looked up.
    asked: HashSet<u32>,
}

impl UserNames {
    fn known(&mut self, uid: u32) -> Option<String> {
        let local = self.local.get_or_insert_with(|| parse(&std::fs::read("/etc/passwd").unwrap_or_default()));
        local.get(&uid).or_else(|| self.others.get(&uid)).cloned()
    }
}

impl Users {
    /// The same without waiting: the number until the name is found.
    pub fn name_at_once(&'static self, uid: u32) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = known.known(uid);
        if name.is_none() && known.asked.insert(uid) {
            let ask = move || drop(self.name(uid));
            let _ = std::thread::Builder::new().name("ttmon-users".into()).spawn(ask);
        }
        name.unwrap_or_else(|| uid.to_string())
    }

    /// The user's login name, or the number where there is none. Asking beyond `/etc/passwd` may take long, so no other thread
    /// waits for it.
    pub fn name(&self, uid: u32) -> String {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().known(uid);
        if let Some(name) = known {
            return name;
        }
        let user = uzers::get_user_by_uid(uid).map(|user| user.name().to_string_lossy().into_owned());
        lock().others.entry(uid).or_insert(user.unwrap_or_else(|| uid.to_string())).clone()
    }
}

/// Lines of `name:password:uid:…`. The first line of a uid is the one that counts.
fn parse(passwd: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in passwd.split(|&b| b == b'\n') {
        let mut fields = line.split(|&b| b == b':');
        let (Some(name), Some(uid)) = (fields.next().filter(|name| !name.is_empty()), fields.nth(1)) else { continue };
        if let Some(uid) = std::str::from_utf8(uid).ok().and_then(|uid| uid.parse().ok()) {
            names.entry(uid).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_user_counts() {
        let names = parse(b"root:x:0:0::/root:/bin/sh\ntoor:x:0:0\nttuser:x:1000:\nbroken\n::7:\n");
        assert_eq!(names, HashMap::from([(0, "root".into()), (1000, "ttuser".into())]));
    }

    #[test]
    fn no_caller_waits_for_a_name_that_is_not_known_yet() {
        static USERS: std::sync::LazyLock<Users> = std::sync::LazyLock::new(Users::default);
        assert_eq!(USERS.name_at_once(0), "root");
        assert_eq!(USERS.name_at_once(3_999_999_998), "3999999998");
        let is_found = || USERS.0.lock().unwrap().others.contains_key(&3_999_999_998);
        assert!((0..2000).any(|_| is_found() || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            false
        }));
    }

    #[test]
    fn a_user_without_a_name_is_a_number() {
        assert_eq!(Users::default().name(3_999_999_999), "3999999999");
        assert_eq!(Users::default().name(0), "root");
    }
}
