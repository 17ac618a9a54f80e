//! How many more threads this process may have: what its control groups (`pids.max`) and its user (`ulimit -u`) leave of
//! their limits. Where they are few, what takes many keeps to a share of them, so that requests can still be answered.
//!
//! Elsewhere than on Linux nothing is known of them.

use std::path::{Path, PathBuf};

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";
/// A user's limit that no server reaches: who has taken how many of it is not looked for.
const AMPLE: usize = 16_384;

/// Returns how many threads this process may start beside those that there are; `None` where nothing bounds them.
pub(crate) async fn threads_left() -> Option<usize> {
    least(left_of_groups().await, left_of_user().await)
}

async fn left_of_groups() -> Option<usize> {
    let own = tokio::fs::read_to_string("/proc/self/cgroup").await.unwrap_or_default();
    let mut left = None;
    for group in groups(&own) {
        let (Some(most), Some(taken)) =
            (number(group.join("pids.max")).await, number(group.join("pids.current")).await)
        else {
            continue;
        };
        left = least(left, Some(most.saturating_sub(taken)));
    }
    left
}

/// Returns the folders of a process's control groups, of which `own` tells as `/proc/self/cgroup` does: its own and those
/// around it, and that of a container where each kind of limit has a tree of its own.
fn groups(own: &str) -> Vec<PathBuf> {
    let root = Path::new(GROUPS);
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    // Of a path without a name at its end `join` makes one that ends with a slash.
    let around: PathBuf = root.join(path).components().collect();
    let mut groups: Vec<PathBuf> =
        around.ancestors().take_while(|group| group.starts_with(root)).map(Path::to_path_buf).collect();
    groups.push(root.join("pids"));
    groups
}

async fn left_of_user() -> Option<usize> {
    let limits = tokio::fs::read_to_string("/proc/self/limits").await.ok()?;
    let most = first_number(&limits, "Max processes")?;
    let status = tokio::fs::read_to_string("/proc/self/status").await.ok()?;
    let user = first_number(&status, "Uid:")?;
    // The superuser is not bound by it.
    if user == 0 || most > AMPLE {
        return None;
    }
    let mut taken = 0;
    let mut processes = tokio::fs::read_dir("/proc").await.ok()?;
    while let Ok(Some(process)) = processes.next_entry().await {
        // Other files have none, and processes end meanwhile.
        let Ok(status) = tokio::fs::read_to_string(process.path().join("status")).await else { continue };
        if first_number(&status, "Uid:") == Some(user) {
            taken += first_number(&status, "Threads:").unwrap_or(1);
        }
    }
    Some(most.saturating_sub(taken))
}

/// Returns the number behind a name at the beginning of a line.
fn first_number(text: &str, name: &str) -> Option<usize> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Returns the number in a file; `None` for `max`.
async fn number(path: PathBuf) -> Option<usize> {
    tokio::fs::read_to_string(path).await.ok()?.trim().parse().ok()
}

fn least(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_bound_by_its_group_and_those_around_it() {
        let paths = |own| groups(own).iter().map(|group| group.display().to_string()).collect::<Vec<_>>();
        let own = "/sys/fs/cgroup/system.slice/querent.service";
        let around = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup", "/sys/fs/cgroup/pids"];
        assert_eq!(paths("0::/system.slice/querent.service\n"), [&[own], around.as_slice()].concat());
        assert_eq!(paths("0::/\n"), ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"]);
        assert_eq!(paths(""), ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"]);
    }

    #[test]
    fn a_limit_is_the_first_number_of_its_line() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             60                   95000                processes\n";
        assert_eq!(first_number(limits, "Max processes"), Some(60));
        let unlimited = "Max processes             unlimited            unlimited            processes\n";
        assert_eq!(first_number(unlimited, "Max processes"), None);
        assert_eq!(first_number("Name:\tquerent\nUid:\t1000\t1000\t1000\t1000\n", "Uid:"), Some(1000));
    }

    #[test]
    fn the_least_limit_counts() {
        assert_eq!(least(Some(3), Some(2)), Some(2));
        assert_eq!(least(None, Some(2)), Some(2));
        assert_eq!(least(None, None), None);
    }
}
